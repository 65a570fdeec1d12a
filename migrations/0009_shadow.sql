-- Workflows in shadow: they decide and record beside an app's own handlers, and nothing of theirs grants.

-- One row a workflow that ever was; `ended_at` when what it states began to count.
create table /* schema */shadow_workflows (
  workflow text collate "C" not null,
  since timestamptz not null default now(),
  ended_at timestamptz,
  constraint shadow_workflows_pkey primary key (workflow)
);

-- How the last comparison with the app's own answers came out, and where the two differ. One comparison is
-- over all workflows in shadow, since an app answers by subject.
create table /* schema */shadow_comparisons (
  one_row boolean not null default true,
  compared_at timestamptz not null,
  subjects bigint not null,
  differences bigint not null,
  -- subjects whose orders changed a moment ago: looked at by the next one
  too_young bigint not null,
  constraint shadow_comparisons_pkey primary key (one_row),
  constraint shadow_comparisons_one_row_check check (one_row)
);
create table /* schema */shadow_differences (
  subject text collate "C" not null,
  entitlement text collate "C" not null,
  kind text not null,
  here jsonb,
  there jsonb,
  order_ids text[] not null,
  first_seen_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  constraint shadow_differences_pkey primary key (subject, entitlement),
  constraint shadow_differences_kind_check
    check (kind in ('only_here', 'only_there', 'quantity', 'valid_until'))
);
