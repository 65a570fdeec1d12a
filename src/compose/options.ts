/**
 * The options of `createHookledger`, checked and resolved once. Nothing is connected here.
 */
import {
  resolveConsoleOptions,
  type ConsoleOptions,
  type ResolvedConsoleOptions,
} from './console-options.ts'
import { HookledgerError } from '../core/errors.ts'
import { defaultLimits, type Limits } from '../core/limits.ts'
import type { Combine } from '../ledger/register.ts'
import type { FindingPolicy } from '../ledger/findings.ts'
import type { GatherSettings } from '../inbox/gather/gather-context.ts'
import type { LogTarget } from '../observe/log-target.ts'
import { contractProblem } from '../outbox/promise.ts'
import type { Destination } from '../outbox/destination.ts'
import type { PoolLike } from '../postgres/pool.ts'
import { defaultSchema, schemaPrefix } from '../postgres/schema-name.ts'
import type { Source } from '../providers/provider.ts'
import type { ReconcileSettings } from '../reconciliation/settings.ts'
import type { Environment } from '../workflow/event.ts'
import { createRegistry, type PlainHandler, type Registry } from '../workflow/registry.ts'
import { shadowed } from '../workflow/shadowed.ts'
import type { UserExecutor, Workflow } from '../workflow/workflow.ts'
import { invalid, requireKnown } from './config-problem.ts'
import {
  resolveEntitlementChanges,
  type EntitlementChangesOption,
  type ResolvedEntitlementChanges,
} from './entitlement-changes.ts'
import { environmentVariable } from './environment.ts'
import { resolveGatherOptions } from './gather-options.ts'
import {
  resolveReconcileOptions,
  type EscalateOption,
  type ReconcileConfig,
} from './reconcile-options.ts'

/** What a user hands to `createHookledger`. */
export interface HookledgerOptions {
  /** A `pg.Pool` of the app, or a connection string. Without it DATABASE_URL, or a running `hookledger dev`. */
  readonly database?: PoolLike | string | undefined
  /** The schema of Hookledger's tables. Default HOOKLEDGER_SCHEMA, else `hookledger`. */
  readonly schema?: string | undefined
  /** What this schema holds. Default: what the sources say, else `test`. */
  readonly environment?: Environment | undefined
  /** By name: the name stands in URLs (`/webhooks/stripe`) and in workflows' `sources`. */
  readonly sources: Readonly<Record<string, Source>>
  readonly workflows?: readonly Workflow[] | undefined
  readonly handlers?: readonly PlainHandler[] | undefined
  /** Where operations go, by the name that stands in `send: [{ to }]` and in `outbox.add`. */
  readonly destinations?: Readonly<Record<string, Destination>> | undefined
  /** How the rows of one subject and entitlement combine; `any` where none is declared. */
  readonly entitlements?: Readonly<Record<string, Combine>> | undefined
  /**
   * Who is told when what a subject may use has changed: a destination, which gets an operation a change, or a
   * function that is called in the processes that make or tell of them.
   */
  readonly entitlementChanges?: EntitlementChangesOption | undefined
  readonly findings?: FindingOptions | undefined
  /** How the providers' own records are compared with what is here; `false`: not by itself. */
  readonly reconcile?: Partial<ReconcileSettings> | false | undefined
  /** How often, and how long, providers are asked for what mirrors and `gather` need. */
  readonly gather?: Partial<GatherSettings> | undefined
  /** Kinds of finding that a pass repairs by itself, recorded with the rule as actor. */
  readonly autoRepair?: readonly string[] | undefined
  /** Workflows that decide and record beside an existing handler, and grant and send nothing. */
  readonly shadow?: readonly string[] | undefined
  /** What the app itself gives for what is in shadow: asked for by `hookledger shadow`. */
  readonly appEntitlements?: AppEntitlements | undefined
  readonly limits?: Partial<Limits> | undefined
  /** Who may come into the console, and what a second person has to approve. */
  readonly console?: ConsoleOptions | undefined
  /** A pino logger of the app's, or anything with its methods (fields first): one line an outcome. Default: silence. */
  readonly log?: LogTarget | undefined
  /** Traces by OpenTelemetry, to what the app has registered; needs `@opentelemetry/api`. Default false. */
  readonly traces?: boolean | undefined
  /** Why it is safe here that the server does not flush (shown by `doctor`). */
  readonly acceptDurability?: string | undefined
}

/** One entitlement that the app itself gives. */
export interface AppEntitlement {
  readonly subject: string
  readonly entitlement: string
  /** Compared where it is given. */
  readonly quantity?: number | bigint | string | null | undefined
  /** Compared where it is given; null: without an end. */
  readonly validUntil?: Date | null | undefined
}

