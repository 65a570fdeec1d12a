/**
 * Workflows made from a spec: each decision computes the state from the facts that stand after it, so
 * that the order of events cannot matter. And careless ones, in which it does.
 */
import {
  defer,
  effect,
  fulfill,
  move,
  reverse,
  type EffectClaim,
  type EntitlementClaim,
} from '../../src/workflow/decision.ts'
import { defineUntypedWorkflow, type DefineWorkflow } from '../../src/workflow/define-workflow.ts'
import type { Effect, Payment } from '../../src/workflow/order.ts'
import { byName, name } from '../../src/workflow/resolution.ts'
import type { DecideInput, Workflow } from '../../src/workflow/workflow.ts'
import { factStates, price, type FactBody, type FactState, type WorkflowSpec } from './histories.ts'
import { usd } from './pay-events.ts'

type Type =
  | `session.${'paid' | 'expired'}`
  | 'intent.paid'
  | `refund.${'succeeded' | 'failed'}`
  | `dispute.${'opened' | 'closed'}`
type State = 'pending' | FactState
type EffectType =
  'license' | 'credit' | 'session' | 'expired' | 'refund' | 'disputeOpened' | 'disputeClosed'
type Input = DecideInput<FactBody, State, EffectType>

const define = defineUntypedWorkflow as never as DefineWorkflow<{
  pay: Readonly<Record<Type, FactBody>>
}>

function base(spec: WorkflowSpec, named: string) {
  const entitles = (state: FactState) => ({ entitles: spec.entitling.includes(state) })
  const [lost, disputed, refunded, paid, canceled] = factStates
  const all = ['pending', ...factStates] as const
  return define(named, {
    sources: ['pay'],
    initial: 'pending',
    opens: spec.opens,
    accepts: ({ paid: money }) => money.amount >= BigInt(price),
    states: {
      pending: {},
      [lost]: entitles('lost'),
      [disputed]: entitles('disputed'),
      [refunded]: entitles('refunded'),
      [paid]: entitles('paid'),
      [canceled]: entitles('canceled'),
    },
    transitions: {
      pending: all,
      lost: all,
      disputed: all,
      refunded: all,
      paid: all,
      canceled: all,
    },
    effects: {
      license: {},
      credit: {},
      session: {},
      expired: {},
      refund: {},
      disputeOpened: {},
      disputeClosed: {},
    },
  })
}

/** The workflow of a spec. */
export function factWorkflow(spec: WorkflowSpec, named: string = 'facts'): Workflow {
  return build(base(spec, named), (input, change) => {
    const after = factsAfter(input, change)
    return { to: stateOf(spec, after), entitle: entitlementsOf(spec, input, after) }
  })
}

/** What a careless workflow gets wrong. */
export type Carelessness =
  'last event wins' | 'reversals are forgotten' | 'partial refunds are whole'

/** A workflow of the spec with one mistake. */
export function carelessWorkflow(spec: WorkflowSpec, mistake: Carelessness): Workflow {
  const told: Readonly<Record<string, State>> = {
    'session.paid': 'paid',
    'intent.paid': 'paid',
    'session.expired': 'canceled',
    'refund.succeeded': 'refunded',
    'refund.failed': 'paid',
    'dispute.opened': 'disputed',
    'dispute.closed': 'paid',
  }
  return build(base(spec, 'careless'), (input, change) => {
    const after = factsAfter(input, change)
    const seen =
      mistake === 'reversals are forgotten'
        ? { ...after, effects: after.effects.map((each) => ({ ...each, reversed: false })) }
        : after
    const counted =
      mistake === 'partial refunds are whole' ? { ...spec, partialRefundsCount: true } : spec
    const to = mistake === 'last event wins' ? told[input.event.type] : stateOf(counted, seen)
    return { to: to ?? 'pending', entitle: entitlementsOf(counted, input, seen) }
  })
}

interface Change {
  readonly payment?: Payment
  readonly effects: readonly EffectClaim<EffectType>[]
  readonly reversed?: string
}

type Answer = (
  input: Input,
  change: Change,
) => {
  readonly to: State
  readonly entitle: readonly EntitlementClaim[]
}

