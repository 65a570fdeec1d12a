import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findMissingIndexes } from '../../src/drill/oracle/index-checks.ts'
import { judge } from '../../src/drill/oracle/judge.ts'
import { ledgerChecks } from '../../src/drill/oracle/ledger-checks.ts'
import { outboxChecks } from '../../src/drill/oracle/outbox-checks.ts'
import type { Asked, SeenHistory } from '../../src/drill/oracle/verdict.ts'
import {
  startDestinationDouble,
  type DestinationDouble,
} from '../../src/drill/world/destination-double.ts'
import { http } from '../../src/outbox/destinations/http.ts'
import {
  chargeDisputeClosed,
  checkoutSessionCompleted,
  checkoutSessionExpired,
  refundCreated,
  stripeBody,
} from '../../src/testing/stripe-events.ts'
import { createShop, type Shop } from '../support/shop.ts'

const events = [
  checkoutSessionCompleted({ order: '1' }),
  checkoutSessionCompleted({ order: '2' }),
  refundCreated({ order: '2', id: 're_2', amount: 4900 }),
  checkoutSessionExpired({ order: '3' }),
  // waits for ever: its opening never comes
  chargeDisputeClosed({ order: '1', id: 'du_1' }),
]

let destination: DestinationDouble
let shop: Shop
beforeAll(async () => {
  destination = await startDestinationDouble()
  shop = await createShop({
    destinations: {
      email: http({ url: `${destination.url}/email`, allow: [new URL(destination.url).host] }),
    },
  })
  for (const event of events) await shop.deliver(event)
  await shop.work()
})
afterAll(async () => {
  await shop.close()
  await destination.close()
})

function seen(): SeenHistory {
  return {
    deliveries: events.map((event) => ({
      eventId: event.id,
      sha256: createHash('sha256').update(stripeBody(event)).digest('hex'),
      outcome: 'ok',
    })),
    calls: destination.calls,
    made: events.map(({ id, created }) => ({ eventId: id, created })),
    complete: true,
  }
}

/** Seeds a violation and judges, all in one transaction that is rolled back. */
async function faults(seed: string, history: SeenHistory = seen()): Promise<readonly string[]> {
  const client = await shop.pool.connect()
  try {
    await client.query('begin; set local session_replication_role = replica')
    if (seed !== '') await client.query(seed)
    const inside: Asked = {
      query: (text, values) =>
        client.query(
          text.startsWith('begin')
            ? 'savepoint oracle'
            : text === 'rollback'
              ? 'rollback to oracle'
              : text,
          values,
        ),
    }
    const found = [
      ...(await judge(inside, 'hookledger', history, true)),
      ...(await findMissingIndexes(inside, 'hookledger')),
    ]
    return [...new Set(found.map(({ fault }) => fault))]
  } finally {
    await client.query('rollback')
    client.release()
  }
}

const anEvent = `(select min(event_key) from inbox_events)`
const anOperation = `(select min(operation_id::text)::uuid from outbox_operations)`

