/**
 * `hookledger reconcile`: one pass now. It ends with 0 when the pass is complete, whatever it found;
 * `hookledger findings` tells that.
 */
import type { CommandDef } from 'citty'
import { command, usageError } from './command.ts'
import { progressText, reportText, reportView } from './reconcile-text.ts'
import { openProject } from './project.ts'
import { actorOf } from './replay.ts'
import { optionalTime } from './time-option.ts'

/** The command. */
export const reconcileCommand: CommandDef = command(
  {
    name: 'reconcile',
    description: "Compares with the providers' own records, once and now",
  },
  {
    source: {
      type: 'string',
      description: 'Of these sources only, by name (repeat it, or commas)',
      valueHint: 'SOURCE',
    },
    kind: {
      type: 'string',
      description: 'Of these kinds of record only: event, payment_intent, …',
      valueHint: 'KIND',
    },
    from: {
      type: 'string',
      description: 'Of this time or later, however early; moves no checkpoint',
      valueHint: 'TIME',
    },
    to: { type: 'string', description: 'With --from: before this time', valueHint: 'TIME' },
    deep: { type: 'boolean', description: 'As far back as the daily deep pass' },
    actor: { type: 'string', description: 'Who; the user of the operating system without it' },
  },
  async ({ args, list, out, world }) => {
    const from = optionalTime('from', args.from)
    const to = optionalTime('to', args.to)
    if (to !== undefined && from === undefined) throw usageError('--to goes with --from')
    if (args.deep === true && from !== undefined)
      throw usageError('--deep and --from both say how far back: give one of them')
    const now = new Date()
    if (from !== undefined && from >= (to ?? now))
      throw usageError(`--from must be before ${to === undefined ? 'now' : '--to'}`)
    const { parts } = await openProject(world, args.config)
    const interruption = new AbortController()
    const interrupt = (): void => interruption.abort()
    process.once('SIGINT', interrupt)
    try {
      const reconciler = await parts.reconciler()
      const report = await reconciler.pass({
        how: from !== undefined ? 'range' : args.deep === true ? 'deep' : 'manual',
        actor: `cli:${args.actor ?? actorOf(world)}`,
        ...(list('source').length > 0 && { sources: list('source') }),
        ...(list('kind').length > 0 && { kinds: list('kind') }),
        from,
        to,
        signal: interruption.signal,
        onProgress: (progress) => out.progress(progressText(progress)),
      })
      out.result(reportView(report), reportText)
      if (interruption.signal.aborted) return 130
      return report.complete ? 0 : 1
    } finally {
      process.off('SIGINT', interrupt)
      await parts.close()
    }
  },
)
