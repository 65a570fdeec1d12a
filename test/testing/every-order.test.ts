import { describe, expect, test } from 'vitest'
import { everyOrder, OrderMattersError, play } from 'hookledger/testing'
import { fulfill, move } from '../../src/workflow/decision.ts'
import { pay, usd } from '../support/pay-events.ts'
import { scripted, type Script } from '../support/scripted-workflow.ts'

const seat: Script = ({ event }) =>
  fulfill({ to: 'paid', effects: [{ type: 'seat', reference: event.id }] })
const lastWins: Script = ({ event }) =>
  move({ to: event.to ?? 'paid', once: { type: 'seat', reference: event.id } })
const good = scripted({ seat })
const careless = scripted({ status: lastWins })
const seats = [1, 2, 3].map((number) => pay('seat', { id: `evt_${number}`, order: '1' }))
const statuses = ['paid', 'canceled', 'disputed'].map((to) =>
  pay('status', { id: `evt_${to}`, order: '1', to }),
)

function caught(run: () => unknown): OrderMattersError {
  try {
    run()
  } catch (error) {
    if (error instanceof OrderMattersError) return error
    throw error
  }
  throw new Error('the order did not matter')
}

describe('everyOrder over workflows', () => {
  test('runs every order and tells how many', () => {
    expect(everyOrder(seats, good)).toEqual({ orders: 6, sampled: false })
  })

  test('throws an error that names the order, what differs and what it is held against', () => {
    const error = caught(() => everyOrder(statuses, careless))
    expect(error.message).toBe(
      [
        'the order of events matters.',
        'This order',
        '  1. status evt_paid',
        '  2. status evt_disputed',
        '  3. status evt_canceled',
        'ends differently from the given order:',
        '  - orders, 1, state: "canceled", not "disputed"',
      ].join('\n'),
    )
    expect(error.order).toEqual(['status evt_paid', 'status evt_disputed', 'status evt_canceled'])
  })

  test('runs several workflows together, and an order that the app opens', () => {
    const waiting = scripted({ seat }, { opens: 'app', name: 'waiting' })
    const open = { id: '1', subject: 'user:1', expected: usd(100) }
    expect(everyOrder(seats, [waiting, scripted({ other: seat })], { open })).toEqual({
      orders: 6,
      sampled: false,
    })
  })

  test('samples long lists by a seed', () => {
    const many = Array.from({ length: 8 }, () => pay('seat', { order: '1' }))
    expect(everyOrder(many, good, { samples: 30 })).toEqual({ orders: 31, sampled: true })
    expect(everyOrder(many.slice(0, 7), good, { exhaustive: 7 })).toEqual({
      orders: 5040,
      sampled: false,
    })
  })
})

describe('everyOrder over a function', () => {
  const stateAfter = (workflow: typeof good) => (order: readonly object[]) => {
    const app = play([workflow])
    for (const event of order) app.deliver(event)
    return app
      .orders()
      .map(({ state, effects }) => [state, effects.map((each) => each.reference).sort()])
  }

  test('compares what it returns, part by part', () => {
    expect(everyOrder(seats, stateAfter(good))).toEqual({ orders: 6, sampled: false })
    const error = caught(() => everyOrder(statuses, stateAfter(careless)))
    expect(error.differs).toEqual(['0, 0: "canceled", not "disputed"'])
    expect(error.order).toEqual(['status evt_paid', 'status evt_disputed', 'status evt_canceled'])
  })

  test('awaits one run after the other', async () => {
    let running = 0
    const report = await everyOrder(seats, async (order) => {
      running += 1
      expect(running).toBe(1)
      await Promise.resolve()
      running -= 1
      return order.length
    })
    expect(report).toEqual({ orders: 6, sampled: false })
  })

  test('rejects when asynchronous runs end differently', async () => {
    const first = everyOrder(seats, async (order) => order[0]?.id)
    await expect(first).rejects.toThrow(OrderMattersError)
    await expect(first).rejects.toThrow(/"evt_2", not "evt_1"/)
  })

  test('takes a list of anything, and names things without a type by their place', () => {
    const error = caught(() => everyOrder([{ a: 1 }, { a: 2 }], ([first]) => first))
    expect(error.order).toEqual(['event 2 of the list', 'event 1 of the list'])
  })

  test('runs an empty list once', () => {
    expect(everyOrder([], () => 1)).toEqual({ orders: 1, sampled: false })
  })
})
