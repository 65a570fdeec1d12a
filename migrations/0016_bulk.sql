-- Acts on many things at once. What is planned is frozen: the targets are rows, and neither they nor what is to be
-- done with them changes afterwards. Each target is done in a commit of its own together with its answer here, so
-- that whatever is killed on the way, none is left out and none is done twice.
create table /* schema */bulk_acts (
  bulk_id uuid not null,
  act text collate "C" not null,
  filter jsonb not null,
  details jsonb not null,
  targets integer not null,
  state text collate "C" not null default 'planned',
  reason text collate "C" not null,
  actor text collate "C" not null,
  needs_approval boolean not null,
  planned_at timestamptz not null default now(),
  started_at timestamptz,
  approved_by text collate "C",
  approved_at timestamptz,
  ended_by text collate "C",
  finished_at timestamptz,
  -- how it ended; while it runs its targets are counted
  done integer not null default 0,
  unchanged integer not null default 0,
  failed integer not null default 0,
  constraint bulk_acts_pkey primary key (bulk_id),
  constraint bulk_acts_act_check check (act in ('replay', 'retry', 'discard', 'assign', 'dismiss', 'repair')),
  constraint bulk_acts_state_check check (state in ('planned', 'waiting_approval', 'running', 'done', 'failed', 'canceled', 'rejected')),
  constraint bulk_acts_targets_check check (targets > 0),
  constraint bulk_acts_ended_check check (done >= 0 and unchanged >= 0 and failed >= 0 and done + unchanged + failed <= targets),
  constraint bulk_acts_reason_check check (reason <> ''),
  constraint bulk_acts_actor_check check (actor <> '' and length(actor) <= 200),
  -- a second person is another one
  constraint bulk_acts_approver_check check (approved_by <> actor),
  constraint bulk_acts_approved_check check ((approved_by is null) = (approved_at is null)),
  constraint bulk_acts_approval_check check (
    not needs_approval or approved_by is not null or state in ('planned', 'waiting_approval', 'canceled', 'rejected')),
  constraint bulk_acts_finished_check check (
    (finished_at is not null) = (state in ('done', 'failed', 'canceled', 'rejected')))
);
create index bulk_acts_planned_idx on /* schema */bulk_acts (planned_at desc, bulk_id desc);
create index bulk_acts_running_idx on /* schema */bulk_acts (started_at) where state = 'running';

create table /* schema */bulk_items (
  bulk_id uuid not null,
  number integer not null,
  target text collate "C" not null,
  -- the state in which it was planned: what is in another one by now is left alone
  was text collate "C" not null,
  state text collate "C" not null default 'pending',
  code text collate "C",
  message text collate "C",
  answered_at timestamptz,
  constraint bulk_items_pkey primary key (bulk_id, number),
  constraint bulk_items_bulk_fkey foreign key (bulk_id) references /* schema */bulk_acts (bulk_id),
  constraint bulk_items_target_key unique (bulk_id, target),
  constraint bulk_items_state_check check (state in ('pending', 'done', 'unchanged', 'failed')),
  constraint bulk_items_answered_check check ((answered_at is null) = (state = 'pending'))
);
create index bulk_items_state_idx on /* schema */bulk_items (bulk_id, state, number);

-- What somebody has read and approved is what is done: only how far it has come changes.
create function /* schema */refuse_bulk_change() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'DELETE' then
    raise exception '% are kept: cancel it instead', tg_table_name using errcode = '42501';
  end if;
  if to_jsonb(new) - tg_argv::text[] is distinct from to_jsonb(old) - tg_argv::text[] then
    raise exception 'what was planned does not change: plan anew instead' using errcode = '42501';
  end if;
  return new;
end $$;
revoke execute on function /* schema */refuse_bulk_change() from public;
-- reason, filter and message are texts that an erasure may have to change
create trigger bulk_acts_frozen before update or delete on /* schema */bulk_acts
  for each row execute function /* schema */refuse_bulk_change('state', 'started_at', 'approved_by', 'approved_at',
    'ended_by', 'finished_at', 'done', 'unchanged', 'failed', 'reason', 'filter', 'details');
create trigger bulk_items_frozen before update or delete on /* schema */bulk_items
  for each row execute function /* schema */refuse_bulk_change('state', 'code', 'message', 'answered_at');
