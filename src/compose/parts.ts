/**
 * Wires the parts of one configuration: made lazily, since creating Hookledger connects to nothing.
 */
import { HookledgerError } from '../core/errors.ts'
import { createSignals, type Signals } from '../core/signals.ts'
import { runBatch, runSuspect } from '../inbox/run-batch.ts'
import { Receiver } from '../inbox/receiver.ts'
import { createScan } from '../inbox/scan.ts'
import { sweepOnce, type SweepContext } from '../inbox/sweep.ts'
import type { WorkContext } from '../inbox/work-batch.ts'
import { createLedger } from '../ledger/ledger.ts'
import {
  areNewest,
  configurationVersion,
  registerStates,
  registerWorkflows,
  type ConfigurationVersion,
} from '../ledger/register.ts'
import { registerDestinations } from '../outbox/destination-row.ts'
import type { Dispatcher } from '../outbox/dispatcher.ts'
import { createOutboxPort } from '../outbox/outbox-port.ts'
import { requireHealthy } from '../postgres/doctor.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { installation, type Installation } from '../postgres/migrate.ts'
import { describeDatabaseError } from '../postgres/sqlstate.ts'
import { createDatabase, createPool } from '../postgres/pool.ts'
import { checkWorkflow } from '../workflow/check-workflow.ts'
import type { AppOperation } from '../workflow/outbox-port.ts'
import type { Workflow } from '../workflow/workflow.ts'
import { requireConnections } from './connections.ts'
import { contentOf } from './content.ts'
import { environmentVariable } from './environment.ts'
import type { HookledgerOptions, ResolvedConfig } from './options.ts'
import { resolveOptions } from './options.ts'
import { outboxWrites } from './outbox-writes.ts'
import { emitOutcomes } from './outcome-signals.ts'
import { outboxActs, outboxDispatcher, type OutboxActs, type OutboxParts } from './outbox.ts'
import { inboxSources, sourceLookup } from './sources.ts'
import { runUpkeep, upkeepOnArrival } from './upkeep.ts'
import { createWorker, type Worker, type WorkerOptions } from './worker.ts'

/** What `runOnce` came to. */
export interface RunOnceResult {
  /** Events that were decided. */
  readonly events: number
  /** Operations that ended. */
  readonly operations: number
  /** True when nothing was left to do, false when the budget ended first. */
  readonly idle: boolean
}

/** The wired parts behind a {@link Hookledger}: for its own server, command line and testing kit. */
export class HookledgerParts {
  readonly signals: Signals = createSignals()
  readonly #options: HookledgerOptions
  #config: ResolvedConfig | undefined
  #database: Database | undefined
  #ownPool: { end(): Promise<void> } | undefined
  #databaseUrl: string | undefined
  #receiver: Receiver | undefined
  #stopUpkeep: (() => Promise<void>) | undefined
  #installation: Promise<Installation> | undefined
  #registered: Promise<{ readonly warnings: readonly string[] }> | undefined
  #areStatesKnown = false
  #upkeptAt: number | undefined

  constructor(options: HookledgerOptions) {
    this.#options = options
  }

  /** The resolved configuration. @throws HookledgerError for bad options, in one line. */
  get config(): ResolvedConfig {
    this.#config ??= resolveOptions(this.#options)
    return this.#config
  }

  /** Uses this URL where the configuration names no database. Before first use only. */
  useDatabase(url: string): void {
    this.#databaseUrl = url
  }

  /** @throws HookledgerError HKL_CONFIG_INVALID when no database is configured. */
  database(): Database {
    this.#database ??= this.#connect()
    return this.#database
  }

