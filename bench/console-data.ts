/** A ledger as it is after a busy year, made by SQL: orders, their events and decisions, and what came of them. */
import type pg from 'pg'

/** How much of it. */
export interface LedgerSize {
  readonly events: number
  readonly orders: number
  /** Events that nobody has decided yet: the newest, as after an hour without a worker. */
  readonly waiting?: number
}

/** Fills the tables of a migrated schema. */
export async function fillLedger(
  pool: pg.Pool,
  schema: string,
  { events, orders, waiting = 100 }: LedgerSize,
): Promise<void> {
  for (const statement of statements(`"${schema}".`, events, orders, waiting))
    await pool.query(statement)
}

/** One event in ten opens an order; the others are about the orders there are. */
function statements(s: string, events: number, orders: number, waiting: number): readonly string[] {
  const sources = `(select source_id from ${s}sources order by source_id limit 1)`
  const at = (n: string): string => `now() - (${events} - ${n}) * interval '20 seconds'`
  const orderOf = `'order-' || (1 + (n - 1) % ${orders})`
  return [
    `insert into ${s}sources (provider, provider_account, environment) values ('stripe', 'acct_bench', 'test') on conflict do nothing`,
    `insert into ${s}inbox_events (source_id, event_id, event_type, received_at, body_sha256, body_bytes)
      select ${sources}, 'evt_' || n, case when n <= ${orders} then 'checkout.session.completed' else 'payment_intent.succeeded' end,
        ${at('n')}, decode(md5(n::text) || md5(n::text), 'hex'), 2700
      from generate_series(1, ${events}) n order by n`,
    // one request in five brings what is known
    `insert into ${s}deliveries (source_id, event_id, received_at, body_sha256)
      select ${sources}, 'evt_' || (case when n % 6 = 0 then greatest(1, n - n / 6 - 3) else n - n / 6 end), ${at('n * 5 / 6')},
        decode(md5(n::text) || md5(n::text), 'hex')
      from generate_series(1, ${events} * 6 / 5) n order by n`,
    `insert into ${s}orders (order_id, workflow, state, subject, expected_amount, currency, opened_at)
      select 'order-' || n, 'license', case when n % 7 = 0 then 'refunded' else 'paid' end, 'user:' || n, 4900, 'USD', ${at('n')}
      from generate_series(1, ${orders}) n order by n`,
    `insert into ${s}order_names (source_id, kind, name, order_id)
      select ${sources}, 'payment_intent', 'pi_' || n, 'order-' || n from generate_series(1, ${orders}) n`,
    `insert into ${s}ledger_decisions (event_key, order_id, workflow, kind, final, from_state, to_state, entitles, reason, actor, attempts, decided_at)
      select n, ${orderOf}, 'license', case when n <= ${orders} then 'fulfilled' when n % 5000 = 0 then 'contradicted' else 'absorbed' end, true,
        case when n <= ${orders} then 'pending' else 'paid' end, 'paid', true, 'made by the bench', 'bench', 1, ${at('n')}
      from generate_series(1, ${events} - ${waiting} - 200) n order by n`,
    `insert into ${s}fulfillment_effects (order_id, effect_type, decision_id, amount, currency)
      select order_id, 'license', decision_id, 4900, 'USD' from ${s}ledger_decisions where kind = 'fulfilled'`,
    `insert into ${s}ledger_payments (source_id, payment_id, order_id, amount, currency, applied, decision_id)
      select ${sources}, 'pi_' || event_key, order_id, 4900, 'USD', true, decision_id from ${s}ledger_decisions where kind = 'fulfilled'`,
    `insert into ${s}entitlements (order_id, subject, entitlement, active, granted_by, changed_by)
      select d.order_id, o.subject, 'pro', o.state = 'paid', d.decision_id, d.decision_id
      from ${s}ledger_decisions d join ${s}orders o on o.order_id = d.order_id where d.kind = 'fulfilled'`,
    `insert into ${s}outbox_operations (operation_id, destination, order_id, effect_type, effect_reference, name, decision_id,
        request_sha256, request_bytes, promise, window_ms, state, attempts, next_attempt_at, first_attempt_at, finished_at)
      select gen_random_uuid(), 'email', order_id, 'license', '', 'receipt', decision_id, decode(md5(order_id) || md5(order_id), 'hex'), 300,
        'at_least_once', 0, case when decision_id % 2000 = 0 then 'dead' else 'sent' end, 1, null, decided_at,
        case when decision_id % 2000 = 0 then null else decided_at end
      from ${s}ledger_decisions where kind = 'fulfilled' order by decision_id`,
    // each was called once, and was answered
    `insert into ${s}outbox_attempts (operation_id, number, kind, key_generation, lease, dispatcher, started_at)
      select operation_id, 1, 'call', 1, sequence, 'bench', created_at from ${s}outbox_operations order by sequence`,
    `insert into ${s}outbox_answers (attempt_id, outcome, status, answered_at)
      select a.attempt_id, case when o.state = 'dead' then 'refused' else 'sent' end, 200, o.first_attempt_at
      from ${s}outbox_attempts a join ${s}outbox_operations o on o.operation_id = a.operation_id order by a.attempt_id`,
    `insert into ${s}outbox_requests (operation_id, request)
      select operation_id, convert_to('{}', 'UTF8') from ${s}outbox_operations where state = 'dead'`,
    // what is not finished: some wait, some are dead, some were stored this moment
    `insert into ${s}inbox_ready (event_key, received_on)
      select n, current_date from generate_series(${events} - ${waiting} + 1, ${events}) n`,
    `insert into ${s}inbox_deferred (event_key, received_on, attempts, deadline_at, waits_for, at_deadline)
      select n, current_date, 1, now() + interval '1 day', 'payment_intent pi_x', 'finding' from generate_series(${events} - ${waiting} - 99, ${events} - ${waiting}) n`,
    `insert into ${s}inbox_dead (event_key, received_on, reason, attempts, rearmed_by)
      select n, current_date, 'made by the bench', 3, 'redelivery' from generate_series(${events} - ${waiting} - 199, ${events} - ${waiting} - 100) n`,
    `insert into ${s}findings (finding_id, class, kind, severity, state, owner, order_id, evidence, due_at, closed_at, closed_because)
      select gen_random_uuid(), case when n % 3 = 0 then 'contradiction' else 'lag' end, 'event_missing', 'medium',
        case when n % 50 = 0 then 'open' else 'closed' end, 'operations', 'order-' || n, '{}', now() + interval '1 day',
        case when n % 50 = 0 then null else now() end, case when n % 50 = 0 then null else 'agreed' end
      from generate_series(1, least(${orders}, 20000)) n`,
    `insert into ${s}operator_acts (act, target, reason, actor)
      select 'replay', 'event:' || n, 'made by the bench', 'bench' from generate_series(1, 20000) n`,
    `insert into ${s}rejections (source, reason, first_at, last_at, minute, times)
      select 'stripe', 'mismatch', m, m, m, 3
      from (select date_trunc('minute', now()) - n * interval '1 minute' as m from generate_series(1, 20000) n) t`,
  ]
}
