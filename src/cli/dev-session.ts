/**
 * One run of `dev`: an embedded PostgreSQL unless DATABASE_URL names another, the schema, a simulated
 * provider, the server and a worker. What is stopped finishes first, the database server last of all.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { HookledgerError } from '../core/errors.ts'
import { createLog, type LogLevel } from '../observe/log.ts'
import { acquireDirectoryLock } from '../postgres/embedded/directory-lock.ts'
import { migrate } from '../postgres/migrate.ts'
import { Closing } from './closing.ts'
import type { CommandWorld } from './command.ts'
import { developmentSecret, findRunningDev, removeDevFile, writeDevFile } from './dev-file.ts'
import { keepPostgres, type KeptPostgres } from './embedded.ts'
import type { ExitCode } from './exit-codes.ts'
import { tellFailure } from './failure.ts'
import { openMail, type Mail } from './mail.ts'
import type { Output } from './output.ts'
import { connect, openProject, type Project } from './project.ts'
import { deliverTo, openProvider, type Provider } from './provider.ts'
import { serve, type Serving } from './serve.ts'
import { listenForShutdown, type Shutdown } from './shutdown.ts'
import { requireDemoShop, simulate, type SimulateOptions } from './simulate.ts'

/** The port where none is asked for; another one when it is taken. */
export const defaultPort = 4000
/** Milliseconds for what is in hand at the end. */
const stopMs = 8000
/** How often, and how many times, another `dev` that has no dev.json (any more) is looked at again. */
const lockEveryMs = 250
const lockTries = 40

/** How to run. */
export interface DevOptions {
  readonly file: string
  readonly port: number | undefined
  readonly host: string
  /** How many orders to simulate; null for none. */
  readonly simulated: number | null
  readonly console: boolean
}

/** Where everything is; the keys are what `--json` prints. */
interface Where {
  readonly url: string
  /** The web page for people; absent where it is left out. */
  readonly console_url?: string
  readonly webhooks: string
  readonly database_url: string
  readonly provider_url: string
  /** Where emails go; absent for a configuration that sends none. */
  readonly email_url?: string
}

/** The name of the source that takes the simulated provider's deliveries. */
function stripeSource({ parts }: Project): string {
  return (
    [...parts.config.sources.values()].find(({ source }) => source.provider === 'stripe')?.name ??
    'stripe'
  )
}

/** Whether the configuration is one that emails go out of. */
function sendsEmails({ parts }: Project): boolean {
  return parts.config.destinations.has('email')
}

/** One run of `dev`. */
export class DevSession {
  readonly #world: CommandWorld
  readonly #out: Output
  readonly #closing: Closing
  readonly #shutdown: Shutdown
  #postgres: KeptPostgres | undefined
  #serving: Serving | undefined
  #failed = false