  #connect(): Database {
    const { database, schemaName, limits } = this.config
    if (database !== undefined && typeof database !== 'string') {
      requireConnections(database)
      // the app's own pool may wait for ever for a connection that fell silent: a worker may not
      return createDatabase(database, schemaName, {
        answerWithinMs: limits.statementTimeoutMs + 5000,
      })
    }
    const url = database ?? this.#databaseUrl ?? environmentVariable('DATABASE_URL')
    if (url === undefined) {
      throw new HookledgerError(
        'HKL_CONFIG_INVALID',
        'no database: set DATABASE_URL, or give `database` in the configuration, or run "hookledger dev"',
      )
    }
    const pool = createPool({
      connectionString: url,
      statementTimeoutMs: limits.statementTimeoutMs,
    })
    this.#ownPool = pool
    return createDatabase(pool, schemaName)
  }

  receiver(): Receiver {
    this.#requireSources()
    // an endpoint stays healthy while no worker is there
    this.#stopUpkeep ??= upkeepOnArrival(this.signals, () =>
      runUpkeep(this.database(), this.config.limits),
    )
    this.#receiver ??= new Receiver({
      database: this.database(),
      sources: inboxSources(this.config.sources),
      limits: this.config.limits,
      signals: this.signals,
    })
    return this.#receiver
  }

  /** What `migrate` fixed, read once: on `tx` where one is given, since the pool may have no other connection. */
  installation(tx?: Executor): Promise<Installation> {
    const { schema, schemaName } = this.database()
    const db = tx === undefined ? this.database() : { schema, schemaName, query: tx.query.bind(tx) }
    this.#installation ??= installation(db).catch((error: unknown) => {
      this.#installation = undefined
      throw error
    })
    return this.#installation
  }

  /** Start checks and registration. @throws HookledgerError where a promise would not hold. */
  register(): Promise<{ readonly warnings: readonly string[] }> {
    return this.#remember(this.#register({ checksWorkflows: true }))
  }

  /**
   * Registers once in this process where nothing was started (`runOnce` and `waitUntil` on a serverless
   * host): decisions name registered states. Histories are not played: somebody is waiting.
   */
  ensureRegistered(): Promise<unknown> {
    return this.#registered ?? this.#remember(this.#register({ checksWorkflows: false }))
  }

  /** The same for the states of one workflow, inside the app's own transaction. */
  async knowStates(tx: Executor, workflow: Workflow): Promise<void> {
    if (!this.#areStatesKnown) await registerStates(this.database(), tx, workflow)
  }

  #remember(
    registering: Promise<{ readonly warnings: readonly string[] }>,
  ): Promise<{ readonly warnings: readonly string[] }> {
    this.#registered = registering.catch((error: unknown) => {
      this.#registered = undefined
      throw error
    })
    return this.#registered
  }

  async #register({
    checksWorkflows,
  }: {
    readonly checksWorkflows: boolean
  }): Promise<{ readonly warnings: readonly string[] }> {
    const { config } = this
    const warnings = await this.#requireHealthy()
    const sends = new Map([...config.sources].map(([name, { source }]) => [name, source.sends]))
    const outbox = createOutboxPort((await this.installation()).id, config.destinations)
    for (const workflow of checksWorkflows ? config.workflows : []) {
      warnings.push(...checkWorkflow(workflow, sends, outbox).map((each) => each.message))
    }
    const registered = await registerWorkflows(
      this.database(),
      config.workflows,
      config.entitlementRules,
      this.#version(),
    )
    this.#areStatesKnown = true
    warnings.push(...(await registerDestinations(this.database(), config.destinations)))
    warnings.push(...registered.warnings)
    for (const message of warnings) this.signals.emit('config.warned', { message })
    return { warnings }
  }

  /**
   * The start checks alone, for a process that only receives: its role may not register anything.
   *
   * @throws HookledgerError where a promise would not hold
   */
  async check(): Promise<{ readonly warnings: readonly string[] }> {
    const warnings = await this.#requireHealthy()
    for (const message of warnings) this.signals.emit('config.warned', { message })
    return { warnings }
  }

  /**
   * Reports and repairs need no signing secret: who reads them at night may not have it. Whoever
   * starts or receives does.
   */
  #requireSources(): void {
    for (const { source } of this.config.sources.values())
      if (source.problem !== undefined) throw source.problem
    for (const [name, { problem }] of this.config.destinations)
      if (problem !== undefined)
        throw new HookledgerError('HKL_CONFIG_INVALID', `destination "${name}": ${problem}`)
  }

  async #requireHealthy(): Promise<string[]> {
    const { acceptDurability, environment, limits } = this.config
    this.#requireSources()
    return requireHealthy(this.database(), {
      acceptDurability,
      environment,
      lockTimeoutMs: limits.lockTimeoutMs,
    })
  }

  #version(): ConfigurationVersion {
    const { workflows, sources, handlers } = this.config
    const words = [...sources].map(
      ([name, { source, account }]) => `${name} ${source.provider} ${account}`,
    )
    return configurationVersion(workflows, words, handlers)
  }

  /** Contexts for working on batches and for sweeping. */
  async contexts(): Promise<{ readonly work: WorkContext; readonly sweep: SweepContext }> {
    const { config, signals } = this
    await this.ensureRegistered()
    const db = this.database()
    const installed = await this.installation()
    const ledger = createLedger(db, installed, config.findings)
    const sources = sourceLookup(config.sources)
    const worker = `worker:${process.pid}`
    const { limits, registry, environment } = config
    const version = this.#version()
    const reading = { sources, parse: (bytes: Uint8Array) => contentOf(bytes, limits) }
    const work = {
      ...outboxWrites(db.schema, installed.id, config.destinations),
      db,
      ledger,
      reading,
      registry,
      environment,
      mayIgnore: (tx: Executor) => areNewest(db.schema, tx, config.workflows, version),
      limits,
      signals,
      worker,
    }
    return { work, sweep: { db, ledger, sources, limits, worker } }
  }

  async worker(options: WorkerOptions = {}): Promise<Worker> {
    const { work, sweep } = await this.contexts()
    const worker = createWorker(
      {
        work,
        sweep,
        upkeep: async () => void (await runUpkeep(work.db, work.limits)),
      },
      options,
    )
    const unhear = [
      this.signals.on('inbox.events.stored', () => worker.wake()),
      this.signals.on('outbox.events.woken', () => worker.wake()),
    ]
    return {
      ...worker,
      stop: (timeoutMs) => {
        for (const each of unhear) each()
        return worker.stop(timeoutMs)
      },
    }
  }

  async #outboxParts(): Promise<OutboxParts> {
    const { destinations, findings: policy, limits } = this.config
    const { id: installationId } = await this.installation()
    const db = this.database()
    return { db, installationId, destinations, policy, limits, signals: this.signals }
  }

  /** The dispatch role of this process: nothing is sent before it is started. */
  async dispatcher(): Promise<Dispatcher> {
    await this.ensureRegistered()
    const dispatcher = outboxDispatcher(await this.#outboxParts())
    const unhear = this.signals.on('outbox.operations.recorded', ({ destinations }) => {
      dispatcher.wake(destinations)
    })
    return {
      ...dispatcher,
      stop: (timeoutMs) => {
        unhear()
        return dispatcher.stop(timeoutMs)
      },
    }
  }

  /** What a person decides about operations. */
  async outboxActs(): Promise<OutboxActs> {
    return outboxActs(await this.#outboxParts())
  }

  /** Records an operation of the app's in its own transaction. */
  async addOperation(tx: Executor, operation: AppOperation): Promise<'added' | 'existed'> {
    const { id } = await this.installation(tx)
    const { destinations } = this.config
    const writes = outboxWrites(this.database().schema, id, destinations)
    const answer = await writes.addOperation(tx, operation)
    if (answer === 'added')
      this.signals.emit('outbox.operations.recorded', { destinations: [operation.to] })
    return answer
  }

  /** Works off what is ready, for hosts without a long-lived worker. */
  async runOnce(options: { readonly budgetMs: number }): Promise<RunOnceResult> {
    const until = performance.now() + options.budgetMs
    const contexts = await this.contexts()
    const dispatcher = outboxDispatcher(await this.#outboxParts())
    await sweepOnce(contexts.sweep)
    let events = 0
    let operations = 0
    // what was decided may have to be sent, and what was sent may let a waiting event be decided
    for (let more = true; more;) {
      const decided = await this.#decideUntil(contexts.work, until)
      events += decided.events
      if (!decided.idle) return { events, operations, idle: false }
      const dispatched = await dispatcher.drain(until)
      operations += dispatched.operations
      if (!dispatched.idle) return { events, operations, idle: false }
      more = dispatched.operations > 0
    }
    await this.#upkeepOnce()
    return { events, operations, idle: true }
  }

  async #decideUntil(
    work: WorkContext,
    until: number,
  ): Promise<{ readonly events: number; readonly idle: boolean }> {
    const scan = createScan(work)
    let events = 0
    for (let more = true; more;) {
      if (performance.now() >= until) return { events, idle: false }
      const next = await scan.next()
      const suspect = next.more ? null : await runSuspect(work)
      const settled = [...next.report.settled, ...(suspect?.settled ?? [])]
      emitOutcomes(this.signals, settled)
      events += settled.length
      more = next.more || (suspect !== null && suspect.settled.length > 0)
    }
    return { events, idle: true }
  }

  /** A host without a long-lived worker still needs partitions ahead and retention, now and then. */
  async #upkeepOnce(): Promise<void> {
    const now = performance.now()
    if (this.#upkeptAt !== undefined && now - this.#upkeptAt < 3_600_000) return
    this.#upkeptAt = now
    try {
      await runUpkeep(this.database(), this.config.limits)
    } catch (error) {
      // the events are decided: somebody in the way of a partition must not look like a failure of theirs
      this.signals.emit('worker.loop.failed', {
        loop: 'upkeep',
        message: describeDatabaseError(error),
      })
    }
  }

  /** Works off exactly these events, if they are ready. */
  async workOff(keys: readonly bigint[]): Promise<void> {
    const { work } = await this.contexts()
    const report = await runBatch(work, { kind: 'these', keys })
    emitOutcomes(this.signals, report.settled)
  }

  async close(): Promise<void> {
    await this.#receiver?.stop()
    this.#receiver = undefined
    await this.#stopUpkeep?.()
    this.#stopUpkeep = undefined
    await this.#ownPool?.end()
    this.#ownPool = undefined
    this.#database = undefined
    this.#installation = undefined
    this.#registered = undefined
    this.#areStatesKnown = false
  }
}
