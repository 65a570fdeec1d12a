/**
 * What must hold of inbox and ledger, as queries of the oracle's own: each names what breaks it. `$h` stands for the
 * schema, `sent` for what was delivered and how it was answered, `made` for every event of the provider.
 */
import type { PromiseId } from './verdict.ts'

/** One query: the rows are what is wrong, in words. */
export interface Check {
  readonly fault: string
  readonly promise: PromiseId
  readonly sql: string
  /** Holds only once everything had the time to finish. */
  readonly whenQuiet?: true
}

const unfinished = `(
  select event_key, 'ready' as home from $h.inbox_ready
  union all select event_key, 'delayed' from $h.inbox_delayed
  union all select event_key, 'suspect' from $h.inbox_suspects
  union all select event_key, 'deferred' from $h.inbox_deferred
  union all select event_key, 'dead' from $h.inbox_dead
  union all select event_key, 'ignored' from $h.inbox_ignored
  union all select event_key, 'gathering' from $h.inbox_gathers where waiting)`

/** Asked of every case. */
export const ledgerChecks: readonly Check[] = [
  {
    fault: 'acknowledged_lost',
    promise: 'P1',
    sql: `select d.event_id || ' was answered 2xx and is not in the inbox' from sent d
      where d.outcome = 'ok' and not exists (select from $h.inbox_events e where e.event_id = d.event_id)`,
  },
  {
    fault: 'acknowledged_altered',
    promise: 'P1',
    sql: `select d.event_id || ' is stored with other bytes' from sent d join $h.inbox_events e on e.event_id = d.event_id
      left join $h.payloads p on p.event_key = e.event_key
      where d.outcome = 'ok' and (encode(e.body_sha256, 'hex') <> d.sha256
        or p.event_key is not null and encode(sha256(p.body), 'hex') <> d.sha256)`,
  },
  {
    fault: 'acknowledged_without_write',
    promise: 'P1',
    sql: `select d.event_id || ': ' || d.answered || ' answers 2xx, ' || (select count(*) from $h.deliveries t where t.event_id = d.event_id) || ' written deliveries'
      from (select event_id, count(*) filter (where outcome = 'ok') as answered from sent group by 1) d
      where d.answered > (select count(*) from $h.deliveries t where t.event_id = d.event_id)`,
  },
  {
    fault: 'refused_genuine',
    promise: 'P1',
    sql: `select d.event_id || ' is genuine and was refused for good' from sent d where d.outcome = 'fail'`,
  },
  {
    fault: 'event_invented',
    promise: 'P1',
    sql: `select e.event_id || ' is in the inbox, and no provider made it' from $h.inbox_events e
      where e.via = 'webhook' and not exists (select from made m where m.event_id = e.event_id)`,
  },
  {
    fault: 'event_twice',
    promise: 'P2',
    sql: `select event_id || ' is in the inbox ' || count(*) || ' times' from $h.inbox_events group by source_id, event_id having count(*) > 1`,
  },
  {
    fault: 'effect_twice',
    promise: 'P2',
    sql: `select order_id || ': ' || effect_type || ' ' || effect_reference || ' is recorded ' || count(*) || ' times'
      from $h.fulfillment_effects group by order_id, effect_type, effect_reference having count(*) > 1`,
  },
  {
    fault: 'payment_twice',
    promise: 'P2',
    sql: `select payment_id || ' is recorded ' || count(*) || ' times' from $h.ledger_payments group by source_id, payment_id having count(*) > 1`,
  },
  {
    fault: 'decided_twice',
    promise: 'P3',
    sql: `select e.event_id || ' has ' || count(*) || ' final decisions' from $h.ledger_decisions d join $h.inbox_events e on e.event_key = d.event_key
      where d.final group by e.event_id having count(*) > 1`,
  },
  {
    fault: 'not_one_transaction',
    promise: 'P3',
    sql: `select f.order_id || ': ' || f.effect_type || ' was not committed with its decision' from $h.fulfillment_effects f
      left join $h.ledger_decisions d on d.decision_id = f.decision_id and d.order_id = f.order_id
      where d.decision_id is null or d.xid <> f.xid
      union all
      select p.payment_id || ' has no decision' from $h.ledger_payments p
      left join $h.ledger_decisions d on d.decision_id = p.decision_id and d.order_id = p.order_id where d.decision_id is null
      union all
      select e.event_id || ' is both decided and ' || u.home from $h.inbox_events e join ${unfinished} u on u.event_key = e.event_key
      join $h.ledger_decisions d on d.event_key = e.event_key and d.final`,
  },
  {
    fault: 'event_nowhere',
    promise: 'P5',
    sql: `select e.event_id || ' is neither decided nor waiting' from $h.inbox_events e
      where not exists (select from ${unfinished} u where u.event_key = e.event_key)
        and not exists (select from $h.ledger_decisions d where d.event_key = e.event_key and d.final)`,
  },
  {
    fault: 'entitled_unpaid',
    promise: 'P4',
    sql: `select t.order_id || ' gives ' || t.subject || ' ' || t.entitlement || ' in state ' || coalesce(o.state, 'none') from $h.entitlements t
      left join $h.orders o on o.order_id = t.order_id
      left join $h.workflow_states w on w.workflow = o.workflow and w.state = o.state
      left join $h.ledger_decisions d on d.decision_id = t.granted_by and d.order_id = t.order_id
      where t.active and (w.entitles is not true or d.entitles is not true)`,
  },
  {
    fault: 'entitlement_withheld',
    promise: 'P4',
    sql: `select t.order_id || ' is paid and withholds ' || t.entitlement || ' from ' || t.subject from $h.entitlements t
      join $h.orders o on o.order_id = t.order_id
      join $h.workflow_states w on w.workflow = o.workflow and w.state = o.state
      where t.stated and w.entitles and not t.active`,
  },
  {
    fault: 'unexplained',
    promise: 'P8',
    sql: `select 'decision ' || decision_id || ' has no reason or no actor' from $h.ledger_decisions where btrim(reason) = '' or btrim(actor) = ''
      union all
      select e.event_id || ' is ' || u.home || ' without a decision that says why' from ${unfinished} u join $h.inbox_events e on e.event_key = u.event_key
      where u.home in ('deferred', 'dead', 'ignored') and not exists (
        select from $h.ledger_decisions d where d.event_key = u.event_key and d.kind = u.home and not d.final)
      union all
      select t.order_id || ': what ' || t.subject || ' may use was changed by no decision' from $h.entitlements t
      where not exists (select from $h.ledger_decisions d where d.decision_id = t.changed_by and d.order_id = t.order_id)`,
  },
  {
    fault: 'payload_readable',
    promise: 'P9',
    sql: `select c.relname || ' is readable by everybody' from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $n and c.relname in ('payloads', 'payloads_held', 'outbox_requests')
        and exists (select from aclexplode(c.relacl) a where a.grantee = 0 and a.privilege_type = 'SELECT')`,
  },
  {
    fault: 'stuck',
    promise: 'P5',
    whenQuiet: true,
    sql: `select e.event_id || ' is still ' || u.home from ${unfinished} u join $h.inbox_events e on e.event_key = u.event_key
      where u.home in ('ready', 'delayed', 'suspect', 'gathering')
      union all select 'a batch of a dead worker is left: ' || batch_id from $h.inbox_batches
      union all select 'a session is left idle in its transaction: ' || pid from pg_stat_activity
        where datname = current_database() and state like 'idle in transaction%' and pid <> pg_backend_pid()`,
  },
  {
    fault: 'dead_event',
    promise: 'P5',
    whenQuiet: true,
    sql: `select e.event_id || ' is dead: ' || coalesce((select d.reason from $h.ledger_decisions d where d.event_key = e.event_key and d.kind = 'dead' order by d.decision_id desc limit 1), 'no reason')
      from $h.inbox_dead x join $h.inbox_events e on e.event_key = x.event_key`,
  },
  {
    fault: 'checkpoint_ahead',
    promise: 'P7',
    sql: `select m.event_id || ' was made before the checkpoint and is not in the inbox' from made m
      where m.must and m.created is not null and not exists (select from $h.inbox_events e where e.event_id = m.event_id)
        and exists (select from $h.reconciliation_checkpoints c where c.kind = 'event' and c.through > to_timestamp(m.created) + interval '1 second')`,
  },
  {
    fault: 'never_arrived',
    promise: 'P7',
    whenQuiet: true,
    sql: `select m.event_id || ' was made by the provider and never arrived' from made m
      where m.must and not exists (select from $h.inbox_events e where e.event_id = m.event_id)`,
  },
]
