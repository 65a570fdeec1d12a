-- Reconciliation and repair: how far the provider's own records have been looked at, what each pass saw,
-- and what people (or a rule) did about what it found.

-- One row a source and kind of record. `through`: everything made at the provider before it has been
-- looked at and compared. A window in work keeps where it is, so that whoever comes next goes on in the
-- middle of a slice. Every write repeats the version that was read: of two reconcilers one loses, and goes
-- on from here.
create table /* schema */reconciliation_checkpoints (
  source_id integer not null,
  kind text collate "C" not null,
  through timestamptz not null,
  version bigint not null default 1,
  window_from timestamptz,
  window_to timestamptz,
  slice_from timestamptz,
  slice_to timestamptz,
  cursor text,
  -- the run that moved it last: what it had seen of objects is gone where it ended before it compared
  run_id uuid,
  -- where the last window ended that went as far back as a deep pass does
  deep_at timestamptz,
  moved_at timestamptz not null default now(),
  constraint reconciliation_checkpoints_pkey primary key (source_id, kind),
  constraint reconciliation_checkpoints_window_check
    check (num_nulls(window_from, window_to, slice_from, slice_to) in (0, 4)
      and (cursor is null or window_from is not null)
      and window_from <= slice_from and slice_from <= slice_to and slice_to <= window_to)
);

create table /* schema */reconciliation_runs (
  run_id uuid not null,
  source text collate "C" not null,
  how text not null,
  actor text not null,
  state text not null default 'running',
  -- by kind: window, slices, pages, records, injected, known, findings
  coverage jsonb not null default '{}',
  calls integer not null default 0,
  injected integer not null default 0,
  opened integer not null default 0,
  closed integer not null default 0,
  repaired integer not null default 0,
  error text,
  started_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  -- when both sides were compared, as far as it had come
  compared_at timestamptz,
  finished_at timestamptz,
  constraint reconciliation_runs_pkey primary key (run_id),
  constraint reconciliation_runs_how_check check (how in ('scheduled', 'deep', 'manual', 'range')),
  constraint reconciliation_runs_state_check check (state in ('running', 'complete', 'incomplete', 'failed')),
  constraint reconciliation_runs_finished_check check ((state = 'running') = (finished_at is null)),
  constraint reconciliation_runs_actor_check check (actor <> '')
);
create index reconciliation_runs_started_idx on /* schema */reconciliation_runs (source, started_at desc);
create index reconciliation_runs_running_idx on /* schema */reconciliation_runs (source) where state = 'running';

-- What a finding compares, so that every pass can look at it again by reference whatever its window is:
-- { "kind": "payment_intent", "id": "pi_1", "account": null }. Null: what only this database can tell.
alter table /* schema */findings
  add column source_id integer,
  add column reference jsonb,
  -- a dismissal covers one state of the evidence until a day
  add column dismissed_until timestamptz,
  add column dismissed_evidence jsonb,
  add column closed_because text,
  -- steps of being overdue that were told
  add column escalations integer not null default 0,
  add constraint findings_dismissed_check
    check (state <> 'dismissed' or (dismissed_until is not null and dismissed_evidence is not null));
create index findings_kind_idx on /* schema */findings (kind, finding_id) where state in ('open', 'repairing');
create index findings_dismissed_idx on /* schema */findings (dismissed_until) where state = 'dismissed';

-- One row an applied plan; only `verified_at` is ever written later, once.
create table /* schema */repairs (
  repair_id uuid not null,
  finding_id uuid not null,
  plan jsonb not null,
  reason text not null,
  actor text not null,
  database_role text not null default session_user,
  order_id text collate "C",
  previous_state jsonb not null,
  new_state jsonb not null,
  decision_id bigint,
  applied_at timestamptz not null default now(),
  xid xid8 not null default pg_current_xact_id(),
  verified_at timestamptz,
  constraint repairs_pkey primary key (repair_id),
  constraint repairs_decision_key unique (decision_id),
  constraint repairs_reason_check check (reason <> ''),
  constraint repairs_actor_check check (actor <> ''),
  constraint repairs_finding_fkey foreign key (finding_id) references /* schema */findings (finding_id)
);
create index repairs_finding_idx on /* schema */repairs (finding_id);
create index repairs_order_idx on /* schema */repairs (order_id) where order_id is not null;
create index repairs_unverified_idx on /* schema */repairs (applied_at) where verified_at is null;

create function /* schema */refuse_repair_change() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'UPDATE' and old.verified_at is null and new.verified_at is not null
    and to_jsonb(new) - 'verified_at' = to_jsonb(old) - 'verified_at' then
    return new;
  end if;
  raise exception 'repairs is append-only: record a new row instead' using errcode = '42501';
end $$;
revoke execute on function /* schema */refuse_repair_change() from public;
create trigger repairs_append_only before update or delete on /* schema */repairs
  for each row execute function /* schema */refuse_repair_change();
create trigger repairs_kept before truncate on /* schema */repairs
  for each statement execute function /* schema */refuse_change();

-- What comparison reads by window. These tables grow in the order of these columns, which never change: a
-- block range index costs an insert next to nothing, and an update of an order stays heap-only.
create index ledger_decisions_decided_idx on /* schema */ledger_decisions using brin (decided_at)
  with (pages_per_range = 16, autosummarize = on);
create index ledger_payments_recorded_idx on /* schema */ledger_payments using brin (recorded_at)
  with (pages_per_range = 16, autosummarize = on);
create index orders_opened_idx on /* schema */orders using brin (opened_at)
  with (pages_per_range = 16, autosummarize = on);
