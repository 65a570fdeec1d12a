/**
 * Start checks, and what a start writes down once: workflows with their states and versions, destinations,
 * shadows. Decisions name registered states, so that nothing is decided before.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Signals } from '../core/signals.ts'
import {
  configurationVersion,
  registerStates,
  registerWorkflows,
  type ConfigurationVersion,
} from '../ledger/register.ts'
import { registerShadows } from '../ledger/shadow.ts'
import { registerDestinations } from '../outbox/destination-row.ts'
import { createOutboxPort } from '../outbox/outbox-port.ts'
import { requireHealthy } from '../postgres/doctor.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import type { Installation } from '../postgres/migrate.ts'
import { checkWorkflow } from '../workflow/check-workflow.ts'
import type { Workflow } from '../workflow/workflow.ts'
import { requireApis } from './gatherer.ts'
import type { ResolvedConfig } from './options.ts'

/** What registering needs; the database and what `migrate` fixed are asked for when they are needed. */
export interface RegistrationParts {
  readonly config: ResolvedConfig
  readonly signals: Signals
  readonly database: () => Database
  readonly installation: () => Promise<Installation>
}

/** What a start was warned of. */
export interface Registered {
  readonly warnings: readonly string[]
}

/** The registration of one configuration in this process: done once, and again after it failed. */
export class Registration {
  readonly #parts: RegistrationParts
  #registered: Promise<Registered> | undefined
  #areStatesKnown = false

  constructor(parts: RegistrationParts) {
    this.#parts = parts
  }

  /** Start checks and registration. @throws HookledgerError where a promise would not hold. */
  register(): Promise<Registered> {
    return this.#remember(this.#register({ checksWorkflows: true }))
  }

  /**
   * Registers once in this process where nothing was started (`runOnce` and `waitUntil` on a serverless
   * host). Histories are not played: somebody is waiting.
   */
  ensure(): Promise<unknown> {
    return this.#registered ?? this.#remember(this.#register({ checksWorkflows: false }))
  }

  /** The same for the states of one workflow, inside the app's own transaction. */
  async knowStates(tx: Executor, workflow: Workflow): Promise<void> {
    if (!this.#areStatesKnown) await registerStates(this.#parts.database(), tx, workflow)
  }

  /**
   * The start checks alone, for a process that only receives: its role may not register anything.
   *
   * @throws HookledgerError where a promise would not hold
   */
  async check(): Promise<Registered> {
    const warnings = await this.#requireHealthy()
    for (const message of warnings) this.#parts.signals.emit('config.warned', { message })
    return { warnings }
  }

  #remember(registering: Promise<Registered>): Promise<Registered> {
    this.#registered = registering.catch((error: unknown) => {
      this.#registered = undefined
      throw error
    })
    return this.#registered
  }

  async #register({ checksWorkflows }: { readonly checksWorkflows: boolean }): Promise<Registered> {
    const { config, signals, database, installation } = this.#parts
    if (checksWorkflows) requireApis(config.registry, config.sources)
    const warnings = await this.#requireHealthy()
    const sends = new Map([...config.sources].map(([name, { source }]) => [name, source.sends]))
    const outbox = createOutboxPort((await installation()).id, config.destinations)
    for (const workflow of checksWorkflows ? config.workflows : []) {
      const declared = workflow.shadowOf ?? workflow
      warnings.push(...checkWorkflow(declared, sends, outbox).map((each) => each.message))
    }
    const registered = await registerWorkflows(
      database(),
      config.workflows,
      config.entitlementRules,
      versionOf(config),
    )
    this.#areStatesKnown = true
    warnings.push(...(await registerDestinations(database(), config.destinations)))
    warnings.push(...registered.warnings)
    warnings.push(...(await registerShadows(database(), config.workflows)))
    for (const message of warnings) signals.emit('config.warned', { message })
    return { warnings }
  }

  async #requireHealthy(): Promise<string[]> {
    const { config, database } = this.#parts
    const { acceptDurability, environment, limits } = config
    requireUsable(config)
    return requireHealthy(database(), {
      acceptDurability,
      environment,
      lockTimeoutMs: limits.lockTimeoutMs,
    })
  }
}

/**
 * Reports and repairs need no signing secret: who reads them at night may not have it. Whoever starts or
 * receives does.
 *
 * @throws HookledgerError naming the source or destination that cannot be used
 */
export function requireUsable({ sources, destinations }: ResolvedConfig): void {
  for (const { source } of sources.values()) if (source.problem !== undefined) throw source.problem
  for (const [name, { problem }] of destinations)
    if (problem !== undefined)
      throw new HookledgerError('HKL_CONFIG_INVALID', `destination "${name}": ${problem}`)
}

/** The version of a configuration beside that of its workflows: what it knows of sources and handlers. */
export function versionOf({ workflows, sources, handlers }: ResolvedConfig): ConfigurationVersion {
  const words = [...sources].map(
    ([name, { source, account }]) => `${name} ${source.provider} ${account}`,
  )
  return configurationVersion(workflows, words, handlers)
}
