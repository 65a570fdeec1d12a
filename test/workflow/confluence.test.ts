import { describe, expect, test } from 'vitest'
import { checkConfluence } from '../../src/workflow/confluence.ts'
import { fulfill, move, skip } from '../../src/workflow/decision.ts'
import type { History } from '../../src/workflow/workflow.ts'
import { pay, usd, type PayBody } from '../support/pay-events.ts'
import { scripted, type Script } from '../support/scripted-workflow.ts'

const paid: Script = ({ event, effects }) =>
  fulfill({
    to: effects.some((each) => each.type === 'refund') ? 'refunded' : 'paid',
    payment: { id: event.payment ?? 'pi_1', money: usd(4900) },
    effects: [{ type: 'license' }],
    entitle: [{ subject: 'user:1', entitlement: 'pro' }],
  })
const refunded: Script = ({ event }) =>
  fulfill({
    to: 'refunded',
    effects: [{ type: 'refund', reference: event.reference, amount: usd(4900), payment: 'pi_1' }],
  })
const lastWins: Script = ({ event }) =>
  move({ to: event.to ?? 'pending', once: { type: 'seat', reference: event.id } })

function history(name: string, events: readonly PayBody[], rest: Partial<History> = {}): History {
  return { name, events, ...rest }
}
const purchase = history('paid and refunded', [
  pay('paid', { id: 'evt_paid', order: '1', payment: 'pi_1' }),
  pay('refunded', { id: 'evt_refunded', payment: 'pi_1', reference: 're_1' }),
])

