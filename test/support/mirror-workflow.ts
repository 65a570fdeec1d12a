/** A small workflow that follows an object, gathers for one type of event, and counts payments once. */
import { stripe } from 'hookledger'
import { money } from '../../src/core/money.ts'
import type { Decision } from '../../src/workflow/decision.ts'
import {
  contradict,
  defer,
  fulfill,
  linkedCustomer,
  mirrored,
} from '../../src/workflow/decision.ts'
import { defineUntypedWorkflow } from '../../src/workflow/define-workflow.ts'
import type { LinkedCustomer } from '../../src/workflow/gathering.ts'
import { byName, name } from '../../src/workflow/resolution.ts'
import type { AnyEvent, Workflow } from '../../src/workflow/workflow.ts'
import { probeSecret } from './probe.ts'

/** The probe's source with an API key, which nothing ever calls with: the tests play the gatherer. */
export const mirroredSources = {
  probe: stripe({
    environment: 'test',
    signingSecrets: [probeSecret],
    apiKey: 'sk_test_never_called',
  }),
}

/** The object as the invented provider has it. */
export interface Plan {
  readonly status: string
  readonly seats?: number
  readonly customer?: string
}

/** What a test may put in the place of the user's code. */
export interface MirrorHooks {
  decide?: (input: {
    readonly current: Plan | null
    readonly event: AnyEvent
  }) => Decision | undefined
  gathered?: (evidence: unknown) => Decision | undefined
}

interface MirrorEvent extends AnyEvent {
  readonly id: string
  readonly order: string
  readonly plan: string
}

const states = {
  none: {},
  active: { entitles: true },
  late: {},
  ended: {},
  unclear: {},
} as const

/** `look` mirrors the plan of an order, `paid` counts once, `ask` decides from what is gathered, `named` finds its order by the plan. */
export function mirrorWorkflow(hooks: MirrorHooks = {}): Workflow {
  const orderOf = ({ event }: { readonly event: object }): string => (event as MirrorEvent).order
  return defineUntypedWorkflow('plans', {
    sources: ['probe'],
    initial: 'none',
    opens: 'event',
    states: states as never,
    transitions: {
      none: ['active'],
      active: ['late', 'ended'],
      late: ['active', 'ended'],
    } as never,
    effects: { welcome: {}, credits: {}, note: {} } as never,
  })
    .mirror('look', {
      order: orderOf,
      object: ({ event }) => name('plan', (event as unknown as MirrorEvent).plan),
      fetch: () => Promise.reject(new Error('the test plays the gatherer')),
      learn: ({ event }) => [name('plan', (event as unknown as MirrorEvent).plan)],
      customer: ({ current }) => (current as Plan | null)?.customer,
      decide: ({ current, event, customer }) => {
        const found = current as Plan | null
        const hooked = hooks.decide?.({ current: found, event: event as unknown as AnyEvent })
        return (hooked ?? decidePlan(found, orderOf({ event }), customer)) as never
      },
    })
    .on('paid', {
      order: orderOf,
      decide: ({ event }) =>
        fulfill({
          payment: { id: String(event['id']), money: money(900, 'usd') },
          effects: [{ type: 'credits', reference: String(event['id']) }],
        }) as never,
    })
    .on('named', {
      order: ({ event }) => byName('plan', (event as unknown as MirrorEvent).plan),
      decide: ({ event }) =>
        fulfill({ effects: [{ type: 'note', reference: String(event['id']) }] }) as never,
    })
    .on('ask', {
      order: orderOf,
      gather: () => Promise.reject(new Error('the test plays the gatherer')),
      decide: ({ event, evidence }) => {
        const data = { found: JSON.stringify(evidence) }
        const reference = String(event['id'])
        return (hooks.gathered?.(evidence) ??
          fulfill({ effects: [{ type: 'note', reference, data }] })) as never
      },
    })
}

function decidePlan(
  current: Plan | null,
  order: string,
  customer: LinkedCustomer | null,
): Decision {
  if (current === null) return mirrored({ to: 'ended', entitle: [] }) as Decision
  if (current.status === 'broken') return contradict('the plan is broken') as Decision
  if (current.customer !== undefined && customer?.subject == null)
    return defer({ missing: linkedCustomer(current.customer) }) as Decision
  if (current.status === 'odd')
    return mirrored({ flag: { kind: 'unknown_status', figures: { status: 'odd' } } }) as Decision
  const subject = customer?.subject ?? `org:${order}`
  const entitled = current.status === 'active'
  return mirrored({
    to: current.status,
    subject,
    entitle: entitled ? [{ subject, entitlement: 'team', quantity: current.seats ?? 1 }] : [],
    effects: entitled ? [{ type: 'welcome' }] : [],
    settles: ['unknown_status'],
  }) as Decision
}
