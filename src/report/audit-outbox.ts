/**
 * P6: one external operation. What the outbox says was committed with what asked for it (I6), nothing
 * was called before that (I7), one id means one request (I8), sent means that somebody said so (I9), and
 * an unknown outcome never led to a second call that its destination could not recognize (I10).
 */
import type { AuditCheck } from './audit-check.ts'

/** I6, which is P3 for operations: both ways, and in one commit. */
export const askedChecks: readonly AuditCheck[] = [
  {
    promise: 'P3',
    name: 'operation_without_decision',
    holds:
      'every operation of an effect was committed with that effect, by the decision that names it',
    sql: (s) => `select o.operation_id::text as key,
        case when d.decision_id is null then 'its decision is missing'
          when d.order_id is distinct from o.order_id then 'its decision ' || o.decision_id || ' is about another order'
          when d.xid <> o.xid then 'committed apart from its decision ' || o.decision_id
          when e.order_id is null then 'its decision ' || o.decision_id || ' made no such effect'
          else 'its decision ' || o.decision_id || ' does not name it' end as detail
      from ${s}outbox_operations o
      left join ${s}ledger_decisions d on d.decision_id = o.decision_id
      left join ${s}fulfillment_effects e on e.order_id = o.order_id and e.effect_type = o.effect_type
        and e.effect_reference = o.effect_reference and e.decision_id = o.decision_id
      where o.effect_type is not null and (d.decision_id is null or d.order_id is distinct from o.order_id or d.xid <> o.xid
        or e.order_id is null or (d.evidence -> 'operations' ? o.operation_id::text) is not true)`,
  },
  {
    promise: 'P3',
    name: 'decision_without_operation',
    holds: 'every operation that a decision names is there, of that decision and order',
    sql: (s) => `select 'decision:' || d.decision_id as key, 'names operation ' || n.id ||
        case when o.operation_id is null then ', which does not exist'
          when o.decision_id is distinct from d.decision_id then ', which another decision made'
          else ', which is of another order' end as detail
      from ${s}ledger_decisions d
      cross join lateral jsonb_array_elements_text(
        case when jsonb_typeof(d.evidence -> 'operations') = 'array' then d.evidence -> 'operations' else '[]' end) as n(id)
      left join ${s}outbox_operations o on o.operation_id::text = n.id
      where o.operation_id is null or o.decision_id is distinct from d.decision_id or o.order_id is distinct from d.order_id`,
  },
]

/** I7 to I10. */
export const operationChecks: readonly AuditCheck[] = [
  {
    promise: 'P6',
    name: 'operation_twice',
    holds: 'an operation id is one operation',
    onHeap: true,
    sql: (s) => `select operation_id::text as key, count(*) || ' rows' as detail
      from ${s}outbox_operations group by operation_id having count(*) > 1`,
  },
  {
    promise: 'P6',
    name: 'called_before_commit',
    holds: 'every call is of a recorded operation, and none began before that was recorded',
    sql: (s) => `select a.operation_id || ' attempt ' || a.number as key,
        case when o.operation_id is null then 'of an operation that does not exist'
          else 'began ' || a.started_at || ', recorded ' || o.created_at end as detail
      from ${s}outbox_attempts a
      left join ${s}outbox_operations o on o.operation_id = a.operation_id
      where o.operation_id is null or a.started_at < o.created_at
      union all
      select 'attempt number ' || w.attempt_id, case when a.attempt_id is null then 'answered, and never made'
          else 'answered ' || w.answered_at || ', began ' || a.started_at end
      from ${s}outbox_answers w
      left join ${s}outbox_attempts a on a.attempt_id = w.attempt_id
      where a.attempt_id is null or w.answered_at < a.started_at`,
  },
  {
    promise: 'P6',
    name: 'attempt_missing',
    holds: 'every attempt that an operation counts was recorded before its call',
    sql: (s) => `select o.operation_id::text as key,
        o.attempts || ' attempts counted, ' || coalesce(a.attempts, 0) || ' recorded' as detail
      from ${s}outbox_operations o
      left join (select operation_id, count(*) as attempts from ${s}outbox_attempts group by operation_id) a
        on a.operation_id = o.operation_id
      where o.attempts <> coalesce(a.attempts, 0)`,
  },
  {
    promise: 'P6',
    name: 'request_missing',
    holds: 'the request of whatever is not finished is kept',
    sql: (
      s,
    ) => `select o.operation_id::text as key, o.state || ', and its request is gone' as detail
      from ${s}outbox_operations o
      where o.state in ('pending', 'sending', 'uncertain', 'dead')
        and not exists (select 1 from ${s}outbox_requests r where r.operation_id = o.operation_id)`,
  },
  {
    promise: 'P6',
    name: 'request_altered',
    holds:
      'stored requests have the hash that was recorded with them (the newest, and those not finished for longest)',
    sql: (
      s,
    ) => `select e.operation_id::text as key, 'the request has another hash than it was recorded with' as detail
      from (
        (select operation_id from ${s}outbox_operations order by sequence desc limit $1::integer)
        union (select operation_id from ${s}outbox_operations
          where state in ('pending', 'sending', 'uncertain', 'dead') order by sequence limit $1::integer)
      ) e
      where ${s}is_request_intact(e.operation_id) is false`,
    values: (limits) => [limits.bodies],
  },
  {
    promise: 'P6',
    name: 'sent_without_answer',
    holds: 'what is sent was answered so, found so by a lookup, or resolved so by a person',
    sql: (s) => `select o.operation_id::text as key, 'sent, and nobody said so' as detail
      from ${s}outbox_operations o
      where o.state = 'sent' and not exists (select 1 from ${s}operator_acts p
          where p.target = 'operation:' || o.operation_id and p.act = 'outbox resolve' and p.details ->> 'as' = 'sent')
        and not exists (select 1 from ${s}outbox_attempts a
          join ${s}outbox_answers w on w.attempt_id = a.attempt_id and w.outcome in ('sent', 'present')
          where a.operation_id = o.operation_id)`,
  },
  {
    promise: 'P6',
    name: 'called_past_window',
    holds:
      'while an outcome is unknown, no key is called again after its destination may have forgotten it',
    sql: calledPastWindow,
  },
  {
    promise: 'P6',
    name: 'new_key_without_proof',
    holds: 'a new key is used only after proof that nothing was done under the one before',
    sql: (
      s,
    ) => `select o.operation_id::text as key, 'has key ' || g.n || ' without proof about key ' || (g.n - 1) as detail
      from ${s}outbox_operations o
      cross join lateral generate_series(2, o.key_generation) as g(n)
      where o.key_generation > 1
        and not exists (select 1 from ${s}operator_acts p
          where p.target = 'operation:' || o.operation_id and p.details ->> 'key_generation' = g.n::text)
        and not exists (select 1 from ${s}outbox_attempts a
          join ${s}outbox_answers w on w.attempt_id = a.attempt_id and w.outcome = 'absent'
          where a.operation_id = o.operation_id and a.key_generation = g.n - 1)`,
  },
]

