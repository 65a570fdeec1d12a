/**
 * A configuration as it is drilled: the user's workflows, handlers and limits on the drill's own database, provider and
 * destinations. Nothing of it can reach a real provider or a real destination.
 */
import type { HookledgerOptions, ResolvedConfig } from '../compose/options.ts'
import type { Destination, DestinationContract } from '../outbox/destination.ts'
import { http } from '../outbox/destinations/http.ts'
import type { Source } from '../providers/provider.ts'
import { standardWebhooks } from '../providers/standard-webhooks.ts'
import { stripe } from '../providers/stripe.ts'
import { HookledgerError } from '../core/errors.ts'
import type { DrillConfig } from './drill-config.ts'
import type { DrillWorld } from './messages.ts'

/** The key of the simulated provider's API. */
const apiKey = 'sk_test_drill_0123456789'

/** Everything that waits, waits briefly: a drill measures recovery, and not the pauses that a shop may choose. */
const quickLimits = {
  firstRetryMs: 50,
  maxRetryMs: 400,
  requestTimeoutMs: 4000,
  statementTimeoutMs: 2500,
} as const
const quickContract = {
  callMs: 800,
  leaseMs: 1600,
  firstRetryMs: 50,
  maxRetryMs: 400,
  breakerFailures: 20,
  breakerMs: 200,
  maxAttempts: 200,
  ratePerSecond: null,
} as const
const quickGather = {
  callsPerSecond: 500,
  callsPerSecondPerAccount: 500,
  callMs: 800,
  leaseMs: 1800,
} as const
const quickReconcile = { everyMs: 700, lagMs: 1000, overlapMs: 600_000, callsPerSecond: 500 }

/** The options of the Hookledger that is drilled. */
export function drilledOptions(
  options: HookledgerOptions,
  config: ResolvedConfig,
  drill: DrillConfig,
  world: DrillWorld,
): HookledgerOptions {
  const { database, limits, findings, workflows } = options
  return {
    ...options,
    // a pool of the app's own was made from DATABASE_URL, and is asked where it leads before anything is done
    database: typeof database === 'object' ? database : world.databaseUrl,
    schema: config.schemaName,
    // a drill plays in the test environment, whatever the configuration is for
    environment: 'test',
    sources: Object.fromEntries(
      [...config.sources.values()].map(({ name, source }) => [
        name,
        drilledSource(name, source, world),
      ]),
    ),
    destinations: drilledDestinations(config, drill, world),
    // played in memory before: a process that starts need not do it again
    workflows: workflows?.map((each) => Object.freeze({ ...each, histories: undefined })),
    limits: { ...limits, ...quickLimits },
    findings: withoutEscalation(findings),
    gather: { ...options.gather, ...quickGather },
    reconcile: quickReconcile,
    log: undefined,
    console: undefined,
    traces: false,
  }
}

/** Nothing gets overdue within a drill, and a destination of its own would only be one more to configure. */
function withoutEscalation(findings: HookledgerOptions['findings']): HookledgerOptions['findings'] {
  if (findings === undefined) return undefined
  const { escalate: _, ...rest } = findings
  return rest
}

/** @throws HookledgerError HKL_CONFIG_INVALID for a source whose deliveries cannot be signed */
function drilledSource(name: string, source: Source, world: DrillWorld): Source {
  const { account } = source
  const given = { environment: 'test' as const, ...(account !== undefined && { account }) }
  if (source.provider === 'stripe') {
    const drilled = stripe({
      ...given,
      signingSecrets: [world.stripeSecret],
      apiKey,
      apiBase: world.providerUrl,
    })
    return {
      ...drilled,
      allowsAccount: (other) => source.allowsAccount(other),
      otherVersion: source.otherVersion,
    }
  }
  if (source.provider === 'standard-webhooks') {
    const drilled = standardWebhooks({ ...given, secrets: [world.standardSecret] })
    return { ...drilled, ...(source.calls !== undefined && { calls: source.calls }) }
  }
  throw new HookledgerError(
    'HKL_CONFIG_INVALID',
    `source "${name}" is of the provider "${source.provider}": drills can sign deliveries of stripe and standard-webhooks`,
  )
}

/** Where operations of a destination go in a drill. */
export function destinationUrl(world: Pick<DrillWorld, 'destinationUrl'>, name: string): string {
  return `${world.destinationUrl}/${encodeURIComponent(name)}`
}

function drilledDestinations(
  config: ResolvedConfig,
  drill: DrillConfig,
  world: DrillWorld,
): Record<string, Destination> {
  const names = [...config.destinations.keys()]
  const urls = Object.fromEntries(names.map((name) => [name, destinationUrl(world, name)]))
  const own = drill.destinations?.(urls) ?? {}
  const unknown = Object.keys(own).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw new HookledgerError(
      'HKL_CONFIG_UNKNOWN_NAME',
      `drill.destinations makes "${unknown}", which the configuration does not have`,
    )
  return Object.fromEntries(
    [...config.destinations].map(([name, { contract }]) => [
      name,
      own[name] === undefined
        ? plainDestination(urls[name] ?? '', contract)
        : { ...own[name], contract: { ...own[name].contract, ...quickContract } },
    ]),
  )
}

/** A destination that takes the body as JSON under the contract of the one that it stands for. */
function plainDestination(url: string, contract: DestinationContract): Destination {
  const { idempotency, retentionMs, marginMs, concurrency, sequence } = contract
  return http({
    url,
    allow: [new URL(url).host],
    contract: {
      ...quickContract,
      concurrency,
      sequence,
      idempotency,
      ...(idempotency === 'key' && { retentionMs, marginMs }),
    },
  })
}
