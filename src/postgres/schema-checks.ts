/**
 * Whether the schema still enforces what the promises rest on. An index, a foreign key or a trigger
 * that is missing, invalid or switched off changes no answer until the day when it matters.
 */
import type { Diagnosis } from './diagnosis.ts'
import type { Database } from './executor.ts'

/** A uniqueness that a promise rests on: key columns with commas between, and the condition of a partial one. */
export type PromisedIndex = readonly [
  promise: string,
  table: string,
  index: string,
  columns: string,
  predicate?: string,
]

/** Every uniqueness that promises rest on. */
export const promisedIndexes: readonly PromisedIndex[] = [
  ['P1', 'sources', 'sources_identity_key', 'provider,provider_account,environment'],
  ['P1', 'inbox_events', 'inbox_events_identity_key', 'source_id,event_id'],
  ['P1', 'inbox_ready', 'inbox_ready_pkey', 'event_key'],
  [
    'P2',
    'fulfillment_effects',
    'fulfillment_effects_pkey',
    'order_id,effect_type,effect_reference',
  ],
  ['P2', 'ledger_payments', 'ledger_payments_pkey', 'source_id,payment_id'],
  ['P2', 'order_names', 'order_names_pkey', 'source_id,kind,name'],
  ['P2', 'orders', 'orders_pkey', 'order_id'],
  ['P3', 'ledger_decisions', 'ledger_decisions_final_key', 'event_key', 'final'],
  ['P3', 'inbox_delayed', 'inbox_delayed_pkey', 'event_key'],
  ['P3', 'inbox_deferred', 'inbox_deferred_pkey', 'event_key'],
  ['P3', 'inbox_ignored', 'inbox_ignored_pkey', 'event_key'],
  ['P3', 'inbox_dead', 'inbox_dead_pkey', 'event_key'],
  ['P3', 'inbox_suspects', 'inbox_suspects_pkey', 'event_key'],
  ['P3', 'inbox_gathers', 'inbox_gathers_pkey', 'event_key'],
  ['P3', 'looked_at', 'looked_at_pkey', 'order_id,source_id,kind,object_id'],
  ['P3', 'fetches', 'fetches_pkey', 'order_id,source_id,kind,object_id'],
  ['P8', 'evidence', 'evidence_number_key', 'order_id,source_id,kind,object_id,number'],
  ['P4', 'ledger_decisions', 'ledger_decisions_order_key', 'order_id,decision_id,entitles'],
  ['P4', 'workflow_states', 'workflow_states_pkey', 'workflow,state'],
  ['P4', 'workflow_states', 'workflow_states_entitles_key', 'workflow,state,entitles'],
  ['P4', 'entitlements', 'entitlements_pkey', 'order_id,subject,entitlement'],
  ['P5', 'inbox_waits', 'inbox_waits_pkey', 'kind,source_id,name,event_key'],
  ['P5', 'customer_links', 'customer_links_pkey', 'source_id,customer_id'],
  ['P5', 'subject_merges', 'subject_merges_pkey', 'from_subject'],
  ['P5', 'entitlement_ends', 'entitlement_ends_pkey', 'valid_until,order_id,subject,entitlement'],
  ['P5', 'findings', 'findings_pkey', 'finding_id'],
  ['P6', 'outbox_operations', 'outbox_operations_pkey', 'operation_id'],
  ['P6', 'outbox_attempts', 'outbox_attempts_number_key', 'operation_id,number'],
  ['P6', 'outbox_answers', 'outbox_answers_pkey', 'attempt_id'],
]

/** Foreign keys and conditions behind P4. */
export const promisedConstraints: readonly (readonly [
  table: string,
  name: string,
  what: string,
])[] = [
  ['ledger_decisions', 'ledger_decisions_state_fkey', 'foreign key'],
  ['entitlements', 'entitlements_granted_by_fkey', 'foreign key'],
  ['ledger_decisions', 'ledger_decisions_entitles_check', 'check'],
  ['entitlements', 'entitlements_granting_check', 'check'],
  ['entitlements', 'entitlements_active_check', 'check'],
]

