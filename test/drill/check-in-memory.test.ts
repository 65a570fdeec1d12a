import { connect } from 'node:net'
import {
  defineWorkflow,
  fulfill,
  idOf,
  money,
  move,
  names,
  orderId,
  skip,
  waitFor,
} from 'hookledger'
import { checkoutSessionCompleted, checkoutSessionExpired, refundCreated } from 'hookledger/testing'
import { describe, expect, it } from 'vitest'
import { license } from '../../examples/shop/license.ts'
import { checkInMemory } from '../../src/drill/pure/check-in-memory.ts'
import type { Workflow } from '../../src/workflow/workflow.ts'

const options = { seed: 1, samples: 20 }

const faults = async (workflow: Workflow): Promise<string[]> => [
  ...new Set((await checkInMemory([workflow], options)).faults.map(({ fault }) => fault)),
]

interface Behavior {
  readonly reference?: (id: string) => string
  /** A refund that was made before the payment, as events say it, is passed over. */
  readonly comparesTimes?: boolean
  readonly onDecide?: () => void
  /** What comes later wins, whatever it says. */
  readonly lastWins?: boolean
}

function shop({ reference, comparesTimes, onDecide, lastWins }: Behavior): Workflow {
  return defineWorkflow('shop', {
    sources: ['stripe'],
    initial: 'pending',
    opens: 'event',
    accepts: () => true,
    states: { pending: {}, paid: { entitles: true }, canceled: {}, refunded: {} },
    transitions: {
      pending: ['paid', 'canceled', 'refunded'],
      paid: ['refunded', 'canceled'],
      canceled: ['paid', 'refunded'],
      refunded: [],
    },
    effects: { license: {}, expired: {}, refund: {} },
    histories: [
      {
        name: 'expired and paid',
        events: [
          checkoutSessionExpired({ order: 's-1', attempt: 2 }),
          checkoutSessionCompleted({ order: 's-1' }),
        ],
      },
    ],
  })
    .on('checkout.session.completed', {
      order: ({ event }) => orderId(event.data.object.client_reference_id),
      learn: ({ event }) => names({ payment_intent: event.data.object.payment_intent }),
      decide: ({ event, effects }) => {
        onDecide?.()
        const { id, amount_total: amount, currency, payment_intent: intent } = event.data.object
        const isPaidBack = effects.some(({ type }) => type === 'refund')
        return fulfill({
          to: isPaidBack ? 'refunded' : 'paid',
          payment: { id: idOf(intent) ?? id, money: money(amount ?? 0, currency ?? '') },
          effects: [
            {
              type: 'license',
              reference: reference?.(event.id) ?? '',
              data: comparesTimes === true ? { at: event.created } : {},
            },
          ],
          entitle: [{ subject: 'user:1', entitlement: 'pro' }],
        })
      },
    })
    .on('checkout.session.expired', {
      order: ({ event }) => orderId(event.data.object.client_reference_id),
      decide: ({ event, effects }) =>
        move({
          to: lastWins === true || effects.length === 0 ? 'canceled' : 'paid',
          once: { type: 'expired', reference: event.data.object.id },
        }),
    })
    .on('refund.created', {
      order: ({ event }) => waitFor(names({ payment_intent: event.data.object.payment_intent })),
      decide: ({ event, effects }) => {
        const { id, amount, currency, payment_intent: intent } = event.data.object
        const paidAt = effects.find(({ type }) => type === 'license')?.data['at']
        if (comparesTimes === true && event.created < Number(paidAt)) return skip('it is older')
        return fulfill({
          to: 'refunded',
          effects: [
            {
              type: 'refund',
              reference: id,
              amount: money(amount, currency),
              payment: idOf(intent) ?? '',
            },
          ],
        })
      },
    })
}

describe('a check in memory', () => {
  it('finds nothing where nothing is wrong, and says what it played', async () => {
    const report = await checkInMemory([license], options)
    expect(report.faults).toEqual([])
    expect(report.cases).toMatchObject({ io: 6, again: 6, times: 12, twice: 6 })
    expect(report.cases['orders']).toBeGreaterThan(100)
    expect(report.outlooks['license/bought']).toMatchObject({
      sends: true,
      standing: [{ amount: 4900, currency: 'USD' }],
    })
  })

  it('finds an effect that is keyed by its event', async () => {
    expect(await faults(shop({ reference: (id) => id }))).toContain('effect_keyed_by_event')
  })

  it('finds what reads the clock of the machine', async () => {
    let time = 0
    expect(await faults(shop({ reference: () => `at ${time++}` }))).toContain('state_in_memory')
  })

  it('finds a connection that is begun while it is decided, and lets it reach nobody', async () => {
    const reached: unknown[] = []
    const found = await faults(
      shop({
        onDecide: () => {
          const socket = connect(1, '127.0.0.1')
          socket.on('error', () => {})
          socket.on('connect', () => reached.push(socket))
        },
      }),
    )
    expect(found).toContain('sends_outside_outbox')
    expect(reached).toEqual([])
  })

  it('finds an end that depends on the order of events, with the smallest order that shows it', async () => {
    const { faults: found } = await checkInMemory([shop({ lastWins: true })], options)
    const [fault] = found.filter((each) => each.fault === 'order_matters')
    expect(fault?.schedule).toHaveLength(2)
  })

  it('finds a workflow that takes payments and knows no refund', async () => {
    const deaf = shop({})
    const handlers = new Map([...deaf.handlers].filter(([type]) => type !== 'refund.created'))
    expect(await faults({ ...deaf, handlers })).toContain('refund_ignored')
  })

  it('finds what compares the times that events say', async () => {
    const history = {
      name: 'paid back',
      events: [checkoutSessionCompleted({ order: 's-1' }), refundCreated({ order: 's-1' })],
    }
    const workflow = { ...shop({ comparesTimes: true }), histories: [history] }
    expect(await faults(workflow)).toContain('compares_timestamps')
    expect(await faults({ ...shop({}), histories: [history] })).toEqual([])
  })

  it('finds an event that can never be decided', async () => {
    const broken = shop({
      onDecide: () => {
        throw new Error('not today')
      },
    })
    expect(await faults(broken)).toContain('dead_event')
  })

  it('does not pay back again what a history has paid back', async () => {
    const history = {
      name: 'paid back',
      events: [checkoutSessionCompleted({ order: 's-1' }), refundCreated({ order: 's-1' })],
    }
    const report = await checkInMemory([{ ...shop({}), histories: [history] }], options)
    expect(report.faults).toEqual([])
  })
})