  constructor(world: CommandWorld, out: Output) {
    this.#world = world
    this.#out = out
    this.#closing = new Closing((name, error) =>
      out.warn(`${name} did not close: ${tellFailure(error).line}`),
    )
    this.#shutdown = listenForShutdown((signal) => void this.#stopAtOnce(signal))
  }

  async run(options: DevOptions): Promise<ExitCode> {
    try {
      await this.#work(options)
    } finally {
      await this.#closing.close()
    }
    return this.#failed ? 1 : 0
  }

  async #work(options: DevOptions): Promise<void> {
    await this.#lock()
    await this.#openDatabase()
    const provider = await this.#openProvider()
    const mail = await this.#openMail()
    if (this.#shutdown.signal.aborted) return
    const project = await this.#openProject(options)
    const databaseUrl = this.#world.environment.databaseUrl ?? ''
    const serving = await this.#serve(project, options)
    const { dataDir } = this.#world.environment
    writeDevFile(dataDir, {
      url: serving.url,
      databaseUrl,
      pid: process.pid,
      providerUrl: provider.url,
      emailUrl: mail.url,
    })
    this.#closing.add('dev.json', () => removeDevFile(dataDir))
    serving.ready()
    const webhooks = `${serving.url}/webhooks/${stripeSource(project)}`
    const sender = deliverTo(provider, webhooks, this.#closing)
    this.#tellWhere({
      url: serving.url,
      ...(options.console && { console_url: `${serving.url}/console` }),
      webhooks,
      database_url: databaseUrl,
      provider_url: provider.url,
      ...(sendsEmails(project) && { email_url: mail.url }),
    })
    if (options.simulated !== null)
      await this.#simulate(project, { provider, mail, sender, orders: options.simulated })
    serving.setLogLevel(this.#logLevel(false))
    await this.#shutdown.requested
    this.#out.note('stopping: what is in hand is finished first')
  }

  async #simulate(
    project: Project,
    played: Pick<SimulateOptions, 'provider' | 'mail' | 'sender' | 'orders'>,
  ): Promise<void> {
    const { db, close } = connect(this.#world, project)
    const url = this.#serving?.url ?? ''
    const signal = this.#shutdown.signal
    try {
      await simulate({
        out: this.#out,
        world: this.#world,
        project,
        ...played,
        db,
        url,
        signal,
      })
    } finally {
      await close()
    }
  }

  /**
   * One `dev` for a data directory: the provider's files and dev.json have one writer. One that is
   * just ending is waited for; one that runs is told of.
   */
  async #lock(): Promise<void> {
    const { dataDir } = this.#world.environment
    const directory = join(dataDir, 'dev')
    try {
      mkdirSync(directory, { recursive: true })
    } catch (error) {
      const why = (error as NodeJS.ErrnoException).code
      throw new HookledgerError(
        'HKL_CONFIG_INVALID',
        `HOOKLEDGER_DATA_DIR must be a directory that this user may write to, not ${JSON.stringify(dataDir)} (${why})`,
        { cause: error },
      )
    }
    for (let tries = 0; ; tries++) {
      try {
        const lock = await acquireDirectoryLock(directory)
        this.#closing.add('lock', () => lock.release())
        return
      } catch (error) {
        const running = findRunningDev(dataDir)
        if (running === null && tries < lockTries && !this.#shutdown.signal.aborted) {
          await sleep(lockEveryMs)
          continue
        }
        const where = running === null ? '' : ` at ${running.url} (process ${running.pid})`
        throw new HookledgerError(
          'HKL_SERVER_IN_USE',
          `another hookledger dev${where} uses ${dataDir}: stop it first, or choose another HOOKLEDGER_DATA_DIR`,
          { cause: error },
        )
      }
    }
  }

  async #openDatabase(): Promise<void> {
    const { environment } = this.#world
    if (environment.databaseUrl !== undefined) return
    const note = (text: string): void => this.#out.note(text)
    this.#postgres = await keepPostgres({
      dataDir: environment.dataDir,
      note,
      warn: (text) => this.#out.warn(text),
      onLost: () => {
        this.#failed = true
        this.#shutdown.request()
      },
    })
    this.#closing.add('embedded PostgreSQL', () => this.#postgres?.stop('fast'))
    environment.provide('DATABASE_URL', this.#postgres.url)
  }

  async #openProvider(): Promise<Provider> {
    const { environment } = this.#world
    const provider = await openProvider(environment, this.#closing)
    environment.provide('STRIPE_API_BASE', provider.url)
    environment.provide('STRIPE_WEBHOOK_SECRET', developmentSecret)
    return provider
  }

  async #openMail(): Promise<Mail> {
    const { environment } = this.#world
    const mail = await openMail(environment, this.#closing)
    environment.provide('SHOP_EMAIL_URL', mail.url)
    return mail
  }

  /** Loads the configuration and brings the database to what it needs. */
  async #openProject({ file, simulated }: DevOptions): Promise<Project> {
    const project = await openProject(this.#world, file)
    if (simulated !== null) requireDemoShop(project)
    const { parts, loaded } = project
    const { environment, limits } = parts.config
    const { db, close } = connect(this.#world, project)
    try {
      const { applied } = await migrate(db, {
        environment,
        partitionsAheadDays: limits.partitionsAheadDays,
      })
      if (applied.length > 0)
        this.#out.note(`migrated schema ${db.schemaName}: ${applied.join(', ')}`)
      await loaded.setup?.({ query: (text) => db.query({ text }) })
    } finally {
      await close()
    }
    this.#closing.add('database', () => parts.close())
    const { warnings } = await parts.register()
    for (const warning of warnings) this.#out.warn(warning)
    return project
  }

  async #serve(project: Project, options: DevOptions): Promise<Serving> {
    const { stderr, environment } = this.#world
    const pretty = stderr.isTTY === true
    const log = createLog({
      level: this.#logLevel(options.simulated !== null),
      pretty,
      color: pretty && !environment.noColor,
    })
    this.#serving = await serve({
      world: this.#world,
      project,
      log,
      closing: this.#closing,
      // without a simulation a person says when the simulated provider is asked: hookledger reconcile
      roles: {
        receive: true,
        work: true,
        gather: true,
        dispatch: true,
        reconcile: options.simulated !== null,
        console: options.console,
      },
      host: options.host,
      port: options.port ?? defaultPort,
      ...(options.port === undefined ? { otherPort: 0 } : {}),
      pretty,
      stopMs,
    })
    return this.#serving
  }

  /** A simulation has its own words for what it does; a terminal shows every outcome, a file only what matters. */
  #logLevel(simulating: boolean): LogLevel {
    const { environment, stderr } = this.#world
    return environment.logLevel ?? (simulating ? 'error' : stderr.isTTY === true ? 'info' : 'warn')
  }

  #tellWhere(where: Where): void {
    this.#out.result(where, (safe, style) =>
      [
        `${style.strong('hookledger')} at ${safe.url}`,
        ...(safe.console_url === undefined ? [] : [`  console     ${safe.console_url}`]),
        `  webhooks    POST ${safe.webhooks}`,
        `  database    ${safe.database_url}`,
        `  provider    ${safe.provider_url} (simulated)`,
        ...(safe.email_url === undefined ? [] : [`  emails      ${safe.email_url}`]),
      ].join('\n'),
    )
  }

  /** Nothing is lost by it: what was in hand is rolled back, and the database recovers. */
  async #stopAtOnce(signal: NodeJS.Signals): Promise<void> {
    this.#serving?.killWorker()
    const patience = new Promise((resolve) => setTimeout(resolve, 2000))
    await Promise.race([this.#postgres?.stop('immediate').catch(() => {}), patience])
    removeDevFile(this.#world.environment.dataDir)
    process.exit(signal === 'SIGINT' ? 130 : 143)
  }
}