describe('checkConfluence', () => {
  test('passes a workflow whose state is a function of the facts', () => {
    expect(checkConfluence(scripted({ paid, refunded }), [purchase])).toEqual({
      checked: 2,
      sampled: false,
      failures: [],
    })
  })

  test('names the history of a workflow in which the last event wins, the order, and what differs', () => {
    const events = ['paid', 'disputed', 'canceled'].map((to) =>
      pay('status', { id: `evt_${to}`, order: '1', to }),
    )
    const report = checkConfluence(scripted({ status: lastWins }), [
      purchase,
      history('statuses', events),
    ])
    expect(report.failures).toEqual([
      {
        history: 'statuses',
        order: ['status evt_paid', 'status evt_canceled', 'status evt_disputed'],
        differs: ['orders, 1, state: "disputed", not "canceled"'],
      },
    ])
  })

  test('plays every order of up to six events', () => {
    const events = Array.from({ length: 6 }, (_, index) =>
      pay('seat', { order: '1', reference: `s${index}` }),
    )
    const seat: Script = ({ event }) =>
      fulfill({ to: 'paid', effects: [{ type: 'seat', reference: event.reference }] })
    expect(checkConfluence(scripted({ seat }), [history('six', events)])).toEqual({
      checked: 720,
      sampled: false,
      failures: [],
    })
  })

  test('plays a seeded sample of a longer history, and says so', () => {
    const events = Array.from({ length: 9 }, (_, index) =>
      pay('status', { order: '1', to: index === 4 ? 'paid' : 'canceled' }),
    )
    const check = (seed: number) =>
      checkConfluence(scripted({ status: lastWins }), [history('nine', events)], {
        samples: 40,
        seed,
      })
    expect(check(7)).toMatchObject({ checked: 41, sampled: true })
    expect(check(7).failures).toHaveLength(1)
    expect(check(7)).toEqual(check(7))
  })

  test('the order that it names is the nearest: one pair of neighbors the other way round', () => {
    const events = Array.from({ length: 8 }, (_, index) =>
      pay('status', { order: '1', to: index === 7 ? 'paid' : 'canceled' }),
    )
    const [failure] = checkConfluence(scripted({ status: lastWins }), [
      history('eight', events),
    ]).failures
    const natural = events.map((event) => `status ${event.id}`)
    expect(failure?.order.filter((line, index) => line !== natural[index])).toHaveLength(2)
  })

  test('finds what only a batch does: a name that is known before its order is paid', () => {
    const hasty: Script = ({ event, payments }) =>
      payments.length === 0
        ? skip('nothing to refund')
        : fulfill({ to: 'refunded', effects: [{ type: 'refund', reference: event.reference }] })
    const [failure] = checkConfluence(scripted({ paid, refunded: hasty }), [purchase]).failures
    expect(failure).toEqual({
      history: 'paid and refunded',
      order: ['refunded evt_refunded + paid evt_paid'],
      differs: expect.arrayContaining(['orders, 1, state: "paid", not "refunded"']),
    })
  })

  test('delivers again what came before, which changes nothing that was decided', () => {
    const decided: string[] = []
    const counting: Script = ({ event }) => {
      decided.push(event.id)
      return fulfill({ effects: [{ type: 'seat', reference: event.id }] })
    }
    const events = [
      pay('counting', { order: '1' }),
      pay('counting', { order: '1' }),
      pay('counting', { order: '1' }),
    ]
    const { checked, failures } = checkConfluence(scripted({ counting }), [
      history('counted', events),
    ])
    expect(failures).toEqual([])
    // once for what is expected, then for each order one by one and in batches: never for a repetition
    expect(decided).toHaveLength(events.length * (1 + 2 * checked))
  })

  test('finds what depends on when an event was received', () => {
    const dated: Script = ({ event }) =>
      fulfill({
        to: 'paid',
        effects: [{ type: 'seat', reference: event.id }],
        entitle: [{ subject: 'user:1', entitlement: 'pro', validUntil: event.receivedAt }],
      })
    const events = [pay('dated', { order: '1' }), pay('dated', { order: '2' })]
    const [failure] = checkConfluence(scripted({ dated }), [history('dated', events)]).failures
    expect(failure?.differs[0]).toContain('validUntil')
  })

  test('an event that ends dead in one order only is a difference', () => {
    const early: Script = ({ order }) => {
      if (order.state === 'pending') throw new Error('too early')
      return skip('fine')
    }
    const events = [pay('paid', { order: '1' }), pay('early', { id: 'evt_early', order: '1' })]
    const [failure] = checkConfluence(scripted({ paid, early }), [
      history('early', events),
    ]).failures
    expect(failure?.differs).toEqual([
      'dead, early evt_early: "it failed each time: Error: too early", not missing',
    ])
  })

  test("the app's opening comes at every place among the events that wait for it", () => {
    const waiting = scripted({ paid, refunded }, { opens: 'app' })
    const opened = { ...purchase, open: { id: '1', subject: 'user:1', expected: usd(4900) } }
    expect(checkConfluence(waiting, [opened]).failures).toEqual([])
    const impatient = scripted({
      late: ({ order }) =>
        fulfill({ effects: [{ type: 'seat', reference: order.subject ?? 'nobody' }] }),
    })
    const first = history('opened first', [pay('late', { order: '1' })], {
      open: { id: '1', subject: 'user:1' },
    })
    expect(checkConfluence(impatient, [first]).failures).toEqual([])
  })

  test('histories of live and of test events are both played', () => {
    const live = purchase.events.map((event) => ({ ...event, livemode: true }))
    const failing = scripted({
      paid: lastWins,
      refunded: () => move({ to: 'canceled', once: { type: 'seat', reference: 'r' } }),
    })
    for (const events of [purchase.events, live]) {
      expect(checkConfluence(failing, [{ name: 'either', events }]).failures).toHaveLength(1)
    }
  })

  test('several workflows play one history together', () => {
    const first = scripted({ paid }, { name: 'first' })
    const second = scripted({ refunded }, { name: 'second' })
    const events = [
      pay('paid', { order: '1', payment: 'pi_1' }),
      pay('refunded', { order: '2', reference: 're' }),
    ]
    expect(checkConfluence([first, second], [history('both', events)])).toMatchObject({
      checked: 2,
      failures: [],
    })
  })
})
