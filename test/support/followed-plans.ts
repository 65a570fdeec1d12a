/**
 * An invented provider whose plans change over time, a workflow that follows them, and passes over its records.
 * What is asked about a plan is answered with how it is then.
 */
import { stripe } from 'hookledger'
import type { Reconciler } from '../../src/compose/reconciliation.ts'
import { partsOf } from '../../src/hookledger.ts'
import type { PassOptions, RunReport } from '../../src/reconciliation/pass-report.ts'
import type { ReconcileSettings } from '../../src/reconciliation/settings.ts'
import {
  contradict,
  defer,
  fulfill,
  linkedCustomer,
  mirrored,
} from '../../src/workflow/decision.ts'
import { defineUntypedWorkflow } from '../../src/workflow/define-workflow.ts'
import type { LinkedCustomer } from '../../src/workflow/gathering.ts'
import type { ProviderApi } from '../../src/workflow/provider-api.ts'
import type { MadeEvent, ProviderRecord } from '../../src/workflow/records.ts'
import { name } from '../../src/workflow/resolution.ts'
import type { AnyEvent, Workflow } from '../../src/workflow/workflow.ts'
import { createProbe, probe, probeSecret, type Probe } from './probe.ts'
import { scriptedRecords, type ScriptedRecords } from './scripted-records.ts'

/** A plan as the provider has it. */
export interface Plan {
  readonly id: string
  readonly order: string
  readonly status: string
  readonly seats?: number
  readonly customer?: string
}

/** What a test may change of the workflow's decisions. */
export interface PlanHooks {
  decide?: ((plan: Plan | null) => unknown) | undefined
  note?: ((evidence: unknown) => unknown) | undefined
}

/** The provider as a mirror asks it. */
export class PlanProvider {
  readonly present = new Map<string, Plan>()
  readonly hooks: PlanHooks = {}
  /** How often it was asked. */
  asked = 0
  /** Called before each answer. */
  before: (() => Promise<void> | void) | undefined
  readonly calls: ProviderApi = {
    client: () => undefined,
    failureOf: (error) => ({
      kind: 'later',
      retryAfterMs: null,
      isRateLimit: false,
      text: error instanceof Error ? error.message : 'it failed',
    }),
  }

  async ask(id: string): Promise<Plan | null> {
    this.asked += 1
    await this.before?.()
    return this.present.get(id) ?? null
  }

  /** What is gathered for notes. */
  async gather(): Promise<unknown> {
    this.asked += 1
    await this.before?.()
    return { found: this.asked }
  }

  reset(): void {
    this.present.clear()
    delete this.hooks.note
    this.asked = 0
    this.before = undefined
    delete this.hooks.decide
  }
}

/** The probe of these tests. */
export interface FollowedPlans extends Probe {
  readonly records: ScriptedRecords
  readonly reconciler: Reconciler
  /** How plans are now: what is asked is answered from here. */
  readonly present: Map<string, Plan>
  readonly provider: PlanProvider
  /** What a test may change of the workflow's decisions. */
  readonly hooks: PlanHooks
  /** The provider has it so now, and lists it so, made so long ago. */
  set(plan: Plan, agoMs?: number): void
  /** The webhook of a plan's change: it carries no more than which plan. */
  tell(id: string, order: string, eventId?: string): Promise<void>
  pass(options?: Partial<PassOptions>): Promise<RunReport>
}

const states = {
  unseen: {},
  active: { entitles: true },
  late: {},
  paused: {},
  ended: {},
} as const

/**
 * `plan.changed` follows a plan, `bill.paid` only says that a plan may have changed, and a `note` is decided from
 * what is gathered for it.
 */
export function followingWorkflow(provider: PlanProvider): Workflow {
  const { hooks } = provider
  const planOf = ({ event }: { readonly event: AnyEvent }): Plan => event['plan'] as Plan
  const planOrder = (input: { readonly event: AnyEvent }): string => planOf(input).order
  const mirror = {
    order: planOrder,
    learn: (input: { readonly event: AnyEvent }) => [name('plan', planOf(input).id)],
    object: (input: { readonly event: AnyEvent }) => name('plan', planOf(input).id),
    fetch: ({ object }: { readonly object: { readonly value: string } }) =>
      provider.ask(object.value),
    customer: ({ current }: { readonly current: unknown }) => (current as Plan | null)?.customer,
    decide: ({ current, event, customer }: never) =>
      (hooks.decide?.(current) ?? decidePlan(current, planOf({ event }).order, customer)) as never,
  }
  return defineUntypedWorkflow('plans', {
    sources: ['probe'],
    initial: 'unseen',
    opens: 'event',
    states: states as never,
    transitions: {
      unseen: ['active', 'late', 'paused', 'ended'],
      active: ['late', 'paused', 'ended'],
      late: ['active', 'ended'],
      paused: ['active', 'ended'],
    } as never,
    effects: { welcome: {}, note: {} } as never,
  })
    .mirror('plan.changed', mirror as never)
    .mirror('bill.paid', mirror as never)
    .on('note', {
      order: planOrder,
      gather: () => provider.gather(),
      decide: ({ event, evidence }: never) =>
        (hooks.note?.(evidence) ??
          fulfill({
            effects: [{ type: 'note', reference: (event as { note: string }).note }],
          })) as never,
    } as never)
}

