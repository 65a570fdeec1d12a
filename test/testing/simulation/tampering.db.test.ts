import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { audit } from '../../../src/report/audit.ts'
import { tamperWith } from '../../../src/testing/simulation/tampering.ts'
import { createRandom } from '../../../src/testing/stripe-double/random.ts'
import { LedgerDatabase, type LedgerFixture } from '../../report/ledger-fixture.ts'

type Result = Parameters<typeof tamperWith>[1]

let database: LedgerDatabase
let fixture: LedgerFixture
let end: () => Promise<void>

beforeAll(async () => {
  database = await LedgerDatabase.create()
})

afterAll(() => database.drop())

beforeEach(async () => {
  ;({ fixture, end } = await database.trying())
  for (let id = 1; id <= 8; id++) await order(String(id), id > 4)
})

afterEach(() => end())

/** An order that was paid, and perhaps refunded since. */
async function order(id: string, isRefunded: boolean): Promise<void> {
  const grant = { subject: `user:${id}`, entitlement: 'pro' }
  await fixture.decide({
    event: await fixture.event({ id: `evt_paid_${id}`, type: 'checkout.session.completed' }),
    kind: 'fulfilled',
    order: id,
    from: 'pending',
    to: 'paid',
    effects: [{ type: 'license' }],
    evidence: { granted: [`user:${id} pro`] },
    entitle: [{ ...grant, active: true }],
  })
  if (!isRefunded) return
  await fixture.decide({
    event: await fixture.event({ id: `evt_refund_${id}`, type: 'refund.created' }),
    kind: 'moved',
    order: id,
    from: 'paid',
    to: 'refunded',
    effects: [{ type: 'refund', reference: `re_${id}` }],
    evidence: { revoked: [`user:${id} pro`] },
    entitle: [{ ...grant, active: false }],
  })
}

/** A run with these orders, as the provider sees them; of `lost` an event never came. */
function run(lost: readonly string[] = []): Result {
  const ids = Array.from({ length: 8 }, (_, at) => String(at + 1))
  return {
    orders: ids.map((id) => ({ id })),
    lost: lost.map((orderId) => ({ eventId: `evt_${orderId}`, type: 'refund.created', orderId })),
    outcomes: new Map(ids.map((id, at) => [id, { state: at < 4 ? 'paid' : 'refunded' }])),
  } as unknown as Result
}

describe('tamperWith', () => {
  it('changes orders behind the back of their decisions, each trick in turn, and says which', async () => {
    const tampered = await tamperWith(fixture.db, run(), 6, createRandom('tamper'))
    expect(tampered.map((each) => each.trick)).toEqual([
      'state_changed',
      'access_withheld',
      'access_given',
      'state_changed',
      'access_withheld',
      'access_given',
    ])
    expect(new Set(tampered.map((each) => each.orderId)).size).toBe(6)
    const { checks } = await audit(fixture.db)
    const seen = checks.flatMap((each) => each.examples.map(({ key }) => key.split('/')[0]))
    expect(new Set(seen)).toEqual(new Set(tampered.map((each) => each.orderId)))
  })

  it('leaves alone what more will come of, and what is not as the provider says', async () => {
    await fixture.sql(`update hookledger.entitlements set active = false where order_id = '1'`)
    await fixture.sql(`update hookledger.orders set state = 'disputed' where order_id = '1'`)
    const result = run(['2', '3', '5', '6', '7'])
    const tampered = await tamperWith(fixture.db, result, 6, createRandom('tamper'))
    expect(new Set(tampered.map((each) => each.orderId))).toEqual(new Set(['4', '8']))
  })
})