/**
 * Answers what the app's own handlers give these subjects, for the workflows in shadow and nothing else. `db`
 * is read-only.
 *
 * @example async ({ db, subjects }) => (await db.query('select subject, plan as entitlement from app.plans where subject = any ($1)', [subjects])).rows
 */
export type AppEntitlements = (input: {
  readonly db: UserExecutor
  readonly subjects: readonly string[]
}) => Promise<readonly AppEntitlement[]>

/** Who answers for findings and by when. */
export interface FindingOptions {
  /** Default `operations`. */
  readonly owner?: string | undefined
  /** By kind of finding. */
  readonly owners?: Readonly<Record<string, string>> | undefined
  /** Hours until a finding is due. Defaults: lag 24, contradiction 72. */
  readonly dueHours?:
    { readonly lag?: number | undefined; readonly contradiction?: number | undefined } | undefined
  /** Sends an operation to this destination when a finding has been overdue for so many hours. Default `[0, 24]`. */
  readonly escalate?: EscalateOption | undefined
}

/** A configured source with everything decided. */
export interface ConfiguredSource {
  readonly name: string
  readonly source: Source
  readonly account: string
  readonly environment: Environment
}

/** The options with every default filled in. */
export interface ResolvedConfig extends ReconcileConfig {
  readonly database: PoolLike | string | undefined
  readonly schemaName: string
  readonly environment: Environment
  readonly sources: ReadonlyMap<string, ConfiguredSource>
  readonly workflows: readonly Workflow[]
  readonly handlers: readonly PlainHandler[]
  readonly destinations: ReadonlyMap<string, Destination>
  readonly registry: Registry
  readonly limits: Limits
  readonly console: ResolvedConsoleOptions
  readonly findings: FindingPolicy
  readonly gather: GatherSettings
  readonly shadow: ReadonlySet<string>
  readonly appEntitlements: AppEntitlements | undefined
  readonly entitlementRules: Readonly<Record<string, Combine>>
  readonly entitlementChanges: ResolvedEntitlementChanges
  readonly traces: boolean
  readonly acceptDurability: string | undefined
}

const known: readonly (keyof HookledgerOptions)[] = [
  'database',
  'schema',
  'environment',
  'sources',
  'workflows',
  'handlers',
  'destinations',
  'entitlements',
  'entitlementChanges',
  'findings',
  'reconcile',
  'gather',
  'autoRepair',
  'shadow',
  'appEntitlements',
  'limits',
  'console',
  'log',
  'traces',
  'acceptDurability',
]

/**
 * Checks and resolves options.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID or HKL_CONFIG_UNKNOWN_NAME, one line that names the culprit
 */
export function resolveOptions(options: HookledgerOptions): ResolvedConfig {
  if (typeof options !== 'object' || options === null)
    throw invalid('createHookledger takes an object of options')
  for (const key of Object.keys(options)) requireKnown('option', key, known)
  for (const key of Object.keys(options.limits ?? {}))
    requireKnown('limit', key, Object.keys(defaultLimits))
  const environment = environmentOf(options)
  const sources = resolveSources(options, environment)
  const inShadow = new Set(options.shadow ?? [])
  const workflows = (options.workflows ?? []).map((each) =>
    inShadow.has(each.name) ? shadowed(each) : each,
  )
  const handlers = [...(options.handlers ?? [])]
  const destinations = resolveDestinations(options.destinations ?? {})
  for (const workflow of workflows) {
    for (const name of workflow.sources)
      requireKnown(`source of workflow "${workflow.name}"`, name, sources.keys())
    for (const name of workflow.destinations ?? [])
      requireKnown(`destination of workflow "${workflow.name}"`, name, destinations.keys())
  }
  for (const handler of handlers)
    requireKnown('source of a handler', handler.source, sources.keys())
  const schemaName = options.schema ?? environmentVariable('HOOKLEDGER_SCHEMA') ?? defaultSchema
  schemaPrefix(schemaName)
  if (options.appEntitlements !== undefined && typeof options.appEntitlements !== 'function')
    throw invalid('appEntitlements must be a function: async ({ db, subjects }) => rows')
  if (options.traces !== undefined && typeof options.traces !== 'boolean')
    throw invalid('traces must be true or false')
  if (options.acceptDurability !== undefined && options.acceptDurability.trim() === '') {
    throw invalid('acceptDurability must say why it is safe here')
  }
  return Object.freeze({
    database: options.database === '' ? undefined : options.database,
    schemaName,
    environment,
    sources,
    workflows,
    handlers,
    destinations,
    registry: createRegistry(workflows, handlers),
    limits: resolveLimits(options.limits ?? {}),
    console: resolveConsoleOptions(options.console),
    findings: resolveFindings(options.findings ?? {}),
    gather: resolveGatherOptions(options.gather),
    ...resolveReconcileOptions(
      { ...options, escalate: options.findings?.escalate },
      destinations.keys(),
    ),
    shadow: resolveShadow(options.shadow ?? [], workflows),
    appEntitlements: options.appEntitlements,
    entitlementRules: resolveRules(options.entitlements ?? {}),
    entitlementChanges: resolveEntitlementChanges(options.entitlementChanges, destinations.keys()),
    traces: options.traces === true,
    acceptDurability: options.acceptDurability,
  })
}

