/**
 * The worker process of `dev` and `start`: claims and decides until the channel to its parent closes.
 * Signals of the terminal are the parent's to answer; a watchdog ends it when an event blocks it.
 */
import type { CommandDef } from 'citty'
import type { Signals } from '../core/signals.ts'
import { createLog, logLevels, logSignals, type Log } from '../observe/log.ts'
import { startWatchdog } from '../worker/watchdog.ts'
import { command, usageError } from './command.ts'
import { openProject } from './project.ts'
import type { WorkOrder, WorkReport } from './work-messages.ts'

/** How long it may finish what is in hand when its parent is gone, in milliseconds. */
const orphanedMs = 5000
/** How often outcomes are reported, in milliseconds. */
const reportEveryMs = 250

/** The command. */
export const workCommand: CommandDef = command(
  { name: 'internal-work', description: 'The worker process of dev and start', hidden: true },
  {
    'log-level': {
      type: 'enum',
      description: 'How much to log',
      options: [...logLevels],
      default: 'warn',
    },
    pretty: { type: 'boolean', description: 'Log lines for a person' },
  },
  async ({ args, world }) => {
    if (process.send === undefined) throw usageError('internal-work is started by dev and start')
    for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
    const ended = followParent()
    const log = createLog({
      level: args['log-level'],
      pretty: args.pretty === true,
      color: world.stderr.isTTY === true && !world.environment.noColor,
      base: { pid: process.pid },
    })
    const { parts } = await openProject(world, args.config)
    // checked and registered by the parent, which has told the warnings; this learns what is newest
    await parts.register()
    logSignals(parts.signals, log)
    const flush = reportOutcomes(parts.signals)
    const watchdog = startWatchdog(parts.config.limits.watchdogMs)
    const worker = await parts.worker({ watch: watchdog })
    await worker.start()
    process.on('message', (order: WorkOrder) => obey(order, worker, log, ended))
    report({ kind: 'ready' })
    const timeoutMs = await ended.promise
    await worker.stop(timeoutMs)
    watchdog.stop()
    flush()
    await parts.close()
    return 0
  },
)

interface End {
  readonly promise: Promise<number>
  /** Ends within so many milliseconds. */
  readonly end: (timeoutMs: number) => void
}

/** A closed channel means that the parent is gone: nobody would start another, or stop this one. */
function followParent(): End {
  let end: (timeoutMs: number) => void = () => {}
  const promise = new Promise<number>((resolve) => {
    end = resolve
  })
  process.once('disconnect', () => end(orphanedMs))
  process.once('SIGTERM', () => end(orphanedMs))
  return { promise, end }
}

function obey(order: WorkOrder, worker: { wake(): void }, log: Log, ended: End): void {
  switch (order.kind) {
    case 'wake':
      worker.wake()
      return report({ kind: 'awake' })
    case 'log':
      log.level = order.level
      return
    case 'stop':
      return ended.end(order.timeoutMs)
  }
}

function report(message: WorkReport): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {})
}

/** Passes signals on to the parent, outcomes as counts. Returns what sends the last of them. */
function reportOutcomes(signals: Signals): () => void {
  let counts: Record<string, number> = {}
  const flush = (): void => {
    if (Object.keys(counts).length === 0) return
    report({ kind: 'outcomes', counts })
    counts = {}
  }
  signals.on('inbox.event.decided', ({ outcome }) => {
    counts[outcome] = (counts[outcome] ?? 0) + 1
  })
  for (const name of [
    'inbox.batch.finished',
    'inbox.wait.rescued',
    'worker.loop.failed',
  ] as const) {
    signals.on(name, (detail) => report({ kind: 'signal', name, detail } as WorkReport))
  }
  setInterval(flush, reportEveryMs).unref()
  return flush
}
