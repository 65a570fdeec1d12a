import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  chargeDisputeClosed,
  chargeDisputeCreated,
  checkoutSessionCompleted,
  checkoutSessionExpired,
  paymentIntentSucceeded,
  refundCreated,
  refundFailed,
} from '../../src/testing/stripe-events.ts'
import {
  findViolations,
  invariants,
  type OracleConnection,
  type OracleHistory,
} from '../support/oracle.ts'
import { actualLicenses, expectedLicenses } from '../support/oracle-license.ts'
import { acknowledged, sent } from '../support/shop-history.ts'
import { createShop, type Shop } from '../support/shop.ts'

const events = [
  checkoutSessionCompleted({ order: '1' }),
  paymentIntentSucceeded({ order: '1' }),
  refundCreated({ order: '2', id: 're_2', amount: 4900 }),
  checkoutSessionCompleted({ order: '2' }),
  checkoutSessionExpired({ order: '3' }),
  // waits for ever: its opening never comes
  chargeDisputeClosed({ order: '1', id: 'du_1' }),
]
const history: OracleHistory = acknowledged([...events, events[0] as object])

let shop: Shop
beforeAll(async () => {
  shop = await createShop()
  for (const event of [...events, events[0] as object]) await shop.deliver(event)
  await shop.work()
})
afterAll(() => shop.close())

/** Seeds a violation and asks the oracle, all in one transaction that is rolled back. */
async function seeing(seed: string, seen: OracleHistory = history): Promise<readonly string[]> {
  const client = await shop.pool.connect()
  try {
    await client.query('begin; set local session_replication_role = replica')
    await client.query(seed)
    const inside: OracleConnection = {
      connect: () => Promise.resolve(within(client)),
    } as OracleConnection
    return [
      ...new Set((await findViolations(inside, seen, true)).map(({ invariant }) => invariant)),
    ]
  } finally {
    await client.query('rollback')
    client.release()
  }
}

/** The oracle's own transaction becomes a savepoint of ours. */
function within(client: pg.PoolClient): pg.PoolClient {
  return {
    query: (text: string, values?: unknown[]) =>
      client.query(
        text.startsWith('begin')
          ? 'savepoint oracle'
          : text === 'rollback'
            ? 'rollback to oracle'
            : text,
        values,
      ),
    release: () => {},
  } as unknown as pg.PoolClient
}

const anEvent = `(select min(event_key) from inbox_events)`
const license = `effect_type = 'license' and order_id = '1'`
const insertEffect = `insert into fulfillment_effects (order_id, effect_type, effect_reference, decision_id)`

