/**
 * Which passes are due. Any number of reconcilers look at the same rows: a run that is under way, or that
 * began a moment ago anywhere, is not begun again.
 */
import type { PassContext } from './pass-context.ts'
import type { PassOptions, PassReport } from './pass-report.ts'
import { runPass, type BegunRun } from './pass.ts'
import { openDueRun } from './runs.ts'

/** Runs what is due. Null: nothing is. */
export async function runDuePasses(
  context: PassContext,
  options: Pick<PassOptions, 'actor' | 'signal'>,
): Promise<PassReport | null> {
  const begun: BegunRun[] = []
  for (const { name } of context.sources) {
    const opened = await openDueRun(
      context.db,
      { source: name, actor: options.actor },
      context.settings,
    )
    if (opened !== null) begun.push({ ...opened, source: name })
  }
  const [first] = begun
  if (first === undefined) return null
  const sources = begun.map(({ source }) => source)
  return runPass(context, { ...options, how: first.how, sources }, begun)
}
