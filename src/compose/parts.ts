/**
 * Wires the parts of one configuration: made lazily, since creating Hookledger connects to nothing.
 */
import { HookledgerError } from '../core/errors.ts'
import { createSignals, type Signals } from '../core/signals.ts'
import { ApiVersions } from '../inbox/api-versions.ts'
import type { GatherContext } from '../inbox/gather/gather-context.ts'
import { createGatherer, type Gatherer } from '../inbox/gather/gatherer.ts'
import { runBatch } from '../inbox/run-batch.ts'
import { Receiver } from '../inbox/receiver.ts'
import type { SweepContext } from '../inbox/sweep.ts'
import type { WorkContext } from '../inbox/work-batch.ts'
import { createLedger } from '../ledger/ledger.ts'
import {
  areNewest,
  configurationVersion,
  registerStates,
  registerWorkflows,
  type ConfigurationVersion,
} from '../ledger/register.ts'
import { registerShadows } from '../ledger/shadow.ts'
import { registerDestinations } from '../outbox/destination-row.ts'
import type { Dispatcher } from '../outbox/dispatcher.ts'
import { createOutboxPort } from '../outbox/outbox-port.ts'
import { requireHealthy } from '../postgres/doctor.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import type { Repairs } from '../reconciliation/repair/repairs.ts'
import { installation, type Installation } from '../postgres/migrate.ts'
import { createDatabase, createPool } from '../postgres/pool.ts'
import { checkWorkflow } from '../workflow/check-workflow.ts'
import type { AppOperation } from '../workflow/outbox-port.ts'
import type { Workflow } from '../workflow/workflow.ts'
import { requireConnections } from './connections.ts'
import { contentOf } from './content.ts'
import { environmentVariable } from './environment.ts'
import { asksProviders, gatherContextOf, requireApis, unaskedFindings } from './gatherer.ts'
import { createHeartbeat, type Heartbeat } from './heartbeat.ts'
import type { HookledgerOptions, ResolvedConfig } from './options.ts'
import { resolveOptions } from './options.ts'
import { outboxWrites } from './outbox-writes.ts'
import { tellEntitlementChanges } from './entitlement-changes.ts'
import { emitAsked, emitEntitled, emitOutcomes } from './outcome-signals.ts'
import { outboxActs, outboxDispatcher, type OutboxActs, type OutboxParts } from './outbox.ts'
import { createReconciler, type Reconciler, type ReconcilerOptions } from './reconciliation.ts'
import { repairsOf } from './repairs.ts'
import { decideGathering, RunOnce, type RunOnceResult } from './run-once.ts'
import { watchShadow } from './shadow-watch.ts'
import { inboxSources, sourceLookup, versionedSources } from './sources.ts'
import { runUpkeep, upkeepOnArrival } from './upkeep.ts'
import { createWorker, type Worker, type WorkerOptions } from './worker.ts'

