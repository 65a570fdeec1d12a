import { describe, expect, test } from 'vitest'
import { money } from '../../src/core/money.ts'
import { fulfill } from '../../src/workflow/decision.ts'
import {
  checkedOpening,
  openLedger,
  unopenedOrder,
  type Opening,
} from '../../src/workflow/opening.ts'
import type { OrderLedger } from '../../src/workflow/order.ts'
import { usd } from '../support/pay-events.ts'
import { scripted } from '../support/scripted-workflow.ts'

const workflow = scripted({ paid: () => fulfill({ effects: [{ type: 'license' }] }) })
const other = scripted({}, { name: 'other' })
const opening: Opening = { id: '1', subject: 'user:1', expected: usd(4900) }

function existing(changes: Partial<OrderLedger> = {}): OrderLedger {
  return { ...unopenedOrder('1', workflow), stored: true, version: 3n, ...changes }
}

function captured(cents: number, applied = true, currency = 'usd'): Partial<OrderLedger> {
  return { payments: [{ id: 'pi_1', sourceId: 1, ...money(cents, currency), applied }] }
}

describe('openLedger', () => {
  test('an order that nobody knows is created in its initial state', () => {
    const ledger = unopenedOrder('1', workflow)
    expect(openLedger(ledger, workflow, opening)).toEqual({ answer: 'created', findings: [] })
    expect(ledger).toMatchObject({
      stored: true,
      state: 'pending',
      subject: 'user:1',
      expected: usd(4900),
    })
  })

  test('the same again exists, and changes nothing that is seen', () => {
    const ledger = existing({ subject: 'user:1', expected: usd(4900) })
    expect(openLedger(ledger, workflow, opening)).toEqual({ answer: 'existed', findings: [] })
    expect(ledger).toMatchObject({ subject: 'user:1', expected: usd(4900), state: 'pending' })
  })

  test('figures that were missing are added', () => {
    const ledger = existing(captured(4900))
    expect(openLedger(ledger, workflow, opening)).toEqual({ answer: 'existed', findings: [] })
    expect(ledger).toMatchObject({ subject: 'user:1', expected: usd(4900) })
  })

  test.each<[string, Partial<OrderLedger>, Opening, string]>([
    ['subject', { subject: 'user:2' }, opening, 'user:2, asked user:1'],
    ['expected', { expected: usd(100) }, opening, '1.00 USD, asked 49.00 USD'],
    ['expected', { expected: money(4900, 'eur') }, opening, '49.00 EUR, asked 49.00 USD'],
  ])(
    'another %s is a mismatch and a finding; what was there stays',
    (part, there, asked, shown) => {
      const ledger = existing(there)
      const { answer, findings } = openLedger(ledger, workflow, asked)
      expect(answer).toBe('mismatch')
      expect(findings).toMatchObject([
        { kind: 'order_differs', about: 'order:1', figures: { [part]: shown } },
      ])
      expect(ledger).toMatchObject(there)
    },
  )

  test('another workflow is a mismatch, and adds nothing to the order', () => {
    const ledger = existing()
    expect(openLedger(ledger, other, opening)).toMatchObject({
      answer: 'mismatch',
      findings: [{ kind: 'order_differs', figures: { workflow: 'scripted, asked other' } }],
    })
    expect(ledger).toMatchObject({ workflow: 'scripted', subject: null, expected: null })
  })

  test('opened later with more than was captured, it is a finding', () => {
    const { findings } = openLedger(existing(captured(4000)), workflow, opening)
    expect(findings).toMatchObject([
      { kind: 'underpaid', figures: { captured: '40.00 USD', expected: '49.00 USD' } },
    ])
  })

  test('opened later in another currency than was captured, it is a finding', () => {
    const { findings } = openLedger(existing(captured(9900, true, 'eur')), workflow, opening)
    expect(findings).toMatchObject([
      { kind: 'currency_differs', figures: { captured: '99.00 EUR' } },
    ])
  })

  test('a payment that is not applied has captured nothing', () => {
    expect(openLedger(existing(captured(4000, false)), workflow, opening).findings).toEqual([])
  })
})

describe('an order that an event opened first', () => {
  const entitled = {
    subject: 'email:ada@example.com',
    entitlement: 'pro',
    quantity: 1,
    validUntil: null,
  }
  const row = { ...entitled, active: true, stated: true, grantedBy: 1n }

  test('tells when somebody else is entitled than the app says now', () => {
    const ledger = { ...existing(captured(4900)), entitlements: [row] }
    const { answer, findings } = openLedger(ledger, workflow, { id: '1', subject: 'user:42' })
    expect(answer).toBe('mismatch')
    expect(findings.map(({ kind }) => kind)).toEqual(['order_differs'])
    expect(findings[0]?.figures).toMatchObject({
      subject: 'email:ada@example.com is entitled, asked user:42',
    })
  })

  test('does not change when it is opened again with what it has', () => {
    const ledger = existing(captured(4900))
    openLedger(ledger, workflow, opening)
    const { version } = ledger
    expect(openLedger(ledger, workflow, opening)).toEqual({ answer: 'existed', findings: [] })
    expect(ledger.version).toBe(version)
  })
})

describe('checkedOpening', () => {
  test('holds the expected money to the form that payments have', () => {
    const expected = { amount: 4900, currency: 'usd' } as unknown as Opening['expected']
    expect(checkedOpening({ id: '1', expected })).toEqual({
      id: '1',
      subject: undefined,
      expected: usd(4900),
    })
  })

  test('takes null for what is not known', () => {
    const given = { id: '1', subject: null, expected: null } as unknown as Opening
    expect(checkedOpening(given)).toEqual({ id: '1', subject: undefined, expected: undefined })
  })

  test.each([
    ['an empty id', { id: '' }],
    ['an id that is a number', { id: 7 }],
    ['an empty subject', { subject: '' }],
    ['a subject that no entitlement can have', { subject: 'x'.repeat(256) }],
    ['a subject with NUL', { subject: 'a\u0000b' }],
    ['a subject that is half of a pair', { subject: '\ud800' }],
    ['a negative amount', { expected: { amount: -1n, currency: 'USD' } }],
    ['an amount past 64 bits', { expected: { amount: 2n ** 63n, currency: 'USD' } }],
    ['a fraction of a cent', { expected: { amount: 0.5, currency: 'USD' } }],
    ['a currency that is none', { expected: { amount: 1n, currency: 'dollars' } }],
    ['an amount without a currency', { expected: { amount: 1n } }],
  ])('refuses %s, before anybody pays for it', (_, wrong) => {
    expect(() => checkedOpening({ ...opening, ...wrong } as Opening)).toThrow(
      expect.objectContaining({ code: 'HKL_LEDGER_ORDER_INVALID' }),
    )
  })
})
