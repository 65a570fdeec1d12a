/**
 * The same writes as one statement for a whole batch, which reads the JSON in SQL: what a database
 * specialist writes for this one workflow. It has no checks beyond the state of the order, no names,
 * no waits, no findings, and nothing that survives a bad event.
 */
import type pg from 'pg'
import { countFulfilled, openOrders } from './business-writes.ts'
import type { Contestant } from './contestant.ts'
import { expectAll } from './contestant.ts'
import { fillInbox, migrateInbox } from './inbox.ts'

/** The statement on this many connections, each taking this many events at a time. */
export function setBasedSql(connections: number, batch: number): Contestant {
  return {
    name: 'set_based_sql',
    settings: `${connections} connections, batches of ${batch}`,
    prepare: async (round) => {
      const { pool, schema, events } = round
      const hookledger = await migrateInbox(round)
      await openOrders(pool, schema, events)
      await fillInbox(hookledger, events)
      const text = statement(schema)
      const loop = async (client: pg.PoolClient): Promise<void> => {
        for (;;) {
          const { rows } = await client.query<{ taken: number }>({
            name: `${schema}_set_based`,
            text,
            values: [batch],
          })
          if (rows[0]?.taken === 0) return
        }
      }
      return {
        run: async () => {
          const clients = await Promise.all(
            Array.from({ length: connections }, () => pool.connect()),
          )
          await Promise.all(clients.map(loop))
          for (const client of clients) client.release()
        },
        finish: async () => {
          expectAll(await countFulfilled(pool, schema), events.length)
          await hookledger.stop()
        },
      }
    },
  }
}

function statement(s: string): string {
  return `with claimed as materialized (
      select event_key, received_on from ${s}.inbox_ready order by event_key limit $1 for update skip locked),
    events as materialized (
      select c.event_key, convert_from(p.body, 'UTF8')::jsonb #> '{data,object}' as session
      from claimed c join ${s}.payloads p on p.event_key = c.event_key and p.received_on = c.received_on),
    facts as materialized (
      select event_key, session ->> 'client_reference_id' as order_id, session ->> 'payment_intent' as payment_id,
        (session ->> 'amount_total')::bigint as amount, upper(session ->> 'currency') as currency
      from events),
    locked as materialized (
      select f.*, o.subject from facts f join ${s}.orders o on o.order_id = f.order_id
      where o.state = 'pending' and o.expected_amount <= f.amount and o.currency = f.currency
      order by f.order_id for no key update of o),
    decided as (
      insert into ${s}.ledger_decisions
        (event_key, order_id, workflow, kind, final, from_state, to_state, entitles, reason, evidence, workflow_version, actor, attempts)
      select event_key, order_id, 'license', 'fulfilled', true, 'pending', 'paid', true, 'pending to paid: license',
        jsonb_build_object('payment', payment_id, 'amount', amount, 'currency', currency, 'effects', '[["license", ""]]'::jsonb,
          'granted', jsonb_build_array(subject || ' pro')), '1', 'sql', 1
      from locked returning event_key, decision_id),
    paid as (
      insert into ${s}.ledger_payments (source_id, payment_id, order_id, amount, currency, applied, decision_id)
      select 1, payment_id, order_id, amount, currency, true, decision_id from locked join decided using (event_key)
      order by payment_id on conflict (source_id, payment_id) do nothing),
    effected as (
      insert into ${s}.fulfillment_effects (order_id, effect_type, effect_reference, decision_id)
      select order_id, 'license', '', decision_id from locked join decided using (event_key)
      on conflict (order_id, effect_type, effect_reference) do nothing),
    moved as (
      update ${s}.orders o set state = 'paid', version = o.version + 1, updated_at = now()
      from locked l where o.order_id = l.order_id),
    entitled as (
      insert into ${s}.entitlements (order_id, subject, entitlement, active, granted_by, changed_by)
      select order_id, subject, 'pro', true, decision_id, decision_id from locked join decided using (event_key)
      on conflict (order_id, subject, entitlement) do update set active = true),
    taken as (
      delete from ${s}.inbox_ready r using claimed c where r.event_key = c.event_key returning 1)
    select count(*)::integer as taken from taken`
}
