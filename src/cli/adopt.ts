/**
 * `hookledger adopt FILE`: takes over what an app recorded before Hookledger was there. Nothing is written
 * before every line was found to be good; a second run adopts only what is missing.
 */
import type { CommandDef } from 'citty'
import { resolve } from 'node:path'
import { Adoption, type AdoptCheck } from '../compose/adopt.ts'
import type { AdoptReport } from '../compose/adopt-run.ts'
import { HookledgerError } from '../core/errors.ts'
import { command, usageError } from './command.ts'
import type { ExitCode } from './exit-codes.ts'
import type { Output } from './output.ts'
import { withDatabase } from './project.ts'
import { actorOf } from './replay.ts'
import { plural } from './table.ts'

/** The command. */
export const adoptCommand: CommandDef = command(
  {
    name: 'adopt',
    description: 'Takes over orders and handled events of an app that already lives',
  },
  {
    file: {
      type: 'positional',
      description: 'JSON lines: an order or an event each',
      required: true,
    },
    check: { type: 'boolean', description: 'Says what speaks against it, and writes nothing' },
    reason: { type: 'string', description: 'Why; required, and recorded with every decision' },
    actor: { type: 'string', description: 'Who; the user of the operating system without it' },
  },
  async ({ args, out, world }) => {
    const { reason, check } = args
    if (check !== true && (reason === undefined || reason.trim() === ''))
      throw usageError('--reason is missing: it is recorded with every decision')
    const actor = args.actor ?? actorOf(world)
    return withDatabase(world, args.config, async (db, { parts }) => {
      const adoption = new Adoption(db, parts.config, resolve(world.cwd, args.file))
      const checked = await adoption.check((lines) => out.progress(`${lines} lines checked`))
      requireGood(out, args.file, checked)
      if (check === true) {
        const { orders, events, differing, differingCount } = checked
        out.result(
          { orders, events, problems: [], differing_count: differingCount, differing },
          (safe) =>
            [
              `${plural(safe.orders, 'order')} and ${plural(safe.events, 'event')} can be adopted`,
              ...differingLines(safe.differing, safe.differing_count),
            ].join('\n'),
        )
        return 0
      }
      return adopting(out, adoption, checked, { reason: reason ?? '', actor })
    })
  },
)

/** @throws HookledgerError HKL_ADOPT_INVALID when a line cannot be adopted; the lines are told before */
function requireGood(out: Output, file: string, { problems, problemCount }: AdoptCheck): void {
  if (problemCount === 0) return
  for (const { line, message } of problems) out.error(`line ${line}: ${message}`)
  if (problemCount > problems.length) out.error(`and ${problemCount - problems.length} more`)
  throw new HookledgerError(
    'HKL_ADOPT_INVALID',
    `${plural(problemCount, 'line')} of ${file} cannot be adopted: nothing was written`,
  )
}

async function adopting(
  out: Output,
  adoption: Adoption,
  checked: AdoptCheck,
  by: { readonly reason: string; readonly actor: string },
): Promise<ExitCode> {
  const interruption = new AbortController()
  const interrupt = (): void => interruption.abort()
  process.once('SIGINT', interrupt)
  try {
    const report = await adoption.write(checked, {
      ...by,
      signal: interruption.signal,
      onProgress: (lines) => out.progress(`${lines} lines adopted`),
    })
    out.result(report, reportText)
    return report.complete ? 0 : 130
  } finally {
    process.off('SIGINT', interrupt)
  }
}

/** They are told one by one: "recorded already" would be untrue of them. */
function differingLines(lines: AdoptReport['differing'], count: number): string[] {
  if (count === 0) return []
  return [
    `${plural(count, 'line')} ${count === 1 ? 'says' : 'say'} something else than is recorded here:`,
    ...lines.map(({ line, message }) => `  line ${line}: ${message}`),
    ...(count > lines.length ? [`  and ${count - lines.length} more`] : []),
  ]
}

function reportText({ orders, events, differing, complete }: AdoptReport): string {
  return [
    `${plural(orders.adopted, 'order')} adopted, ${orders.same} recorded already`,
    `${plural(events.adopted, 'handled event')} adopted, ${events.known} known already`,
    ...differingLines(differing, orders.differing),
    ...(complete ? [] : ['interrupted: run it again for the rest']),
  ].join('\n')
}