/** Tables that nobody changes, by a trigger of that name with `_append_only` behind it. */
export const appendOnlyTables: readonly string[] = [
  'ledger_decisions',
  'fulfillment_effects',
  'operator_acts',
  'payload_reads',
  'outbox_attempts',
  'outbox_answers',
  'operation_reads',
  'erasures',
  'erased_events',
]

/** Triggers of other tables whose rows are added, and of which only what is named there ever changes. */
const keptTables: readonly (readonly [table: string, trigger: string])[] = [
  ['repairs', 'repairs_append_only'],
  ['evidence', 'evidence_append_only'],
  ['evidence', 'evidence_permanent'],
]

/** Looks at everything. */
export async function diagnoseSchema(db: Database): Promise<Diagnosis[]> {
  return [
    ...(await diagnoseIndexes(db)),
    ...(await diagnoseConstraints(db)),
    ...(await diagnoseTriggers(db)),
    ...(await diagnoseKept(db)),
    ...(await diagnosePersistence(db)),
  ]
}

interface IndexRow {
  readonly table: string
  readonly index: string
  readonly unique: boolean
  readonly valid: boolean
  readonly immediate: boolean
  readonly columns: string[]
  readonly predicate: string | null
  readonly collated: boolean
}

async function diagnoseIndexes(db: Database): Promise<Diagnosis[]> {
  const rows = await db.query<IndexRow>({
    text: `select t.relname as table, c.relname as index, i.indisunique as unique,
        (i.indisvalid and i.indisready and i.indislive) as valid, i.indimmediate as immediate,
        -- an expression has no column: it stands as an empty name, which nothing promises
        (select array_agg(coalesce(a.attname, '')::text order by k.n)
          from unnest(i.indkey::smallint[]) with ordinality k(attnum, n)
          left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
          where k.n <= i.indnkeyatts) as columns,
        pg_get_expr(i.indpred, i.indrelid) as predicate,
        not exists (select from unnest(i.indcollation::oid[]) as k(oid) join pg_collation l on l.oid = k.oid
          where l.collname not in ('C', 'POSIX')) as collated
      from pg_index i
      join pg_class c on c.oid = i.indexrelid
      join pg_class t on t.oid = i.indrelid
      join pg_namespace n on n.oid = t.relnamespace
      where n.nspname = $1 and t.relname = any ($2::text[])`,
    values: [db.schemaName, [...new Set(promisedIndexes.map(([, table]) => table))]],
  })
  return promisedIndexes.flatMap((promised) => {
    const [promise, table, index] = promised
    const problem = problemOf(
      promised,
      rows.filter((row) => row.table === table),
    )
    if (problem === null) return []
    const message = `unique index ${index} on ${table} ${problem}: ${promise} does not hold; build it again before starting`
    return [{ code: 'HKL_SCHEMA_BROKEN', message, breaks: promise } as const]
  })
}

/** Null when some index enforces it, whatever that is called now. */
function problemOf(promised: PromisedIndex, rows: readonly IndexRow[]): string | null {
  if (rows.some((row) => problemOfIndex(promised, row) === null)) return null
  const named = rows.find((row) => row.index === promised[2])
  return named === undefined ? 'is missing' : problemOfIndex(promised, named)
}

/** The order of columns matters to speed, not to uniqueness. */
function columnsFit([, , , columns]: PromisedIndex, row: IndexRow): boolean {
  return [...row.columns].sort().join() === columns.split(',').sort().join()
}

function problemOfIndex(promised: PromisedIndex, row: IndexRow): string | null {
  const [, , , columns, predicate = null] = promised
  if (!columnsFit(promised, row)) return `covers (${row.columns.join()}) instead of (${columns})`
  if (!row.unique) return 'is not unique'
  if (!row.valid) return 'is invalid and enforces nothing'
  if (!row.immediate) return 'is deferrable, which no conflict clause can use'
  if (row.predicate !== predicate)
    return row.predicate === null ? 'covers every row' : `covers only rows where ${row.predicate}`
  return row.collated
    ? null
    : 'is not collated "C", so that an update of the operating system can break it'
}