const seeds: readonly (readonly [string, string, string])[] = [
  [
    'an acknowledged event that is gone',
    `delete from inbox_events where event_key = ${anEvent}`,
    'I1_acked_lost',
  ],
  [
    'a body that was written anew',
    `update payloads set body = body || ' '::bytea where event_key = ${anEvent}`,
    'I1_acked_altered',
  ],
  [
    'an acknowledgement without a write of its own',
    `delete from deliveries where delivery_id = (select max(delivery_id) from deliveries)`,
    'I1_ack_without_write',
  ],
  [
    'an effect that happened twice',
    `alter table fulfillment_effects drop constraint fulfillment_effects_pkey; ${insertEffect} select order_id, effect_type, effect_reference, decision_id from fulfillment_effects where ${license}`,
    'I2_effect_twice',
  ],
  [
    'a payment that is recorded twice',
    `alter table ledger_payments drop constraint ledger_payments_pkey; insert into ledger_payments select * from ledger_payments limit 1`,
    'I2_payment_twice',
  ],
  [
    'an event that is stored twice',
    `alter table inbox_events drop constraint inbox_events_identity_key; insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes) select source_id, event_id, event_type, body_sha256, body_bytes from inbox_events limit 1`,
    'I2_event_twice',
  ],
  [
    'an event that is decided twice',
    `drop index ledger_decisions_final_key; insert into ledger_decisions (event_key, kind, final, reason, actor) select event_key, 'skipped', true, 'again', 'x' from ledger_decisions where final limit 1`,
    'I2_decided_twice',
  ],
  [
    'an effect that no event asks for',
    `${insertEffect} select order_id, 'license', 'another', decision_id from fulfillment_effects where ${license}`,
    'I3_effect_invented',
  ],
  [
    'an event that nobody sent',
    `insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes) select source_id, 'evt_forged', event_type, body_sha256, body_bytes from inbox_events limit 1`,
    'I4_forged',
  ],
  [
    'an effect in a transaction of its own',
    `update fulfillment_effects set xid = '3'::xid8 where ${license}`,
    'I5_effect_apart',
  ],
  [
    "an effect of another order's decision",
    `update fulfillment_effects set order_id = 'x' where ${license}`,
    'I5_effect_apart',
  ],
  [
    'a change that left nothing',
    `delete from fulfillment_effects where order_id = '1'; delete from ledger_payments where order_id = '1'`,
    'I5_change_without_trace',
  ],
  [
    'a payment without its decision',
    `update ledger_payments set decision_id = 999999 where order_id = '1'`,
    'I5_payment_apart',
  ],
  [
    'an event that is finished and waits',
    `insert into inbox_ready (event_key, received_on) select event_key, current_date from ledger_decisions where final limit 1`,
    'I11_two_homes',
  ],
  ['an event that is nowhere', `delete from inbox_deferred`, 'I11_no_home'],
  [
    'an event that waits without a reason',
    `delete from ledger_decisions where kind = 'deferred'`,
    'I11_unexplained',
  ],
  [
    'a decision without a reason',
    `alter table ledger_decisions drop constraint ledger_decisions_reason_check; update ledger_decisions set reason = ' '`,
    'I11_blank',
  ],
  [
    'a state that no decision leads to',
    `update orders set state = 'lost' where order_id = '1'`,
    'I11_broken_chain',
  ],
  [
    'a state that only its first decision leads to',
    `update orders set state = 'lost' where order_id = '3'`,
    'I11_broken_chain',
  ],
  [
    'an entitlement of an order that does not entitle',
    `update entitlements set active = true where order_id = '2'`,
    'P4_entitled_unpaid',
  ],
  [
    'an entitlement that names a decision which does not entitle',
    `update entitlements set granted_by = (select decision_id from ledger_decisions where order_id = '3' limit 1) where order_id = '1'`,
    'P4_entitled_unpaid',
  ],
  [
    'an entitlement that is withheld',
    `update entitlements set active = false where order_id = '1'`,
    'P4_withheld',
  ],
  [
    'an entitlement that nothing changed',
    `update entitlements set changed_by = 999999 where order_id = '1'`,
    'P4_changed_by_nothing',
  ],
  [
    'an event that nothing takes up',
    `delete from ledger_decisions where final and event_key = ${anEvent}; insert into inbox_delayed (event_key, received_on, attempts, due_at, last_error) values (${anEvent}, current_date, 1, now(), 'x')`,
    'L1_stuck',
  ],
  [
    'a batch whose worker is gone',
    `insert into inbox_batches values (gen_random_uuid(), '{1}', false, 'x')`,
    'L1_batch_left',
  ],
  [
    'a wait for a name that is there',
    `insert into inbox_waits select n.kind, n.source_id, n.name, d.event_key from order_names n, inbox_deferred d where n.order_id = '1' limit 1`,
    'L1_wake_up_lost',
  ],
]

describe('the oracle', () => {
  it('finds nothing in a clean history', async () => {
    expect(await findViolations(shop.pool, history, true)).toEqual([])
  })

  it.each(seeds)('sees %s', async (_, seed, invariant) => {
    expect(await seeing(seed)).toContain(invariant)
  })

  it('sees a session that stayed in its transaction', async () => {
    const other = await shop.pool.connect()
    try {
      await other.query('begin; select 1')
      expect(
        (await findViolations(shop.pool, history, true)).map((each) => each.invariant),
      ).toEqual(['L1_session_left'])
    } finally {
      await other.query('rollback')
      other.release()
    }
  })

  it('takes a delivery whose answer nobody read for either', async () => {
    const unsure = {
      ...history,
      deliveries: [
        ...history.deliveries,
        { ...sent(events[0] as object, 'info'), eventId: 'evt_unknown' },
      ],
    }
    expect(await findViolations(shop.pool, unsure, true)).toEqual([])
    const sure = {
      ...history,
      deliveries: [
        ...history.deliveries,
        { ...sent(events[0] as object, 'ok'), eventId: 'evt_unknown' },
      ],
    }
    expect((await findViolations(shop.pool, sure, true)).map((each) => each.invariant)).toContain(
      'I1_acked_lost',
    )
  })

  it('has a seeded violation for everything that it judges', () => {
    const seeded = new Set([...seeds.map(([, , invariant]) => invariant), 'L1_session_left'])
    expect(invariants.filter((each) => !seeded.has(each))).toEqual([])
  })
})

describe('the fold of the truth', () => {
  it('agrees with the ledger about a clean history', async () => {
    const rows = await shop.rows<{
      order_id: string
      state: string
      effects: string[]
      entitlements: string[]
    }>(actualLicenses)
    const actual = new Map(
      rows.map(({ order_id: id, state, effects, entitlements }) => [
        id,
        { state, effects: effects.sort(), entitlements },
      ]),
    )
    expect(actual).toEqual(expectedLicenses(events))
  })

  it('does not depend on the order of events', () => {
    const all = [
      ...events,
      chargeDisputeCreated({ order: '1', id: 'du_1' }),
      refundFailed({ order: '2', id: 're_2' }),
    ]
    expect(expectedLicenses([...all].reverse())).toEqual(expectedLicenses(all))
    expect(expectedLicenses(all).get('2')?.state).toBe('paid')
  })
})
