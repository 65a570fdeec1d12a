import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createProbe, probe, probeWorkflow, type Probe } from '../support/probe.ts'

let bench: Probe
beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow()] })
})
afterAll(() => bench.close())
beforeEach(() => bench.reset())

/** Events that use the text as an order id, as a name, and as a payment's id; and one that does not. */
async function tryAsKey(text: string): Promise<unknown> {
  await bench.deliver(
    probe('pay', { id: 'evt_order', order: text }),
    probe('pay', { id: 'evt_name', order: 'named', learns: text }),
    probe('pay', { id: 'evt_payment', order: 'paid', payment: text }),
    probe('pay', { id: 'evt_beside', order: 'beside' }),
  )
  await bench.work()
  const rows = await bench.rows<{ event_id: string; state: string }>(
    `select event_id, state from webhook_inbox`,
  )
  return Object.fromEntries(rows.map((row) => [row.event_id, row.state]))
}

describe('a text that a provider sends as a key', () => {
  it.each([
    ['composed otherwise', 'e\u0301'],
    ['of four bytes a character', '\u{1f600}'.repeat(62)],
    ['a space', ' '],
    ['full of quotes', `o'"; drop table orders; --`],
    ['full of what arrays are written with', 'a\\b{,},"NULL"'],
    ['NULL', 'NULL'],
    ['a word of JavaScript', '__proto__'],
    ['with a new line', 'a\nb'],
  ])('is kept exactly (%s)', async (_, text) => {
    expect(await tryAsKey(text)).toEqual({
      evt_order: 'processed',
      evt_name: 'processed',
      evt_payment: 'processed',
      evt_beside: 'processed',
    })
    expect(await bench.rows(`select 1 from orders where order_id = $1`, [text])).toHaveLength(1)
    expect(
      await bench.rows(`select 1 from order_names where name = $1 and order_id = 'named'`, [text]),
    ).toHaveLength(1)
    expect(
      await bench.rows(`select 1 from ledger_payments where payment_id = $1`, [text]),
    ).toHaveLength(1)
  })

  it.each([
    ['with NUL', 'a\u0000b'],
    ['half a character', '\ud800x'],
    ['too long', 'x'.repeat(256)],
    ['too long in bytes', '\u{1f600}'.repeat(64)],
  ])(
    'that no index can hold ends its event dead, and the events beside it are unharmed (%s)',
    async (_, text) => {
      expect(await tryAsKey(text)).toEqual({
        evt_order: 'dead',
        evt_name: 'dead',
        evt_payment: 'dead',
        evt_beside: 'processed',
      })
      const reasons = await bench.rows<{ last_error: string }>(
        `select last_error from webhook_inbox where state = 'dead'`,
      )
      for (const { last_error: reason } of reasons) {
        expect(reason).toMatch(/^PermanentError: the (order id|name of kind ref|payment id) /)
        expect(reason).not.toContain(text.slice(0, 40))
      }
    },
  )
})
