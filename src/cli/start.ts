/**
 * `hookledger start`: the stand-alone server, as many as you like. It never migrates: what the
 * database lacks is said, and is `hookledger migrate`'s to do.
 */
import type { CommandDef } from 'citty'
import { nearest } from '../core/nearest.ts'
import { createLog } from '../observe/log.ts'
import { Closing } from './closing.ts'
import { command, usageError } from './command.ts'
import { tellFailure } from './failure.ts'
import { openProject } from './project.ts'
import { serve, type Roles, type Serving } from './serve.ts'
import { listenForShutdown } from './shutdown.ts'

const knownRoles = ['receive', 'work', 'gather', 'dispatch', 'reconcile', 'console'] as const
const defaultPort = 4000
const defaultHost = '127.0.0.1'
/** Milliseconds for what is in hand at the end. */
const stopMs = 10_000

/** The command. */
export const startCommand: CommandDef = command(
  {
    name: 'start',
    description:
      'The stand-alone server: receives, and shows the console; works, gathers, dispatches and reconciles in a process of its own',
  },
  {
    roles: {
      type: 'string',
      description: `What it does: ${knownRoles.join(', ')} (all without it)`,
      valueHint: 'ROLES',
    },
    port: { type: 'string', description: `PORT without it, else ${defaultPort}` },
    host: { type: 'string', description: `HOST without it, else ${defaultHost}` },
  },
  async ({ args, list, out, world }) => {
    const { environment } = world
    environment.checkAll()
    const roles = rolesOf(args.roles === undefined ? knownRoles : list('roles'))
    const port = portOf(args.port) ?? environment.port ?? defaultPort
    const host = args.host ?? environment.host ?? defaultHost
    let serving: Serving | undefined
    const shutdown = listenForShutdown((signal) => {
      serving?.killWorker()
      process.exit(signal === 'SIGINT' ? 130 : 143)
    })
    const closing = new Closing((name, error) =>
      out.warn(`${name} did not close: ${tellFailure(error).line}`),
    )
    try {
      const project = await openProject(world, args.config)
      const { parts } = project
      closing.add('database', () => parts.close())
      const log = createLog({ level: environment.logLevel ?? 'warn', pretty: false, color: false })
      // who only receives decides nothing: its role may not register, and it must not make others' version old
      const { registration } = parts
      const { warnings } = await (onlyReceives(roles)
        ? registration.check()
        : registration.register())
      for (const warning of warnings) log.warn({}, warning)
      serving = await serve({
        world,
        project,
        log,
        closing,
        roles,
        host,
        port,
        pretty: false,
        stopMs,
      })
      serving.ready()
      const sources = [...parts.config.sources.keys()].map((name) => `/webhooks/${name}`)
      out.note(
        `hookledger serves ${serving.url} (${Object.entries(roles)
          .flatMap(([role, on]) => (on ? [role] : []))
          .join(
            ', ',
          )})${roles.receive ? `: POST ${sources.join(', ')}` : ''}${roles.console ? `; console at ${serving.url}/console` : ''}`,
      )
      await shutdown.requested
      out.note('stopping: what is in hand is finished first')
    } finally {
      await closing.close()
    }
    return 0
  },
)

function rolesOf(names: readonly string[]): Roles {
  for (const name of names) {
    if (knownRoles.some((role) => role === name)) continue
    const near = nearest(name, knownRoles)
    throw usageError(
      `--roles: unknown role "${name}"${near === null ? '' : `, did you mean ${near}?`}; known are ${knownRoles.join(', ')}`,
    )
  }
  if (names.length === 0)
    throw usageError(`--roles must name one or more of ${knownRoles.join(', ')}`)
  return {
    receive: names.includes('receive'),
    work: names.includes('work'),
    gather: names.includes('gather'),
    dispatch: names.includes('dispatch'),
    reconcile: names.includes('reconcile'),
    console: names.includes('console'),
  }
}

function onlyReceives({ receive, ...others }: Roles): boolean {
  return receive && !Object.values(others).includes(true)
}

/** @throws HookledgerError HKL_CLI_USAGE unless it is a port; 0 lets the system choose. */
export function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw usageError(`--port must be a whole number from 0 to 65535, not "${text}"`)
}