function environmentOf(options: HookledgerOptions): Environment {
  const named = [
    options.environment,
    ...Object.values(options.sources ?? {}).map((source) => source.environment),
  ]
  const distinct = [...new Set(named.filter((each) => each !== undefined))]
  if (distinct.length > 1) {
    throw new HookledgerError(
      'HKL_CONFIG_ENVIRONMENT',
      `one schema holds one environment, the configuration names ${distinct.join(' and ')}: two environments are two schemas (HOOKLEDGER_SCHEMA)`,
    )
  }
  const environment = distinct[0] ?? 'test'
  if (environment !== 'live' && environment !== 'test')
    throw invalid(`environment must be 'live' or 'test'`)
  return environment
}

function resolveSources(
  options: HookledgerOptions,
  environment: Environment,
): Map<string, ConfiguredSource> {
  if (typeof options.sources !== 'object' || options.sources === null)
    throw invalid('sources must be an object: name → source')
  const sources = new Map<string, ConfiguredSource>()
  for (const [name, source] of Object.entries(options.sources)) {
    if (!/^[a-z0-9][a-z0-9_-]{0,62}$/.test(name)) {
      throw invalid(
        `source "${name.slice(0, 80)}": a name must be lower-case letters, digits, - or _, at most 63`,
      )
    }
    if (typeof source?.verify !== 'function')
      throw invalid(`source "${name}" is not a source: use stripe(…) or standardWebhooks(…)`)
    if (name === 'hookledger') throw invalid('the source name "hookledger" is reserved')
    sources.set(name, { name, source, account: source.account ?? name, environment })
  }
  return sources
}

function resolveDestinations(
  given: Readonly<Record<string, Destination>>,
): ReadonlyMap<string, Destination> {
  const destinations = new Map(Object.entries(given))
  for (const [name, destination] of destinations) {
    if (!/^[a-z0-9][a-z0-9_-]{0,62}$/i.test(name)) {
      throw invalid(
        `destination "${name.slice(0, 80)}": a name must be letters, digits, - or _, at most 63`,
      )
    }
    if (typeof destination?.call !== 'function' || typeof destination.encode !== 'function')
      throw invalid(
        `destination "${name}" is not a destination: use http(…), stripe(…) or one of your own`,
      )
    const problem = contractProblem(destination.contract)
    if (problem !== null) throw invalid(`destination "${name}": ${problem}`)
  }
  return destinations
}

function resolveLimits(given: Partial<Limits>): Limits {
  const limits = { ...defaultLimits, ...given }
  for (const [name, value] of Object.entries(limits)) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw invalid(`limits.${name} must be a positive integer`)
  }
  if (limits.identityRetentionDays < limits.payloadRetentionDays) {
    throw invalid(
      'limits.identityRetentionDays must be at least limits.payloadRetentionDays: a body without its event is of no use',
    )
  }
  return Object.freeze(limits)
}

function resolveFindings(given: FindingOptions): FindingPolicy {
  const hours = {
    lag: given.dueHours?.lag ?? 24,
    contradiction: given.dueHours?.contradiction ?? 72,
  }
  for (const [name, value] of Object.entries(hours)) {
    if (!Number.isFinite(value) || value <= 0)
      throw invalid(`findings.dueHours.${name} must be a positive number`)
  }
  return {
    owner: given.owner ?? 'operations',
    owners: given.owners ?? {},
    dueMs: {
      lag: Math.round(hours.lag * 3_600_000),
      contradiction: Math.round(hours.contradiction * 3_600_000),
    },
  }
}

function resolveShadow(
  given: readonly string[],
  workflows: readonly Workflow[],
): ReadonlySet<string> {
  const names = workflows.map(({ name }) => name)
  for (const name of given) requireKnown('workflow in shadow', name, names)
  return new Set(given)
}

function resolveRules(rules: Readonly<Record<string, Combine>>): Readonly<Record<string, Combine>> {
  for (const [name, rule] of Object.entries(rules))
    requireKnown(`rule of entitlement "${name}"`, rule, ['any', 'max', 'sum'])
  return rules
}