/** What is wrong, how it comes to be so, and what the oracle must call it. */
const seeds: readonly (readonly [string, string, string])[] = [
  [
    'an acknowledged event that is gone',
    `delete from inbox_events where event_key = ${anEvent}`,
    'acknowledged_lost',
  ],
  [
    'a body that was written anew',
    `update payloads set body = body || ' '::bytea where event_key = ${anEvent}`,
    'acknowledged_altered',
  ],
  [
    'an acknowledgement without a write of its own',
    `delete from deliveries where delivery_id = (select max(delivery_id) from deliveries)`,
    'acknowledged_without_write',
  ],
  [
    'an event that nobody made',
    `insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes) select source_id, 'evt_forged', event_type, body_sha256, body_bytes from inbox_events limit 1`,
    'event_invented',
  ],
  [
    'an event that is stored twice',
    `alter table inbox_events drop constraint inbox_events_identity_key; insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes) select source_id, event_id, event_type, body_sha256, body_bytes from inbox_events limit 1`,
    'event_twice',
  ],
  [
    'an effect that is recorded twice',
    `alter table fulfillment_effects drop constraint fulfillment_effects_pkey; insert into fulfillment_effects (order_id, effect_type, effect_reference, decision_id) select order_id, effect_type, effect_reference, decision_id from fulfillment_effects limit 1`,
    'effect_twice',
  ],
  [
    'a payment that is recorded twice',
    `alter table ledger_payments drop constraint ledger_payments_pkey; insert into ledger_payments select * from ledger_payments limit 1`,
    'payment_twice',
  ],
  [
    'an event that is decided twice',
    `drop index ledger_decisions_final_key; insert into ledger_decisions (event_key, kind, final, reason, actor) select event_key, 'skipped', true, 'again', 'x' from ledger_decisions where final limit 1`,
    'decided_twice',
  ],
  [
    'an effect in a transaction of its own',
    `update fulfillment_effects set xid = '3'::xid8 where order_id = '1'`,
    'not_one_transaction',
  ],
  [
    'a payment without its decision',
    `update ledger_payments set decision_id = 999999 where order_id = '1'`,
    'not_one_transaction',
  ],
  [
    'an event that is decided and waits',
    `insert into inbox_ready (event_key, received_on) select event_key, current_date from ledger_decisions where final limit 1`,
    'not_one_transaction',
  ],
  [
    'an operation in a transaction of its own',
    `update outbox_operations set xid = '3'::xid8 where operation_id = ${anOperation}`,
    'not_one_transaction',
  ],
  ['an event that is nowhere', `delete from inbox_deferred`, 'event_nowhere'],
  [
    'an entitlement of an order that does not entitle',
    `update entitlements set active = true where order_id = '2'`,
    'entitled_unpaid',
  ],
  [
    'an entitlement that is withheld',
    `update entitlements set active = false where order_id = '1'`,
    'entitlement_withheld',
  ],
  [
    'a decision without a reason',
    `alter table ledger_decisions drop constraint ledger_decisions_reason_check; update ledger_decisions set reason = ' '`,
    'unexplained',
  ],
  [
    'an event that waits without a decision that says why',
    `delete from ledger_decisions where kind = 'deferred'`,
    'unexplained',
  ],
  [
    'an entitlement that no decision changed',
    `update entitlements set changed_by = 999999 where order_id = '1'`,
    'unexplained',
  ],
  ['bodies that everybody may read', `grant select on payloads to public`, 'payload_readable'],
  [
    'an event that nothing takes up',
    `delete from ledger_decisions where final and event_key = ${anEvent}; insert into inbox_delayed (event_key, received_on, attempts, due_at, last_error) values (${anEvent}, current_date, 1, now(), 'x')`,
    'stuck',
  ],
  [
    'a batch whose worker is gone',
    `insert into inbox_batches values (gen_random_uuid(), '{1}', false, 'x')`,
    'stuck',
  ],
  [
    'an event that is dead',
    `delete from inbox_deferred; insert into inbox_dead (event_key, received_on, attempts, reason) values ((select event_key from inbox_events where event_type = 'charge.dispute.closed'), current_date, 1, 'x')`,
    'dead_event',
  ],
  [
    'an event that never came',
    `delete from inbox_events where event_key = ${anEvent}`,
    'never_arrived',
  ],
  [
    'a checkpoint that is ahead of the inbox',
    `delete from inbox_events where event_key = ${anEvent}; insert into reconciliation_checkpoints (source_id, kind, through) select source_id, 'event', now() + interval '1 day' from sources limit 1 on conflict (source_id, kind) do update set through = excluded.through`,
    'checkpoint_ahead',
  ],
  [
    'a call of an operation that is not there',
    `delete from outbox_operations where operation_id = ${anOperation}`,
    'operation_id_changed',
  ],
  [
    'a call without an attempt',
    `delete from outbox_attempts where operation_id = ${anOperation}`,
    'sent_before_commit',
  ],
  [
    'a request that was written anew',
    `update outbox_requests set request = request || ' '::bytea where operation_id = ${anOperation}`,
    'operation_altered',
  ],
  [
    'two operations for one effect',
    `insert into outbox_operations (operation_id, destination, order_id, effect_type, effect_reference, name, decision_id, request_sha256, request_bytes, promise, window_ms)
       select gen_random_uuid(), destination, order_id, effect_type, effect_reference, name, decision_id, request_sha256, request_bytes, promise, window_ms from outbox_operations limit 1`,
    'operation_twice',
  ],
  [
    'something that was done and is given up',
    `update outbox_operations set state = 'dead', finished_at = null where operation_id = ${anOperation}`,
    'given_up_but_done',
  ],
  [
    'an operation that nobody takes up',
    `update outbox_operations set state = 'pending', finished_at = null, next_attempt_at = now() where operation_id = ${anOperation}`,
    'stuck',
  ],
  [
    'a dead operation that nobody is asked about',
    `update outbox_operations set state = 'dead', finished_at = null, next_attempt_at = null where operation_id = ${anOperation}`,
    'nobody_asked',
  ],
  [
    'an index that is gone',
    `alter table fulfillment_effects drop constraint fulfillment_effects_pkey`,
    'unique_index_missing',
  ],
  [
    'an index that is not valid',
    `update pg_index set indisvalid = false where indexrelid = 'inbox_events_identity_key'::regclass`,
    'unique_index_missing',
  ],
]

