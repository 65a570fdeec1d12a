/**
 * The HTTP side of `dev` and `start`: the server over the receiver, readiness, metrics that include
 * what the worker process reports, and the worker process itself.
 */
import type { AddressInfo } from 'node:net'
import { bulkLoop } from '../compose/bulk/bulk-run.ts'
import type { TransactionLike } from '../hookledger.ts'
import { logSignals, type Log, type LogLevel } from '../observe/log.ts'
import { newestMigration, schemaVersion } from '../postgres/migrate.ts'
import { gauges } from '../report/gauges.ts'
import { createMetrics, type Metrics } from '../server/metrics.ts'
import { mountConsole } from '../server/console/console.ts'
import { isLoopback } from '../server/console/local-door.ts'
import type { ExtraRoutes } from '../server/router.ts'
import { createHookledgerServer } from '../server/server.ts'
import type { Closing } from './closing.ts'
import type { CommandWorld } from './command.ts'
import type { Project } from './project.ts'
import { WorkProcess } from './work-process.ts'

/** What a process does; all but receiving is done by a process of its own. */
export interface Roles {
  readonly receive: boolean
  readonly work: boolean
  readonly gather: boolean
  readonly dispatch: boolean
  readonly reconcile: boolean
  /** The web page and its API. */
  readonly console: boolean
}

/** What to serve. */
export interface ServeOptions {
  readonly world: CommandWorld
  readonly project: Project
  readonly log: Log
  readonly closing: Closing
  readonly roles: Roles
  readonly host: string
  readonly port: number
  /** Taken instead of the port when that is in use; undefined: being in use is an error. */
  readonly otherPort?: number
  readonly pretty: boolean
  /** Milliseconds for what is in hand when it stops. */
  readonly stopMs: number
}

/** A served project. */
export interface Serving {
  /** `http://127.0.0.1:4000`: how this machine reaches it. */
  readonly url: string
  /** From now on `/readyz` answers by what the database says. */
  ready(): void
  setLogLevel(level: LogLevel): void
  /** Ends the worker at once. */
  killWorker(): void
}

/** Starts the server and the worker; what they need is checked and registered already. */
export async function serve(options: ServeOptions): Promise<Serving> {
  const { project, log, closing, roles, stopMs } = options
  const { parts } = project
  // before anything listens: a console that would be open to anybody is no console
  const routes = extraRoutes(options)
  let isReady = false
  closing.add('log', logSignals(parts.signals, log))
  const metrics = createMetrics(parts.signals, () => gauges(parts.database()))
  const worker = workerRoles.some((role) => roles[role])
    ? startableWorker(options, metrics)
    : undefined
  const receiver = parts.receiver()
  closing.add('metrics', () => metrics.stop())
  const server = createHookledgerServer({
    ingest: (request) => receiver.ingest(request),
    hasSource: (name) => roles.receive && receiver.hasSource(name),
    onRefused: (source, reason, status) => void receiver.refuse(source, reason, { status }),
    limits: parts.config.limits,
    ready: async () => isReady && (await schemaVersion(parts.database())) >= newestMigration,
    metrics: () => metrics.render(),
    ...(routes !== undefined && { routes }),
  })
  const address = await listen(options, server)
  if (worker !== undefined) {
    closing.add('worker', () => worker.stop(stopMs))
    parts.signals.on('inbox.events.stored', () => worker.wake('work'))
    parts.signals.on('outbox.operations.recorded', () => worker.wake('dispatch'))
    await worker.start()
  }
  if (roles.console) {
    const bulk = bulkLoop(parts)
    bulk.start()
    closing.add('bulk', () => bulk.stop())
  }
  // the last to be opened is the first to be closed: nothing new comes in while the worker finishes
  closing.add('server', () => server.stop(stopMs))
  return {
    url: urlOf(address),
    ready: () => {
      isReady = true
    },
    setLogLevel(level) {
      log.level = level
      worker?.setLogLevel(level)
    },
    killWorker: () => worker?.kill(),
  }
}

/** What the worker process does. */
const workerRoles = ['work', 'gather', 'dispatch', 'reconcile'] as const

async function listen(
  options: ServeOptions,
  server: ReturnType<typeof createHookledgerServer>,
): Promise<AddressInfo> {
  const { host, port, otherPort } = options
  try {
    return await server.listen(port, host)
  } catch (error) {
    const taken = error instanceof Error && 'code' in error && error.code === 'HKL_SERVER_IN_USE'
    if (!taken || otherPort === undefined) throw error
    return server.listen(otherPort, host)
  }
}

function startableWorker(options: ServeOptions, metrics: Metrics): WorkProcess {
  const { world, project, log, pretty, roles } = options
  return new WorkProcess({
    args: [
      'internal-work',
      '--config',
      project.file,
      '--roles',
      workerRoles.filter((role) => roles[role]).join(','),
      ...(pretty ? ['--pretty'] : []),
      '--log-level',
      log.level,
    ],
    env: world.environment.forChild({}) as NodeJS.ProcessEnv,
    onReport: ({ readings }) => metrics.add(readings),
    onDeath: (how, restartMs) =>
      log.warn(
        { restart_ms: restartMs },
        `the worker ${how}: another one starts in ${restartMs} ms`,
      ),
  })
}

/** What is served beside webhooks: the console, and what the configuration has of its own. */
function extraRoutes(options: ServeOptions): ExtraRoutes | undefined {
  const all = [consoleRoutes(options), appRoutes(options)].filter((each) => each !== undefined)
  if (all.length === 0) return undefined
  return (request, response, path) => all.some((routes) => routes(request, response, path))
}

/** @throws HookledgerError HKL_CONSOLE_OPEN where nothing says who may come in and others can reach it */
function consoleRoutes({ project, roles, host }: ServeOptions): ExtraRoutes | undefined {
  if (!roles.console) return undefined
  const own = mountConsole(project.parts, { isLocal: isLoopback(host) })
  return (request, response, path) => {
    if (!own.isOwn(path)) return false
    own.node(request, response)
    return true
  }
}

function appRoutes({ project }: ServeOptions): ExtraRoutes | undefined {
  const { loaded, parts } = project
  if (loaded.routes === undefined) return undefined
  const transaction = <T>(work: (tx: TransactionLike) => Promise<T>): Promise<T> =>
    parts
      .database()
      .transaction((tx) =>
        work({ query: (text, values) => tx.execute({ text, values: (values ?? []) as never }) }),
      )
  return loaded.routes({ hookledger: loaded.hookledger, transaction })
}

/** An address that listens on everything is reached on this machine's own. */
function urlOf({ address, port }: AddressInfo): string {
  const own = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : address
  return `http://${own.includes(':') ? `[${own}]` : own}:${port}`
}