/**
 * Walks along the attempts of each operation. A window begins with the first call under a key; anew after
 * a lookup that proved absence, after a person said that nothing was done, and with a call past the window of which nothing
 * was unknown. What is wrong is a call past its window while nobody knew whether one before it was done.
 * What was decided just before a window ended is called just after it: that much the margin allows.
 */
function calledPastWindow(s: string): string {
  const slack = `interval '1 second'`
  const attempt = (operation: string, number: string): string => `
      select t.number, t.kind, t.key_generation, t.started_at, x.outcome, x.answered_at
      from ${s}outbox_attempts t left join ${s}outbox_answers x on x.attempt_id = t.attempt_id
      where t.operation_id = ${operation} and t.number = ${number}`
  return `with recursive walk as (
      select o.operation_id, greatest(o.window_ms, d.window_ms) * interval '1 millisecond' as lasts, a.number, a.kind,
        a.key_generation, a.started_at, a.outcome, a.answered_at, false as is_unknown, false as is_wrong,
        case when a.kind = 'call' then a.started_at end as since
      from ${s}outbox_operations o
      left join ${s}outbox_destinations d on d.destination = o.destination
      cross join lateral (${attempt('o.operation_id', '1')}) a
      where o.promise = 'once' and o.attempts > 1
      union all
      select w.operation_id, w.lasts, a.number, a.kind, a.key_generation, a.started_at, a.outcome, a.answered_at,
        b.is_unknown, coalesce(b.is_unknown and a.kind = 'call' and a.started_at >= b.since + w.lasts + ${slack}, false),
        case when a.kind <> 'call' then b.since
          when b.since is null or (not b.is_unknown and a.started_at >= b.since + w.lasts - ${slack}) then a.started_at
          else b.since end
      from walk w
      cross join lateral (${attempt('w.operation_id', 'w.number + 1')}) a
      cross join lateral (
        select coalesce(w.kind = 'lookup' and w.outcome = 'absent', false) or exists (
            select 1 from ${s}operator_acts p where p.target = 'operation:' || w.operation_id
              and (p.act = 'outbox resolve' or (p.act = 'outbox retry' and p.details ->> 'from' = 'dead'))
              and p.acted_at between w.started_at and a.started_at) as is_settled) p
      cross join lateral (
        select not p.is_settled and (w.is_unknown or (w.kind = 'call'
            and (w.outcome is null or w.outcome = 'uncertain' or w.answered_at > a.started_at))) as is_unknown,
          case when not p.is_settled and a.key_generation = w.key_generation then w.since end as since) b
    )
    select w.operation_id || ' attempt ' || w.number as key,
      'began ' || w.started_at || ', the key was counted on until ' || (w.since + w.lasts) as detail
    from walk w where w.is_wrong`
}
