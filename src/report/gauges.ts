/**
 * The figures of `/metrics` that only the database knows: one query over small tables and partial indexes,
 * whatever the size of inbox, ledger and outbox.
 */
import type { Database } from '../postgres/executor.ts'

/** One family of figures. */
export interface GaugeFigures {
  /** Without the prefix `hookledger_`. */
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
  readonly values: readonly { readonly labels: readonly string[]; readonly value: number }[]
  /** True where it only ever grows. */
  readonly isCounter?: boolean
}

/** Families without labels: their value in SQL. The database's clock, seconds. */
const single: Readonly<
  Record<
    string,
    { readonly help: string; readonly sql: (s: string) => string; readonly isCounter?: true }
  >
> = {
  inbox_oldest_unprocessed_seconds: {
    help: 'The age of the oldest event that is neither decided nor waiting for something; 0 when there is none.',
    sql: (
      s,
    ) => `coalesce((select greatest(0, extract(epoch from clock_timestamp() - min(e.received_at)))
      from ${s}inbox_events e where e.event_key in (${unprocessed(s)})), 0)`,
  },
  inbox_overdue: {
    help: 'Waiting events past their deadline.',
    sql: (s) => `(select count(*) from ${s}inbox_deferred where overdue)`,
  },
  fetches_open: {
    help: 'Requests to providers that are due, under way or backed off.',
    sql: (s) => `(select count(*) from ${s}fetches)`,
  },
  fetches_failing: {
    help: 'Of those, the ones that failed the last time.',
    sql: (s) => `(select count(*) from ${s}fetches where attempts > 0)`,
  },
  fetches_oldest_seconds: {
    help: 'The age of the oldest of them; 0 when there is none.',
    sql: (s) =>
      `coalesce((select greatest(0, extract(epoch from clock_timestamp() - min(asked_at))) from ${s}fetches), 0)`,
  },
  fetch_budgets_paused: {
    help: 'Sources and accounts that are left alone for a while.',
    sql: (s) => `(select count(*) from ${s}fetch_budgets where closed_until > now())`,
  },
  outbox_oldest_due_seconds: {
    help: 'For how long the oldest operation has been due; 0 when none is.',
    sql: (
      s,
    ) => `coalesce((select greatest(0, extract(epoch from clock_timestamp() - min(next_attempt_at)))
      from ${s}outbox_operations where next_attempt_at is not null), 0)`,
  },
  outbox_destinations_paused: {
    help: 'Destinations left alone after too many failures in a row.',
    sql: (s) => `(select count(*) from ${s}outbox_destinations where closed_until > now())`,
  },
  findings_overdue: {
    help: 'Open findings past their due date.',
    sql: (s) =>
      `(select count(*) from ${s}findings where state in ('open', 'repairing') and due_at < now())`,
  },
  reconciliation_oldest_unresolved_seconds: {
    help: 'The age of the oldest open finding; 0 when there is none.',
    sql: (
      s,
    ) => `coalesce((select greatest(0, extract(epoch from clock_timestamp() - min(first_seen_at)))
      from ${s}findings where state in ('open', 'repairing')), 0)`,
  },
  reconciliation_oldest_checkpoint_seconds: {
    help: 'Since when a kind of record was not looked at, the oldest of all; 0 when nothing is reconciled.',
    sql: (s) => `coalesce((select greatest(0, extract(epoch from clock_timestamp() - min(through)))
      from ${s}reconciliation_checkpoints), 0)`,
  },
  repaired_contradictions_total: {
    help: 'Repairs of contradictions after which both sides agreed.',
    sql: (s) => `(select count(*) from ${s}repairs r join ${s}findings f using (finding_id)
      where r.verified_at is not null and f.class = 'contradiction')`,
    isCounter: true,
  },
  repairs_unverified: {
    help: 'Repairs after which the provider was not asked again yet.',
    sql: (s) => `(select count(*) from ${s}repairs where verified_at is null)`,
  },
  schema_version: {
    help: 'The newest migration.',
    sql: (s) => `coalesce((select max(migration_id) from ${s}migrations), 0)`,
  },
}

/** The first of each list: an index scan of one row. */
function unprocessed(s: string): string {
  return ['inbox_ready', 'inbox_delayed', 'inbox_suspects', 'inbox_gathers']
    .map((table) => `(select min(event_key) from ${s}${table})`)
    .join(', ')
}

