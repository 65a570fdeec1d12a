-- What users' queries, audit and console rely on: names stay, the tables behind them may change.

create view /* schema */webhook_inbox as
select
  e.event_key, s.provider, s.provider_account, s.environment, e.event_id, e.event_type, e.via,
  e.received_at, e.occurred_at, e.body_sha256,
  case
    when f.decision_id is not null then 'processed'
    when r.event_key is not null or y.event_key is not null or u.event_key is not null then 'pending'
    when w.event_key is not null then 'deferred'
    when x.event_key is not null then 'dead'
    when i.event_key is not null then 'ignored'
    else 'pending'
  end as state,
  coalesce(f.attempts, r.attempts, y.attempts, u.attempts, w.attempts, x.attempts, 0)::integer as attempts,
  (select count(*) from /* schema */deliveries d where d.source_id = e.source_id and d.event_id = e.event_id) as deliveries,
  coalesce(y.last_error, x.reason) as last_error,
  case
    when f.decision_id is not null then f.order_id
    else (select d.order_id from /* schema */ledger_decisions d where d.event_key = e.event_key and not d.final
          order by d.decision_id desc limit 1)
  end as order_id,
  f.decision_id,
  w.waits_for, w.deadline_at, y.due_at as next_attempt_at
from /* schema */inbox_events e
join /* schema */sources s on s.source_id = e.source_id
left join /* schema */ledger_decisions f on f.event_key = e.event_key and f.final
left join /* schema */inbox_ready r on r.event_key = e.event_key
left join /* schema */inbox_delayed y on y.event_key = e.event_key
left join /* schema */inbox_suspects u on u.event_key = e.event_key
left join /* schema */inbox_deferred w on w.event_key = e.event_key
left join /* schema */inbox_dead x on x.event_key = e.event_key
left join /* schema */inbox_ignored i on i.event_key = e.event_key;

create view /* schema */decisions as
select
  d.decision_id, d.event_key, s.provider, s.provider_account, s.environment, e.event_id, e.event_type,
  d.order_id, d.workflow, d.kind, d.final, d.from_state, d.to_state, d.entitles, d.reason, d.evidence,
  d.workflow_version, d.actor, d.attempts, d.supersedes, d.decided_at, d.xid
from /* schema */ledger_decisions d
left join /* schema */inbox_events e on e.event_key = d.event_key
left join /* schema */sources s on s.source_id = e.source_id;

create view /* schema */payments as
select
  s.provider || ':' || s.provider_account || ':' || s.environment as source,
  s.provider, s.provider_account, s.environment,
  p.payment_id, p.order_id, p.amount, p.currency, p.applied, p.decision_id, p.recorded_at
from /* schema */ledger_payments p
join /* schema */sources s on s.source_id = p.source_id;

-- by subject and entitlement: any active row that has not ended, combined as declared
create view /* schema */current_entitlements as
select
  e.subject, e.entitlement,
  case coalesce(r.combine, 'any') when 'sum' then sum(e.quantity)::bigint else max(e.quantity) end as quantity,
  case when bool_or(e.valid_until is null) then null else max(e.valid_until) end as valid_until
from /* schema */entitlements e
left join /* schema */entitlement_rules r on r.entitlement = e.entitlement
where e.active and (e.valid_until is null or e.valid_until > now())
group by e.subject, e.entitlement, r.combine;
