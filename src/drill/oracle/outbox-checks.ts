/**
 * What must hold of operations, against the destinations' own log of calls (`calls`), which the product cannot touch.
 */
import type { Check } from './ledger-checks.ts'

const attempts = `(select a.*, w.outcome from $h.outbox_attempts a left join $h.outbox_answers w on w.attempt_id = a.attempt_id)`

/** Asked of every case. */
export const outboxChecks: readonly Check[] = [
  {
    fault: 'sends_outside_outbox',
    promise: 'P6',
    sql: `select c.destination || ' was called without an id: no operation asked for it' from calls c where c.key = ''`,
  },
  {
    fault: 'operation_id_changed',
    promise: 'P6',
    sql: `select c.destination || ' was called under "' || c.key || '", which is the id of no operation' from calls c
      where c.key <> '' and not exists (select from $h.outbox_operations o where o.operation_id::text = c.operation and o.destination = c.destination)`,
  },
  {
    fault: 'sent_before_commit',
    promise: 'P6',
    sql: `select c.destination || ' was called ' || count(*) || ' times under ' || c.key || ', with fewer recorded attempts' from calls c
      join $h.outbox_operations o on o.operation_id::text = c.operation
      group by c.destination, c.key, c.operation having count(*) > (
        select count(*) from $h.outbox_attempts a where a.operation_id::text = c.operation and a.kind = 'call')`,
  },
  {
    fault: 'operation_altered',
    promise: 'P6',
    sql: `select c.destination || ' got different bytes under ' || c.key from calls c group by c.destination, c.key having count(distinct c.sha256) > 1
      union all
      select o.operation_id || ' is no longer what was recorded' from $h.outbox_operations o join $h.outbox_requests r on r.operation_id = o.operation_id
      where sha256(r.request) <> o.request_sha256`,
  },
  {
    fault: 'operation_twice',
    promise: 'P6',
    sql: `select o.order_id || ': ' || o.effect_type || ' has ' || count(*) || ' operations ' || o.name || ' to ' || o.destination from $h.outbox_operations o
      where o.effect_type is not null group by o.order_id, o.effect_type, o.effect_reference, o.destination, o.name having count(*) > 1
      union all
      select c.destination || ' did the work of ' || c.key || ' ' || count(*) || ' times' from calls c where c.applied group by c.destination, c.key having count(*) > 1`,
  },
  {
    fault: 'not_one_transaction',
    promise: 'P3',
    sql: `select o.operation_id || ' was not committed with its effect' from $h.outbox_operations o
      join $h.fulfillment_effects f on f.order_id = o.order_id and f.effect_type = o.effect_type and f.effect_reference = o.effect_reference
      where o.xid <> f.xid or o.decision_id is distinct from f.decision_id`,
  },
  {
    fault: 'confirmed_without_answer',
    promise: 'P6',
    sql: `select o.operation_id || ' is "sent", and ' || o.destination || ' never answered 2xx to it' from $h.outbox_operations o
      where o.state = 'sent' and not exists (select from calls c where c.operation = o.operation_id::text
        and c.destination = o.destination and c.status between 200 and 299)
      and not exists (select from ${attempts} a where a.operation_id = o.operation_id and a.kind = 'lookup' and a.outcome = 'present')`,
  },
  {
    fault: 'given_up_but_done',
    promise: 'P6',
    sql: `select o.operation_id || ' is ' || o.state || ', and ' || o.destination || ' did it' from $h.outbox_operations o
      where o.state in ('canceled', 'dead') and exists (select from calls c where c.operation = o.operation_id::text and c.applied)`,
  },
  {
    fault: 'stuck',
    promise: 'P5',
    whenQuiet: true,
    sql: `select o.operation_id || ' to ' || o.destination || ' is still ' || o.state from $h.outbox_operations o
      where o.state in ('pending', 'sending') or o.state = 'uncertain' and o.next_attempt_at is not null`,
  },
  {
    fault: 'nobody_asked',
    promise: 'P5',
    whenQuiet: true,
    sql: `select o.operation_id || ' is ' || o.state || ' and no finding asks anybody' from $h.outbox_operations o
      where o.state in ('dead', 'uncertain') and o.next_attempt_at is null and not exists (
        select from $h.findings f where f.state in ('open', 'repairing') and f.kind = 'operation_' || o.state
          and f.evidence ->> 'operation' = o.operation_id::text)`,
  },
]
