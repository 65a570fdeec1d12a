/**
 * The worker process of `dev` and `start`: decides, gathers, dispatches and reconciles until the channel to its parent closes.
 * Signals of the terminal are the parent's to answer; a watchdog ends it when an event blocks it.
 */
import type { CommandDef } from 'citty'
import type { Signals } from '../core/signals.ts'
import { createLog, logLevels, logSignals, type Log } from '../observe/log.ts'
import { MeterBuffer } from '../observe/meter-buffer.ts'
import { meterSignals } from '../observe/meters.ts'
import { startWatchdog } from '../worker/watchdog.ts'
import { command, usageError } from './command.ts'
import { openProject, type Parts } from './project.ts'
import type { WorkOrder, WorkReport, WorkRole } from './work-messages.ts'

/** How long it may finish what is in hand when its parent is gone, in milliseconds. */
const orphanedMs = 5000
/** How often counts are reported, in milliseconds. */
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
    roles: { type: 'string', description: 'work, gather, dispatch, reconcile, with commas' },
  },
  async ({ args, list, world }) => {
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
    const flush = reportCounts(parts.signals)
    const roles = list('roles')
    const running: Running = {
      ...(roles.includes('work') && { work: await startWork(parts) }),
      ...(roles.includes('gather') && { gather: await startGather(parts) }),
      ...(roles.includes('dispatch') && { dispatch: await startDispatch(parts) }),
      ...(roles.includes('reconcile') && { reconcile: await startReconcile(parts) }),
    }
    const heartbeat = parts.heartbeat(roles)
    heartbeat.start()
    process.on('message', (order: WorkOrder) => obey(order, running, log, ended))
    report({ kind: 'ready' })
    const timeoutMs = await ended.promise
    await Promise.all(Object.values(running).map((each) => each.stop(timeoutMs)))
    await heartbeat.stop()
    flush()
    await parts.close()
    return 0
  },
)

/** The roles at work in this process. */
type Running = { readonly [Role in WorkRole]?: RunningRole }

interface RunningRole {
  wake(): void
  stop(timeoutMs: number): Promise<unknown>
}

/** Decides; a watchdog ends the process when an event blocks it. */
async function startWork(parts: Parts): Promise<RunningRole> {
  const watchdog = startWatchdog(parts.config.limits.watchdogMs)
  const worker = await parts.worker({ watch: watchdog })
  await worker.start()
  return {
    wake: () => worker.wake(),
    async stop(timeoutMs) {
      await worker.stop(timeoutMs)
      watchdog.stop()
    },
  }
}

/** Dispatches. A call that dies with this process is uncertain, and made again under the same key. */
async function startDispatch(parts: Parts): Promise<RunningRole> {
  const dispatcher = await parts.dispatcher()
  dispatcher.start()
  return { wake: () => dispatcher.wake(), stop: (timeoutMs) => dispatcher.stop(timeoutMs) }
}

/** Asks the providers, where any workflow looks at them. A request that dies with this process is made anew. */
async function startGather(parts: Parts): Promise<RunningRole> {
  if (!parts.asksProviders) return { wake: () => {}, stop: () => Promise.resolve() }
  const gatherer = await parts.gatherer()
  gatherer.start()
  return { wake: () => gatherer.wake(), stop: (timeoutMs) => gatherer.stop(timeoutMs) }
}

/** Compares with the providers on its schedule. */
async function startReconcile(parts: Parts): Promise<RunningRole> {
  const reconciler = await parts.reconciler()
  reconciler.start()
  return { wake: () => {}, stop: (timeoutMs) => reconciler.stop(timeoutMs) }
}

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

function obey(order: WorkOrder, running: Running, log: Log, ended: End): void {
  switch (order.kind) {
    case 'wake':
      for (const role of order.roles) running[role]?.wake()
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

/** Counts what the signals tell, for the parent's metrics. Returns what sends the last of it. */
function reportCounts(signals: Signals): () => void {
  const buffer = new MeterBuffer()
  meterSignals(signals, buffer)
  const flush = (): void => {
    const readings = buffer.take()
    if (readings !== null) report({ kind: 'counted', readings })
  }
  setInterval(flush, reportEveryMs).unref()
  return flush
}
