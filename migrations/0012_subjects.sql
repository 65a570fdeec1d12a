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