/** Families with labels: rows of `family, labels, value`. */
function labeled(s: string): string {
  const inbox = ['ready', 'delayed', 'suspects', 'deferred', 'dead'].map(
    (state) =>
      `select 'inbox_backlog', array['${state}'], (select count(*) from ${s}inbox_${state})::double precision`,
  )
  const outbox = (state: string, condition: string): string =>
    `select 'outbox_backlog', array['${state}'], (select count(*) from ${s}outbox_operations where ${condition})::double precision`
  return [
    ...inbox,
    `select 'inbox_backlog', array['gathers'], (select count(*) from ${s}inbox_gathers where waiting)::double precision`,
    outbox('pending', `next_attempt_at is not null and state = 'pending'`),
    outbox('sending', `state = 'sending'`),
    outbox('uncertain', `state in ('dead', 'uncertain') and state = 'uncertain'`),
    outbox('dead', `state in ('dead', 'uncertain') and state = 'dead'`),
    `select 'processes', array[r.role], count(p.process_id)::double precision
      from (values ('work'), ('dispatch'), ('reconcile'), ('gather')) as r(role)
      left join ${s}processes p on r.role = any (p.roles) and p.seen_at > clock_timestamp() - interval '30 seconds'
      group by r.role`,
    `select 'reconcile_differences', array[kind], count(*)::double precision
      from ${s}findings where state in ('open', 'repairing') group by kind`,
    `select 'findings', array[c.class], count(f.finding_id)::double precision
      from (values ('lag'), ('contradiction')) as c(class)
      left join ${s}findings f on f.class = c.class and f.state in ('open', 'repairing') group by c.class`,
    `select 'reconcile_last_success_timestamp_seconds', array[c.source], extract(epoch from (
        select r.finished_at from ${s}reconciliation_runs r
        where r.source = c.source and r.state = 'complete' order by r.started_at desc limit 1))::double precision
      from (select distinct source from ${s}reconciliation_runs) c`,
  ].join('\nunion all ')
}

const families: readonly Omit<GaugeFigures, 'values'>[] = [
  {
    name: 'inbox_backlog',
    help: 'Events that are not finished: ready, delayed (failed, tried again later), suspects (their worker died), gathers (wait for an answer), deferred (waiting), dead.',
    labels: ['state'],
  },
  {
    name: 'outbox_backlog',
    help: 'Operations that are not finished: pending, sending, uncertain (nobody knows whether it was done), dead.',
    labels: ['state'],
  },
  {
    name: 'processes',
    help: 'Processes that were heard of in the last 30 seconds, by what they do.',
    labels: ['role'],
  },
  { name: 'reconcile_differences', help: 'Open findings by kind.', labels: ['kind'] },
  {
    name: 'findings',
    help: 'Open findings: lag ends by itself, a contradiction waits for a person.',
    labels: ['class'],
  },
  {
    name: 'reconcile_last_success_timestamp_seconds',
    help: 'When a pass over the source was last complete, in seconds since 1970.',
    labels: ['source'],
  },
]

/** The statement, exported so that its plan can be asserted. */
export function gaugesStatement(s: string): string {
  const rows = Object.entries(single).map(
    ([name, { sql }]) =>
      `select '${name}' as family, array[]::text[] as labels, (${sql(s)})::double precision as value`,
  )
  return `${rows.join('\nunion all ')}\nunion all ${labeled(s)}`
}

/** Reads all figures at once. */
export async function gauges(db: Database): Promise<readonly GaugeFigures[]> {
  const rows = await db.query<{ family: string; labels: string[]; value: number | null }>({
    text: gaugesStatement(db.schema),
  })
  const valuesOf = (name: string): GaugeFigures['values'] =>
    rows
      .filter(({ family, value }) => family === name && value !== null)
      .map(({ labels, value }) => ({ labels, value: Number(value) }))
  return [
    ...Object.entries(single).map(([name, { help, isCounter }]) => ({
      name,
      help,
      labels: [],
      values: valuesOf(name),
      ...(isCounter === true && { isCounter }),
    })),
    ...families.map((family) => ({ ...family, values: valuesOf(family.name) })),
  ]
}