function decidePlan(current: Plan | null, order: string, customer: LinkedCustomer | null): unknown {
  if (current === null) return mirrored({ to: 'ended', entitle: [] })
  if (current.status === 'broken') return contradict('the plan is broken')
  if (current.status === 'odd')
    return mirrored({ flag: { kind: 'unknown_status', figures: { status: 'odd' } } })
  if (current.customer !== undefined && customer?.subject == null)
    return defer({ missing: linkedCustomer(current.customer) })
  const subject = customer?.subject ?? `org:${order}`
  const entitled = current.status === 'active'
  return mirrored({
    to: current.status,
    subject,
    entitle: entitled ? [{ subject, entitlement: 'team', quantity: current.seats ?? 1 }] : [],
    effects: entitled ? [{ type: 'welcome' }] : [],
    settles: ['unknown_status'],
  })
}

function eventsOf({ kind, id, object }: ProviderRecord): MadeEvent[] {
  const type = kind === 'plan' ? 'plan.changed' : kind === 'bill' ? 'bill.paid' : 'note'
  const plan = kind === 'plan' ? object : object['plan']
  const eventId = `object:${type}:${id}`
  return [
    {
      eventId,
      eventType: type,
      occurredAt: null,
      apiVersion: null,
      body: { id: eventId, type, created: 1_767_225_600, livemode: false, plan, note: id },
    },
  ]
}

/** A record of the provider's. */
export function recordOf(
  kind: string,
  object: { readonly id: string },
  agoMs: number,
): ProviderRecord {
  return {
    kind,
    id: object.id,
    createdAt: new Date(Math.floor((Date.now() - agoMs) / 1000) * 1000),
    account: 'acct_1',
    object: object as never,
  }
}

/** The provider's lists of plans, bills and notes. */
export function planRecords(): ScriptedRecords {
  const records = scriptedRecords({
    kinds: ['plan', 'bill', 'note'].map((kind) => ({ kind, holds: 'objects', reachMs: null })),
    eventsOf,
    pageSize: 100,
  })
  const namedBy: ScriptedRecords['namedBy'] = ({ kind, value: id }, account) =>
    kind === 'plan' ? { kind, id, account } : null
  return Object.assign(records, { namedBy })
}

/** The source that is asked for both. */
export function planSource(
  provider: PlanProvider,
  records: ScriptedRecords,
): ReturnType<typeof stripe> {
  return Object.freeze({
    ...stripe({ account: 'acct_1', environment: 'test', signingSecrets: [probeSecret] }),
    records,
    calls: provider.calls,
  })
}

/** Creates it. */
export async function followedPlans(
  settings: Partial<ReconcileSettings> = {},
): Promise<FollowedPlans> {
  const provider = new PlanProvider()
  const { hooks, present } = provider
  const records = planRecords()
  const bench = await createProbe({
    workflows: [followingWorkflow(provider)],
    sources: { probe: planSource(provider, records) },
    gather: { callsPerSecond: 10_000, callsPerSecondPerAccount: 10_000 },
    reconcile: { lagMs: 0, callsPerSecond: 10_000, settleMs: 5000, ...settings },
  })
  await bench.rows(`update installation set created_at = now() - interval '10 days'`)
  const reconciler = await partsOf(bench.hookledger).reconciler({ decides: true })
  return {
    ...bench,
    records,
    reconciler,
    provider,
    present,
    hooks,
    set(plan, agoMs = 1_800_000) {
      present.set(plan.id, plan)
      const at = records.held.findIndex(({ kind, id }) => kind === 'plan' && id === plan.id)
      const made = recordOf('plan', plan, agoMs)
      if (at < 0) records.held.push(made)
      else records.held[at] = { ...made, createdAt: records.held[at]?.createdAt ?? made.createdAt }
    },
    tell: (id, order, eventId) =>
      bench.deliver(
        probe('plan.changed', {
          plan: { id, order },
          ...(eventId !== undefined && { id: eventId }),
        }),
      ),
    async pass(more = {}) {
      const { runs } = await reconciler.pass({ how: 'manual', actor: 'test', ...more })
      const [run] = runs
      if (run === undefined) throw new Error('there was no run')
      return run
    },
    async reset() {
      await bench.reset()
      records.held.length = 0
      records.fetched.length = 0
      provider.reset()
    },
  }
}
