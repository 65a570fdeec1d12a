/**
 * Wires the parts of one configuration: made lazily, since creating Hookledger connects to nothing.
 */
import { createSignals, type Signals } from '../core/signals.ts'
import type { Tracing } from '../core/tracing.ts'
import { ApiVersions } from '../inbox/api-versions.ts'
import type { GatherContext } from '../inbox/gather/gather-context.ts'
import { createGatherer, type Gatherer } from '../inbox/gather/gatherer.ts'
import type { EventReading } from '../inbox/read-claimed.ts'
import { runBatch } from '../inbox/run-batch.ts'
import { Receiver } from '../inbox/receiver.ts'
import type { SweepContext } from '../inbox/sweep.ts'
import type { WorkContext } from '../inbox/work-batch.ts'
import { createLedger } from '../ledger/ledger.ts'
import { areNewest } from '../ledger/register.ts'
import { openTelemetry } from '../observe/traces.ts'
import type { Dispatcher } from '../outbox/dispatcher.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import type { Repairs } from '../reconciliation/repair/repairs.ts'
import { installation, type Installation } from '../postgres/migrate.ts'
import type { AppOperation } from '../workflow/outbox-port.ts'
import { connect, type Connected } from './connect.ts'
import { contentOf } from './content.ts'
import { asksProviders, gatherContextOf, unaskedFindings } from './gatherer.ts'
import { hearingUntilStopped } from './hearing.ts'
import { createHeartbeat, type Heartbeat } from './heartbeat.ts'
import type { HookledgerOptions, ResolvedConfig } from './options.ts'
import { resolveOptions } from './options.ts'
import { outboxWrites } from './outbox-writes.ts'
import { tellEntitlementChanges } from './entitlement-changes.ts'
import { emitAsked, emitEntitled, emitOutcomes } from './outcome-signals.ts'
import { outboxActs, outboxDispatcher, type OutboxActs, type OutboxParts } from './outbox.ts'
import { Registration, requireUsable, versionOf, type Registered } from './registration.ts'
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
  #connected: Connected | undefined
  #databaseUrl: string | undefined
  #receiver: Receiver | undefined
  #stopUpkeep: (() => Promise<void>) | undefined
  #installation: Promise<Installation> | undefined
  #tracing: Tracing | null | undefined
  #registration: Registration | undefined
  readonly #runOnce: RunOnce = new RunOnce()

  constructor(options: HookledgerOptions) {
    this.#options = options
  }

  /** The options as they were given: what a drill makes another one of. */
  get options(): HookledgerOptions {
    return this.#options
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
    this.#connected ??= connect(this.config, this.#databaseUrl)
    return this.#connected.database
  }

  /** Where traces go; null where they are off. @throws HookledgerError HKL_CONFIG_INVALID without the API */
  get tracing(): Tracing | null {
    this.#tracing ??= this.config.traces ? openTelemetry() : null
    return this.#tracing
  }

  receiver(): Receiver {
    requireUsable(this.config)
    // an endpoint stays healthy while no worker is there
    this.#stopUpkeep ??= upkeepOnArrival(this.signals, () =>
      runUpkeep(this.database(), this.config.limits),
    )
    this.#receiver ??= new Receiver({
      database: this.database(),
      sources: inboxSources(this.config.sources),
      limits: this.config.limits,
      signals: this.signals,
      tracing: this.tracing,
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

  /** Start checks, and what a start writes down. */
  get registration(): Registration {
    this.#registration ??= new Registration({
      config: this.config,
      signals: this.signals,
      database: () => this.database(),
      installation: () => this.installation(),
    })
    return this.#registration
  }

  /** Start checks and registration. @throws HookledgerError where a promise would not hold. */
  register(): Promise<Registered> {
    return this.registration.register()
  }

  /** Contexts for working on batches and for sweeping. */
  async contexts(): Promise<{ readonly work: WorkContext; readonly sweep: SweepContext }> {
    const { config, signals } = this
    await this.registration.ensure()
    const db = this.database()
    const installed = await this.installation()
    const tellsEvents = config.entitlementChanges.to !== null
    const ledger = createLedger(db, installed, config.findings, tellsEvents)
    const reading = readingOf(config)
    const worker = `worker:${process.pid}`
    const { limits, registry, environment } = config
    const version = versionOf(config)
    const work = {
      ...outboxWrites(db.schema, installed.id, config.destinations, this.tracing),
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
      tracing: this.tracing,
    }
    const onDeadBatches = (leases: number): void => {
      signals.emit('worker.leases.expired', { role: 'work', leases })
    }
    return { work, sweep: { db, ledger, sources: reading.sources, limits, worker, onDeadBatches } }
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
    const wake = (): void => worker.wake()
    return hearingUntilStopped(
      worker,
      this.signals.on('inbox.events.stored', wake),
      this.signals.on('outbox.events.woken', wake),
      this.signals.on('gather.answers.stored', wake),
      this.signals.on('reconcile.events.injected', wake),
    )
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
    const { signals, tracing } = this
    return { db, installationId, destinations, policy, limits, signals, tracing }
  }

  /** The dispatch role of this process: nothing is sent before it is started. */
  async dispatcher(): Promise<Dispatcher> {
    await this.registration.ensure()
    const dispatcher = outboxDispatcher(await this.#outboxParts())
    return hearingUntilStopped(
      dispatcher,
      this.signals.on('outbox.operations.recorded', ({ destinations }) =>
        dispatcher.wake(destinations),
      ),
    )
  }

  /** Whether the gather role has anything to do: some workflow mirrors or gathers. */
  get asksProviders(): boolean {
    return asksProviders(this.config.registry)
  }

  /** What a gatherer works with. */
  async gatherContext(): Promise<GatherContext> {
    const { registry, sources, gather: settings, findings: policy, limits } = this.config
    const { id: installationId } = await this.installation()
    const { signals } = this
    const reading = readingOf(this.config)
    const parts = { registry, sources, reading, settings, policy, limits, signals }
    return gatherContextOf({ db: this.database(), installationId, ...parts })
  }

  /** The gather role of this process: no provider is asked before it is started. */
  async gatherer(): Promise<Gatherer> {
    await this.registration.ensure()
    const gatherer = createGatherer(await this.gatherContext())
    return hearingUntilStopped(
      gatherer,
      this.signals.on('gather.answers.wanted', () => gatherer.wake()),
    )
  }

  /** One that is not started: it does what it is asked to. Null where no workflow asks. */
  async #gathererIfAsked(): Promise<Gatherer | null> {
    return this.asksProviders ? createGatherer(await this.gatherContext()) : null
  }

  /**
   * Asks at once for what these events wait for, within a budget. Resolves whether none of them waits for an
   * answer any more: they are ready to be decided then.
   */
  async gatherNow(keys: readonly bigint[], budgetMs: number): Promise<boolean> {
    const gatherer = keys.length === 0 ? null : await this.#gathererIfAsked()
    return gatherer === null || gatherer.gatherNow(keys, performance.now() + budgetMs)
  }

  /** The reconcile role of this process, and passes by hand. Nothing runs before it is started. */
  async reconciler(options: ReconcilerOptions = {}): Promise<Reconciler> {
    const installed = await this.installation()
    const { config, signals } = this
    const work = options.decides === true ? (await this.contexts()).work : null
    const gatherer = work === null ? null : await this.#gathererIfAsked()
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
    const writes = outboxWrites(this.database().schema, id, destinations, this.tracing)
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
        gatherer: await this.#gathererIfAsked(),
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
    await this.#connected?.close()
    this.#connected = undefined
    this.#installation = undefined
    this.#registration = undefined
  }
}

/** How stored events are read: whose they are, and what their bytes say. */
function readingOf({ sources, limits }: ResolvedConfig): EventReading {
  return { sources: sourceLookup(sources), parse: (bytes) => contentOf(bytes, limits) }
}