function build(workflow: ReturnType<typeof base>, answer: Answer): Workflow {
  return workflow
    .on(['session.paid', 'intent.paid'], {
      order: ({ event }) => event.order,
      learn: ({ event }) => [name('payment', event.payment)],
      decide: (input) => {
        const { event } = input
        const id = event.payment ?? ''
        const money = usd(event.amount ?? 0)
        const effects: EffectClaim<EffectType>[] = [
          { type: 'license' },
          { type: 'credit', reference: id },
        ]
        if (event.type === 'session.paid') {
          effects.push({
            type: 'session',
            reference: id,
            data: { subject: event.subject, until: event.until },
          })
        }
        const payment = { id, ...money, applied: true }
        return fulfill({ ...answer(input, { payment, effects }), payment: { id, money }, effects })
      },
    })
    .on('session.expired', {
      order: ({ event }) => event.order,
      decide: (input) => {
        const once: EffectClaim<EffectType> = { type: 'expired' }
        return move({ ...answer(input, { effects: [once] }), once })
      },
    })
    .on('refund.succeeded', {
      order: ({ event }) => byName('payment', event.payment),
      decide: (input) => {
        const { reference, payment, amount } = input.event
        const once: EffectClaim<EffectType> = {
          type: 'refund',
          reference,
          payment,
          amount: usd(amount ?? 0),
        }
        return move({ ...answer(input, { effects: [once] }), once })
      },
    })
    .on('refund.failed', {
      order: ({ event }) => byName('payment', event.payment),
      decide: (input) => {
        const reference = input.event.reference ?? ''
        return reverse({
          ...answer(input, { effects: [], reversed: reference }),
          of: { type: 'refund', reference },
        })
      },
    })
    .on('dispute.opened', {
      order: ({ event }) => byName('payment', event.payment),
      decide: (input) => {
        const { reference, payment } = input.event
        const once: EffectClaim<EffectType> = { type: 'disputeOpened', reference, payment }
        return move({ ...answer(input, { effects: [once] }), once })
      },
    })
    .on('dispute.closed', {
      order: ({ event }) => byName('payment', event.payment),
      decide: (input) => {
        const { reference = '', payment, outcome } = input.event
        const opened = input.effects.some(
          (each) => each.type === 'disputeOpened' && each.reference === reference,
        )
        if (!opened) return defer({ missing: effect('disputeOpened', reference) })
        const once: EffectClaim<EffectType> = {
          type: 'disputeClosed',
          reference,
          payment,
          data: { outcome },
        }
        return move({ ...answer(input, { effects: [once] }), once })
      },
    })
}

interface Facts {
  readonly payments: readonly Payment[]
  readonly effects: readonly Pick<
    Effect,
    'type' | 'reference' | 'amount' | 'payment' | 'data' | 'reversed'
  >[]
}

/** The facts that stand when the change is made. */
function factsAfter({ payments, effects }: Input, change: Change): Facts {
  const after = [...effects].map((each) =>
    each.type === 'refund' && each.reference === change.reversed
      ? { ...each, reversed: true }
      : each,
  ) as Facts['effects'][number][]
  for (const claim of change.effects) {
    const { type, reference = '', amount, payment = null, data = {} } = claim
    const known = after.findIndex((each) => each.type === type && each.reference === reference)
    // a reversal that came first stands for its effect, without an amount
    const reversed = known >= 0 && after[known]?.reversed === true
    const made = { type, reference, amount: amount?.amount ?? null, payment, data, reversed }
    if (known < 0) after.push(made)
    else if (after[known]?.amount === null)
      after[known] = { ...made, data: after[known]?.data ?? data }
  }
  const known = payments.filter((each) => each.applied && each.id !== change.payment?.id)
  const added =
    change.payment !== undefined && change.payment.amount >= BigInt(price) ? [change.payment] : []
  return { payments: [...known, ...added], effects: after }
}

function standing(spec: WorkflowSpec, { payments, effects }: Facts): Payment[] {
  return payments.filter((payment) => {
    const refunds = effects.filter(
      (each) => each.type === 'refund' && each.payment === payment.id && !each.reversed,
    )
    const sum = refunds.reduce((total, each) => total + (each.amount ?? 0n), 0n)
    return spec.partialRefundsCount ? refunds.length === 0 : sum < payment.amount
  })
}

function stateOf(spec: WorkflowSpec, facts: Facts): State {
  const ids = new Set<string | null>(facts.payments.map((payment) => payment.id))
  const about = (type: EffectType) =>
    facts.effects.filter((each) => each.type === type && ids.has(each.payment))
  const closed = about('disputeClosed')
  const tests: Readonly<Record<FactState, () => boolean>> = {
    lost: () => closed.some((each) => each.data['outcome'] === 'lost'),
    disputed: () =>
      about('disputeOpened').some(
        (each) => !closed.some((other) => other.reference === each.reference),
      ),
    refunded: () => ids.size > 0 && standing(spec, facts).length === 0,
    paid: () => standing(spec, facts).length > 0,
    canceled: () => facts.effects.some((each) => each.type === 'expired'),
  }
  return spec.precedence.find((state) => tests[state]()) ?? 'pending'
}

function entitlementsOf(spec: WorkflowSpec, input: Input, facts: Facts): EntitlementClaim[] {
  const sessions = facts.effects.filter((each) => each.type === 'session')
  const seats = standing(spec, facts).length
  const subjects =
    input.order.subject === null
      ? sessions.map((each) => String(each.data['subject']))
      : facts.payments.length === 0
        ? []
        : [input.order.subject]
  const until = sessions.map((each) => Number(each.data['until']))
  const validUntil = until.length === 0 ? null : new Date(Math.max(...until) * 1000)
  return subjects.flatMap((subject): EntitlementClaim[] => [
    ...(spec.grants.includes('pro') ? [{ subject, entitlement: 'pro', validUntil }] : []),
    ...(spec.grants.includes('seats') && seats > 0
      ? [{ subject, entitlement: 'seats', quantity: seats }]
      : []),
  ])
}
