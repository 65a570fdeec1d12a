-- Subjects: which of them a provider's customer is, which of them became one, and who is told when what a
-- subject may use has changed.

-- null: somebody waits for the link
create table /* schema */customer_links (
  source_id integer not null,
  customer_id text collate "C" not null,
  subject text collate "C",
  linked_at timestamptz,
  act_id bigint,
  constraint customer_links_pkey primary key (source_id, customer_id)
);
create index customer_links_subject_idx on /* schema */customer_links (subject) where subject is not null;

-- chains are kept flat: what was merged into a subject that is merged itself points at the last one
create table /* schema */subject_merges (
  from_subject text collate "C" not null,
  into_subject text collate "C" not null,
  act_id bigint not null,
  merged_at timestamptz not null default now(),
  constraint subject_merges_pkey primary key (from_subject),
  constraint subject_merges_other_check check (from_subject <> into_subject)
);
create index subject_merges_into_idx on /* schema */subject_merges (into_subject);

-- the ledger keeps the subject that its decisions named; a merged one is read as what it became. Two halves,
-- so that `where subject = …` is answered by indexes: its own rows, and those of what was merged into it.
create or replace view /* schema */current_entitlements as
select
  e.subject, e.entitlement,
  case coalesce(r.combine, 'any') when 'sum' then sum(e.quantity)::bigint else max(e.quantity) end as quantity,
  case when bool_or(e.valid_until is null) then null else max(e.valid_until) end as valid_until
from (
  select own.subject, own.entitlement, own.quantity, own.valid_until
  from /* schema */entitlements own
  where own.active and (own.valid_until is null or own.valid_until > now())
    and not exists (select 1 from /* schema */subject_merges m where m.from_subject = own.subject)
  union all
  select m.into_subject, had.entitlement, had.quantity, had.valid_until
  from /* schema */subject_merges m
  -- by the index for each of the few merged ones, whatever statistics say
  cross join lateral (
    select of_it.entitlement, of_it.quantity, of_it.valid_until
    from /* schema */entitlements of_it
    where of_it.subject = m.from_subject and of_it.active and (of_it.valid_until is null or of_it.valid_until > now())
    offset 0) had
) e
left join /* schema */entitlement_rules r on r.entitlement = e.entitlement
group by e.subject, e.entitlement, r.combine;

-- what ends by the clock; `active` is no part of it, so that its changes stay heap-only
create index entitlements_until_idx on /* schema */entitlements (valid_until) where valid_until is not null;

-- up to where ends were looked for, locked by whoever looks
create table /* schema */entitlement_watch (
  one_row boolean not null default true,
  through timestamptz not null default now(),
  constraint entitlement_watch_pkey primary key (one_row),
  constraint entitlement_watch_one_row_check check (one_row)
);
insert into /* schema */entitlement_watch default values;

-- each end that was told; kept as long as one could be found again
create table /* schema */entitlement_ends (
  valid_until timestamptz not null,
  order_id text collate "C" not null,
  subject text collate "C" not null,
  entitlement text collate "C" not null,
  told_at timestamptz not null default clock_timestamp(),
  constraint entitlement_ends_pkey primary key (valid_until, order_id, subject, entitlement)
);

-- changes that somebody is to be told of: written in their commit, gone in the commit of the telling
create table /* schema */entitlement_changes (
  change_id bigint generated always as identity,
  subject text collate "C" not null,
  order_id text collate "C",
  decision_id bigint,
  because text not null,
  entitlement text collate "C",
  ended_at timestamptz,
  changed_at timestamptz not null default clock_timestamp(),
  constraint entitlement_changes_pkey primary key (change_id),
  constraint entitlement_changes_because_check check (because in ('event', 'repair', 'redecide', 'grant', 'adopt', 'shadow', 'merge', 'expiry'))
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_truncate = off);

-- taken before a telling reads what a subject may use: the highest one has read the latest
create sequence /* schema */entitlement_telling_seq;