async function diagnoseConstraints(db: Database): Promise<Diagnosis[]> {
  const rows = await db.query<{
    name: string
    table: string
    validated: boolean
    enforced: boolean
  }>({
    // newer servers have keys that are declared and not enforced
    text: `select c.conname as name, t.relname as table, c.convalidated as validated,
        coalesce((to_jsonb(c) ->> 'conenforced')::boolean, true)
          and not exists (select from pg_trigger g where g.tgconstraint = c.oid and g.tgenabled not in ('O', 'A')) as enforced
      from pg_constraint c join pg_class t on t.oid = c.conrelid
      where t.relnamespace = to_regnamespace($1) and c.contype in ('f', 'c')`,
    values: [db.schema.slice(0, -1)],
  })
  return promisedConstraints.flatMap(([table, name, what]) => {
    const row = rows.find((each) => each.table === table && each.name === name)
    const problem =
      row === undefined
        ? 'is missing'
        : !row.validated
          ? 'is not validated'
          : !row.enforced
            ? 'is not enforced'
            : null
    if (problem === null) return []
    return [
      {
        code: 'HKL_SCHEMA_BROKEN',
        message: `${what} ${name} on ${table} ${problem}: P4 does not hold`,
        breaks: 'P4',
      } as const,
    ]
  })
}

async function diagnoseTriggers(db: Database): Promise<Diagnosis[]> {
  const rows = await db.query<{ table: string }>({
    // 58: before, on delete, update and truncate; a condition or a list of columns would leave gaps
    text: `select c.relname as table from pg_trigger t join pg_class c on c.oid = t.tgrelid
      join pg_proc p on p.oid = t.tgfoid
      where c.relnamespace = to_regnamespace($1) and p.pronamespace = c.relnamespace and p.proname = 'refuse_change'
        and t.tgenabled in ('O', 'A') and t.tgtype & 58 = 58 and t.tgqual is null and t.tgattr::text = ''`,
    values: [db.schema.slice(0, -1)],
  })
  return appendOnlyTables
    .filter((table) => !rows.some((row) => row.table === table))
    .map((table) => ({
      code: 'HKL_SCHEMA_BROKEN',
      message: `the trigger that keeps ${table} append-only is missing or disabled: P8 does not hold`,
      breaks: 'P8',
    }))
}

async function diagnoseKept(db: Database): Promise<Diagnosis[]> {
  const rows = await db.query<{ table: string; name: string }>({
    text: `select c.relname as table, t.tgname as name from pg_trigger t join pg_class c on c.oid = t.tgrelid
      where c.relnamespace = to_regnamespace($1) and not t.tgisinternal and t.tgenabled in ('O', 'A')`,
    values: [db.schema.slice(0, -1)],
  })
  return keptTables
    .filter(([table, trigger]) => !rows.some((row) => row.table === table && row.name === trigger))
    .map(([table, trigger]) => ({
      code: 'HKL_SCHEMA_BROKEN',
      message: `the trigger ${trigger} that keeps ${table} as it was written is missing or disabled: P8 does not hold`,
      breaks: 'P8',
    }))
}

async function diagnosePersistence(db: Database): Promise<Diagnosis[]> {
  const rows = await db.query<{ name: string }>({
    text: `select relname as name from pg_class where relnamespace = to_regnamespace($1) and relkind in ('r', 'p') and relpersistence <> 'p' order by relname`,
    values: [db.schema.slice(0, -1)],
  })
  return rows.map(({ name }) => ({
    code: 'HKL_SCHEMA_BROKEN',
    message: `table ${name} is unlogged and would be empty after a crash: P1 does not hold; run: alter table ${db.schema}${name} set logged`,
    breaks: 'P1',
  }))
}