/** What was seen from outside and cannot be in any table. */
const histories: readonly (readonly [string, (history: SeenHistory) => SeenHistory, string])[] = [
  [
    'a genuine event that was refused for good',
    (history) => ({
      ...history,
      deliveries: history.deliveries.map((each) => ({ ...each, outcome: 'fail' as const })),
    }),
    'refused_genuine',
  ],
  [
    'a call without an id',
    (history) => ({ ...history, calls: history.calls.map((each) => ({ ...each, key: '' })) }),
    'sends_outside_outbox',
  ],
  [
    'other bytes under the same id',
    (history) => ({
      ...history,
      calls: history.calls.flatMap((each) => [each, { ...each, applied: false, sha256: 'other' }]),
    }),
    'operation_altered',
  ],
  [
    'work that was done twice for one id',
    (history) => ({ ...history, calls: [...history.calls, ...history.calls] }),
    'operation_twice',
  ],
  [
    'something called sent that was never answered',
    (history) => ({ ...history, calls: history.calls.map((each) => ({ ...each, status: null })) }),
    'confirmed_without_answer',
  ],
]

describe('the oracle of drills', () => {
  it('finds nothing in a history in which nothing is wrong', async () => {
    expect(destination.calls.length).toBeGreaterThan(0)
    expect(await faults('')).toEqual([])
  })

  it.each(seeds)('sees %s', async (_, seed, fault) => {
    expect(await faults(seed)).toContain(fault)
  })

  it.each(histories)('sees %s', async (_, change, fault) => {
    expect(await faults('', change(seen()))).toContain(fault)
  })

  it('has a seeded violation for everything that it asks', () => {
    const seeded = new Set([...seeds, ...histories].map(([, , fault]) => fault))
    const asked = [...ledgerChecks, ...outboxChecks].map(({ fault }) => fault)
    expect(asked.filter((fault) => !seeded.has(fault))).toEqual([])
  })

  it('does not take what is still under way for stuck before there was time to finish', async () => {
    const found = await shop.pool.connect()
    try {
      const db: Asked = { query: (text, values) => found.query(text, values) }
      const early = await judge(db, 'hookledger', { ...seen(), made: [] }, false)
      expect(early.map(({ fault }) => fault)).not.toContain('stuck')
    } finally {
      found.release()
    }
  })
})