/** How long a pass decides at a time what it waits for, in milliseconds. */
const decideMs = 1000

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
  readonly #runOnce: RunOnce = new RunOnce()

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
    if (checksWorkflows) requireApis(config.registry, config.sources)
    const warnings = await this.#requireHealthy()
    const sends = new Map([...config.sources].map(([name, { source }]) => [name, source.sends]))
    const outbox = createOutboxPort((await this.installation()).id, config.destinations)
    for (const workflow of checksWorkflows ? config.workflows : []) {
      const declared = workflow.shadowOf ?? workflow
      warnings.push(...checkWorkflow(declared, sends, outbox).map((each) => each.message))
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
    warnings.push(...(await registerShadows(this.database(), config.workflows)))
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
    const tellsEvents = config.entitlementChanges.to !== null
    const ledger = createLedger(db, installed, config.findings, tellsEvents)
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
      versions: new ApiVersions(versionedSources(config.sources)),
      registry,
      environment,
      mayIgnore: (tx: Executor) => areNewest(db.schema, tx, config.workflows, version),
      unaskedFindings: unaskedFindings(db, installed.id),
      limits,
      signals,
      worker,
    }
    return { work, sweep: { db, ledger, sources, limits, worker } }
  }

  /** Tells that this process is at work in these roles. */
  heartbeat(roles: readonly string[]): Heartbeat {
    return createHeartbeat(this.database(), this.signals, roles)
  }

  async worker(options: WorkerOptions = {}): Promise<Worker> {
    const { work, sweep } = await this.contexts()
    const worker = createWorker(
      {
        work,
        sweep,
        upkeep: async () => {
          await runUpkeep(work.db, work.limits)
          await watchShadow(work.db, this.config, this.signals)
        },
        tellChanges: () => this.tellChanges(work.addOperation),
      },
      options,
    )
    const unhear = [
      this.signals.on('inbox.events.stored', () => worker.wake()),
      this.signals.on('outbox.events.woken', () => worker.wake()),
      this.signals.on('gather.answers.stored', () => worker.wake()),
      this.signals.on('reconcile.events.injected', () => worker.wake()),
    ]
    return {
      ...worker,
      stop: (timeoutMs) => {
        for (const each of unhear) each()
        return worker.stop(timeoutMs)
      },
    }
  }

  /** Notes what ended by the clock and tells of changed entitlements; resolves with how many were told. */
  tellChanges(addOperation: WorkContext['addOperation']): Promise<number> {
    const { to } = this.config.entitlementChanges
    return tellEntitlementChanges({
      db: this.database(),
      to,
      signals: this.signals,
      addOperation,
    })
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

  /** Whether the gather role has anything to do: some workflow mirrors or gathers. */
  get asksProviders(): boolean {
    return asksProviders(this.config.registry)
  }

  /** What a gatherer works with. */
  async gatherContext(): Promise<GatherContext> {
    const { registry, sources, gather: settings, findings: policy, limits } = this.config
    const { id: installationId } = await this.installation()
    const reading = {
      sources: sourceLookup(sources),
      parse: (bytes: Uint8Array) => contentOf(bytes, limits),
    }
    const { signals } = this
    const parts = { registry, sources, reading, settings, policy, limits, signals }
    return gatherContextOf({ db: this.database(), installationId, ...parts })
  }

  /** The gather role of this process: no provider is asked before it is started. */
  async gatherer(): Promise<Gatherer> {
    await this.ensureRegistered()
    const gatherer = createGatherer(await this.gatherContext())
    const unhear = this.signals.on('gather.answers.wanted', () => gatherer.wake())
    return {
      ...gatherer,
      stop: (timeoutMs) => {
        unhear()
        return gatherer.stop(timeoutMs)
      },
    }
  }

  /**
   * Asks at once for what these events wait for, within a budget. Resolves whether none of them waits for an
   * answer any more: they are ready to be decided then.
   */
  async gatherNow(keys: readonly bigint[], budgetMs: number): Promise<boolean> {
    if (!this.asksProviders || keys.length === 0) return true
    const gatherer = createGatherer(await this.gatherContext())
    return gatherer.gatherNow(keys, performance.now() + budgetMs)
  }

  /** The reconcile role of this process, and passes by hand. Nothing runs before it is started. */
  async reconciler(options: ReconcilerOptions = {}): Promise<Reconciler> {
    const installed = await this.installation()
    const { config, signals } = this
    const work = options.decides === true ? (await this.contexts()).work : null
    const gathers = work !== null && this.asksProviders
    const gatherer = gathers ? createGatherer(await this.gatherContext()) : null
    const repairs = await this.repairs()
    return createReconciler({
      db: this.database(),
      installed,
      config,
      signals,
      autoRepair: (signal) => repairs.automatic(config.autoRepair, signal),
      decide:
        work === null
          ? undefined
          : () => decideGathering({ work, signals, gatherer }, performance.now() + decideMs),
    })
  }

  /** What a person, or a rule of the configuration, does about findings. */
  repairs(): Promise<Repairs> {
    const { config, signals } = this
    return repairsOf({ db: this.database(), config, signals })
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
    const { limits } = this.config
    return this.#runOnce.run(
      {
        ...contexts,
        db: this.database(),
        dispatcher,
        gatherer: this.asksProviders ? createGatherer(await this.gatherContext()) : null,
        limits,
        signals: this.signals,
        tellChanges: () => this.tellChanges(contexts.work.addOperation),
      },
      until,
    )
  }

  /** Works off exactly these events, if they are ready. */
  async workOff(keys: readonly bigint[]): Promise<void> {
    const { work } = await this.contexts()
    const report = await runBatch(work, { kind: 'these', keys })
    emitOutcomes(this.signals, report.settled)
    emitEntitled(this.signals, report.settled)
    emitAsked(this.signals, report.asked)
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
