/**
 * A workflow that follows one kind of object, for tests of mirrors in memory: small bodies whose every field
 * is at hand, and a `fetch` that must never be called.
 */
import { mirrored } from '../../src/workflow/decision.ts'
import { name } from '../../src/workflow/resolution.ts'
import type { History, MirrorInput, Workflow } from '../../src/workflow/workflow.ts'
import { defineLoosely } from './pay-events.ts'

/** The object that is followed. */
export interface Plan {
  readonly id: string
  readonly status: string
  readonly seats?: number
  readonly until?: number
  readonly customer?: string
}

/** An event about it. */
export interface PlanEvent {
  readonly id: string
  readonly type: string
  readonly data: { readonly object: Plan }
}

/** What `decide` of a mirror is given in these tests. */
export type PlanInput = Omit<MirrorInput, 'current' | 'event'> & {
  readonly event: PlanEvent
  readonly current: Plan | null
}

/** What `decide` of a gathering is given in these tests. */
export type GatherTestInput = Omit<MirrorInput, 'current' | 'event' | 'evidence'> & {
  readonly event: PlanEvent
  readonly evidence: unknown
}

/** What differs from a workflow that follows plans. */
export interface PlanOptions {
  readonly name?: string
  readonly opens?: 'app' | 'event'
  readonly transitions?: Readonly<Record<string, readonly string[]>>
  readonly decide?: (input: PlanInput) => unknown
  readonly object?: (input: { readonly event: PlanEvent }) => unknown
  readonly customer?: (input: {
    readonly event: PlanEvent
    readonly current: Plan | null
  }) => string | null
  /** Types handled by `on`, with what each decides. */
  readonly on?: Readonly<Record<string, (input: GatherTestInput) => unknown>>
  /** The same, for which something is gathered first. */
  readonly gathers?: Readonly<Record<string, (input: GatherTestInput) => unknown>>
  readonly histories?: readonly History[]
  readonly learn?: (input: { readonly event: PlanEvent }) => unknown
}

/** The types that only say "look again". */
export const planTypes = ['plan.created', 'plan.updated', 'plan.deleted'] as const

let made = 0

/** An event about a plan, with an id of its own unless one is given. */
export function planEvent(type: string, object: Plan, id?: string): PlanEvent {
  made += 1
  return { id: id ?? `evt_plan_${made}`, type, data: { object } }
}

/** What the mirror decides where a test says nothing else: the state by status, seats and an end. */
export function followPlan({ current }: PlanInput): unknown {
  if (current === null) return mirrored({ to: 'gone', entitle: [] })
  const { status, seats = 1, until } = current
  const validUntil = until === undefined ? null : new Date(until * 1000)
  const entitle = [{ subject: 'org:1', entitlement: 'team', quantity: seats, validUntil }]
  return mirrored({ to: status, entitle })
}

/** Builds the workflow: order = the plan's id, named `plans`, source `pay`. */
export function planWorkflow(options: PlanOptions = {}): Workflow {
  const order = ({ event }: { readonly event: unknown }): string =>
    (event as PlanEvent).data.object.id
  let workflow = defineLoosely(options.name ?? 'plans', {
    sources: ['pay'],
    initial: 'new',
    opens: options.opens ?? 'event',
    states: {
      new: {},
      trialing: { entitles: true },
      active: { entitles: true },
      past_due: { entitles: true },
      canceled: {},
      gone: {},
    },
    transitions: options.transitions ?? {},
    effects: { credits: {}, refund: {}, reminder: {} },
    ...(options.histories !== undefined && { histories: options.histories }),
  }).mirror(
    planTypes as never,
    {
      order,
      object: options.object ?? (({ event }: never) => name('plan', order({ event }))),
      fetch: () => Promise.reject(new Error('fetch is never called in memory')),
      decide: options.decide ?? followPlan,
      ...(options.customer !== undefined && { customer: options.customer }),
      ...(options.learn !== undefined && { learn: options.learn }),
    } as never,
  )
  for (const [type, decide] of Object.entries(options.on ?? {}))
    workflow = workflow.on(type as never, { order, decide } as never)
  for (const [type, decide] of Object.entries(options.gathers ?? {})) {
    const gather = (): Promise<never> =>
      Promise.reject(new Error('gather is never called in memory'))
    workflow = workflow.on(type as never, { order, decide, gather } as never)
  }
  return workflow
}
