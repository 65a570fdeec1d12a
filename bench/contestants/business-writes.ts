/**
 * What every contestant writes for one paid event, into the same tables with the same keys: the
 * decision, the payment, the effect, the order's transition, the entitlement. One transaction.
 */
import type pg from 'pg'
import { createDatabase } from '../../src/postgres/pool.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import type { CheckoutEvent } from '../checkout-events.ts'

/** The part of a checkout session that the business reads. */
export interface Session {
  readonly id: string
  readonly data: {
    readonly object: {
      readonly client_reference_id: string
      readonly payment_intent: string
      readonly amount_total: number
      readonly currency: string
    }
  }
}

/** A schema with the tables, its states registered and an opened order for every event. */
export async function prepareBusiness(
  pool: pg.Pool,
  schema: string,
  events: readonly CheckoutEvent[],
): Promise<void> {
  await migrate(createDatabase(pool, schema), { environment: 'test' })
  await pool.query(
    `insert into ${schema}.workflow_states (workflow, state, entitles)
     values ('license', 'pending', false), ('license', 'paid', true) on conflict do nothing`,
  )
  await openOrders(pool, schema, events)
}

/** The orders, as the shop's checkout opened them. */
export async function openOrders(
  pool: pg.Pool,
  schema: string,
  events: readonly CheckoutEvent[],
): Promise<void> {
  await pool.query(
    `insert into ${schema}.orders (order_id, workflow, state, subject, expected_amount, currency)
     select o, 'license', 'pending', 'user:' || o, 4900, 'USD' from unnest($1::text[]) as o`,
    [[...new Set(events.map((event) => event.order))]],
  )
}

/** Whether the competitors' statements are named, so that each connection prepares them once. */
let preparedStatements = false

/** Names the competitors' statements: `--prepared`. */
export function prepareStatements(): void {
  preparedStatements = true
}

interface OrderRow {
  readonly state: string
  readonly subject: string
  readonly expected_amount: string
  readonly currency: string
}

/** Fulfills one event as a careful handler does: lock the order, check, write, commit. */
export async function fulfillOne(
  pool: pg.Pool,
  schema: string,
  event: Session,
  alsoInside: (client: pg.PoolClient, orderId: string) => Promise<void> = async () => {},
): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await writeOne(client, schema, event)
    await alsoInside(client, event.data.object.client_reference_id)
    await client.query('commit')
    client.release()
  } catch (error) {
    client.release(error instanceof Error ? error : true)
    throw error
  }
}

async function writeOne(client: pg.PoolClient, s: string, event: Session): Promise<void> {
  const {
    client_reference_id: id,
    payment_intent: payment,
    amount_total: amount,
    currency: code,
  } = event.data.object
  const currency = code.toUpperCase()
  const run = <R extends pg.QueryResultRow>(
    name: string,
    text: string,
    values: unknown[],
  ): Promise<pg.QueryResult<R>> =>
    client.query<R>({ ...(preparedStatements && { name: `${s}_${name}` }), text, values })
  const {
    rows: [order],
  } = await run<OrderRow>(
    'lock',
    `select state, subject, expected_amount, currency from ${s}.orders where order_id = $1 for update`,
    [id],
  )
  if (
    order === undefined ||
    order.state !== 'pending' ||
    order.currency !== currency ||
    BigInt(order.expected_amount) > BigInt(amount)
  ) {
    throw new Error(`order ${id} cannot be paid`)
  }
  const {
    rows: [decision],
  } = await run<{ decision_id: string }>(
    'decision',
    `insert into ${s}.ledger_decisions (order_id, workflow, kind, final, from_state, to_state, entitles, reason, evidence, actor)
     values ($1, 'license', 'fulfilled', true, 'pending', 'paid', true, 'pending to paid: license', $2::jsonb, 'worker') returning decision_id`,
    [
      id,
      JSON.stringify({ event: event.id, payment, amount, currency, effects: [['license', '']] }),
    ],
  )
  const decisionId = decision?.decision_id
  await run(
    'payment',
    `insert into ${s}.ledger_payments (source_id, payment_id, order_id, amount, currency, applied, decision_id)
     values (1, $1, $2, $3, $4, true, $5) on conflict do nothing`,
    [payment, id, amount, currency, decisionId],
  )
  const effect = await run(
    'effect',
    `insert into ${s}.fulfillment_effects (order_id, effect_type, decision_id) values ($1, 'license', $2) on conflict do nothing`,
    [id, decisionId],
  )
  if (effect.rowCount === 0) throw new Error(`order ${id} is fulfilled already`)
  await run(
    'order',
    `update ${s}.orders set state = 'paid', version = version + 1, updated_at = now() where order_id = $1`,
    [id],
  )
  await run(
    'entitlement',
    `insert into ${s}.entitlements (order_id, subject, entitlement, active, granted_by, changed_by)
     values ($1, $2, 'pro', true, $3, $3) on conflict (order_id, subject, entitlement) do update set active = true`,
    [id, order.subject, decisionId],
  )
}

/** How many events were fulfilled whole: what a round must come to. */
export async function countFulfilled(pool: pg.Pool, schema: string): Promise<number> {
  const { rows } = await pool.query<{ n: string }>(
    `select count(*) as n from ${schema}.orders o
     join ${schema}.fulfillment_effects f on f.order_id = o.order_id and f.effect_type = 'license'
     join ${schema}.ledger_payments p on p.order_id = o.order_id and p.applied
     join ${schema}.entitlements e on e.order_id = o.order_id and e.active
     join ${schema}.ledger_decisions d on d.decision_id = e.granted_by
     where o.state = 'paid'`,
  )
  return Number(rows[0]?.n)
}
