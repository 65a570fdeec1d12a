/**
 * What the promises rest on, asked of the live server: unique indexes that really enforce, settings
 * that really flush, a version that is new enough. The start refuses what breaks a promise; `doctor`
 * also tells what only deserves a look.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Database } from './executor.ts'
import { newestMigration, schemaVersion } from './migrate.ts'

/** One thing found. `breaks` names the promise that does not hold; absent where it is only advice. */
export interface Diagnosis {
  readonly code: 'HKL_DATABASE_TOO_OLD' | 'HKL_DATABASE_UNSAFE' | 'HKL_SCHEMA_BROKEN' | 'HKL_SCHEMA_OLDER' | 'HKL_SCHEMA_NEWER' | 'HKL_SCHEMA_MISSING' | 'advice'
  readonly message: string
  readonly breaks?: string
  /** True where `acceptDurability` may say that it is safe here. */
  readonly acceptable?: boolean
}

/** The unique indexes that promises rest on: table, index, columns in order. */
export const promisedIndexes: readonly (readonly [promise: string, table: string, index: string, columns: string])[] = [
  ['P1', 'inbox_events', 'inbox_events_identity_key', 'source_id,event_id'],
  ['P1', 'inbox_ready', 'inbox_ready_pkey', 'event_key'],
  ['P1', 'sources', 'sources_identity_key', 'provider,provider_account,environment'],
  ['P2', 'fulfillment_effects', 'fulfillment_effects_pkey', 'order_id,effect_type,effect_reference'],
  ['P2', 'ledger_payments', 'ledger_payments_pkey', 'source_id,payment_id'],
  ['P2', 'order_names', 'order_names_pkey', 'source_id,kind,name'],
  ['P2', 'orders', 'orders_pkey', 'order_id'],
  ['P3', 'ledger_decisions', 'ledger_decisions_final_key', 'event_key'],
  ['P4', 'ledger_decisions', 'ledger_decisions_order_key', 'order_id,decision_id,entitles'],
  ['P4', 'entitlements', 'entitlements_pkey', 'order_id,subject,entitlement'],
  ['P5', 'findings', 'findings_pkey', 'finding_id'],
]

const promisedForeignKeys: readonly (readonly [table: string, name: string])[] = [
  ['ledger_decisions', 'ledger_decisions_state_fkey'],
  ['entitlements', 'entitlements_granted_by_fkey'],
]

const appendOnly = ['ledger_decisions', 'fulfillment_effects', 'operator_acts', 'payload_reads']

/** Everything that is wrong or worth a look, worst first. */
export async function diagnose(db: Database): Promise<Diagnosis[]> {
  const found = await diagnoseServer(db)
  const version = await schemaVersion(db)
  if (version === 0) {
    return [...found, { code: 'HKL_SCHEMA_MISSING', message: `there is no schema ${db.schemaName} of Hookledger: run "hookledger migrate"`, breaks: 'all' }]
  }
  if (version < newestMigration) {
    found.push({ code: 'HKL_SCHEMA_OLDER', message: `schema ${db.schemaName} is at migration ${version}, this code needs ${newestMigration}: run "hookledger migrate"`, breaks: 'all' })
    return found
  }
  if (version > newestMigration) {
    found.push({ code: 'advice', message: `schema ${db.schemaName} is at migration ${version}, newer than this code (${newestMigration}): it works on, deploy the newer version soon` })
  }
  return [...found, ...(await diagnoseIndexes(db)), ...(await diagnoseConstraints(db)), ...(await diagnosePartitions(db))]
}

/**
 * Refuses to start on what breaks a promise.
 *
 * @returns messages that are worth a warning
 * @throws HookledgerError with the first diagnosis that breaks a promise
 */
export async function requireHealthy(db: Database, options: { readonly acceptDurability?: string | undefined }): Promise<string[]> {
  const warnings: string[] = []
  for (const each of await diagnose(db)) {
    if (each.breaks === undefined || each.code === 'advice') warnings.push(each.message)
    else if (each.acceptable === true && options.acceptDurability !== undefined) {
      warnings.push(`${each.message} (accepted: ${options.acceptDurability})`)
    } else throw new HookledgerError(each.code, each.message)
  }
  return warnings
}

async function diagnoseServer(db: Database): Promise<Diagnosis[]> {
  const found: Diagnosis[] = []
  const rows = await db.query<{ name: string; setting: string }>({
    text: `select name, setting from pg_settings where name in
      ('server_version_num', 'fsync', 'full_page_writes', 'synchronous_commit', 'deadlock_timeout', 'log_parameter_max_length_on_error', 'log_error_verbosity')`,
  })
  const settings = new Map(rows.map((row) => [row.name, row.setting]))
  const version = Number(settings.get('server_version_num') ?? 0)
  if (version < 140000) {
    found.push({ code: 'HKL_DATABASE_TOO_OLD', message: `PostgreSQL 14 or newer is needed, this server is ${Math.trunc(version / 10000)}`, breaks: 'all' })
  }
  for (const name of ['fsync', 'full_page_writes']) {
    if (settings.get(name) !== 'off') continue
    found.push({
      code: 'HKL_DATABASE_UNSAFE',
      message: `${name} is off: an acknowledged event can be lost (P1). Turn it on, or say acceptDurability: '<why it is safe here>'`,
      breaks: 'P1',
      acceptable: true,
    })
  }
  const commit = settings.get('synchronous_commit') ?? 'on'
  if (['off', 'local'].includes(commit)) {
    found.push({
      code: 'HKL_DATABASE_UNSAFE',
      message: `synchronous_commit is ${commit} for this role: an acknowledged event can be lost (P1). Run: alter role <receiver> set synchronous_commit = on; or say acceptDurability: '<why it is safe here>'`,
      breaks: 'P1',
      acceptable: true,
    })
  }
  if (settings.get('log_parameter_max_length_on_error') === '-1') {
    found.push({ code: 'advice', message: 'log_parameter_max_length_on_error is -1: the server log would show payloads (P9); set it to 0' })
  }
  return found
}

async function diagnoseIndexes(db: Database): Promise<Diagnosis[]> {
  const rows = await db.query<{ index: string; unique: boolean; valid: boolean; columns: string; collated: boolean }>({
    text: `select c.relname as index, i.indisunique as unique, (i.indisvalid and i.indisready and i.indimmediate) as valid,
        (select string_agg(a.attname, ',' order by k.n) from unnest(i.indkey::smallint[]) with ordinality k(attnum, n)
          join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum) as columns,
        not exists (select 1 from unnest(i.indcollation::oid[]) as k(oid) where k.oid <> 0 and k.oid <> 'pg_catalog."C"'::regcollation) as collated
      from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relname = any ($2::text[])`,
    values: [db.schemaName, promisedIndexes.map(([, , index]) => index)],
  })
  const byName = new Map(rows.map((row) => [row.index, row]))
  return promisedIndexes.flatMap(([promise, table, index, columns]): Diagnosis[] => {
    const row = byName.get(index)
    const problem =
      row === undefined
        ? 'is missing'
        : !row.unique
          ? 'is not unique'
          : !row.valid
            ? 'is invalid and enforces nothing'
            : row.columns !== columns
              ? `covers (${row.columns}) instead of (${columns})`
              : !row.collated
                ? 'is not collated "C"'
                : null
    return problem === null
      ? []
      : [{ code: 'HKL_SCHEMA_BROKEN', message: `unique index ${index} on ${table} ${problem}: ${promise} does not hold; build it again before starting`, breaks: promise }]
  })
}

async function diagnoseConstraints(db: Database): Promise<Diagnosis[]> {
  const keys = await db.query<{ conname: string }>({
    text: `select conname from pg_constraint c join pg_namespace n on n.oid = c.connamespace
      where n.nspname = $1 and c.contype = 'f' and c.convalidated`,
    values: [db.schemaName],
  })
  const triggers = await db.query<{ relname: string }>({
    text: `select c.relname from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and t.tgname = c.relname || '_append_only' and t.tgenabled <> 'D'`,
    values: [db.schemaName],
  })
  const missingKeys = promisedForeignKeys
    .filter(([, name]) => !keys.some((row) => row.conname === name))
    .map(([table, name]): Diagnosis => ({ code: 'HKL_SCHEMA_BROKEN', message: `foreign key ${name} on ${table} is missing or not validated: P4 does not hold`, breaks: 'P4' }))
  const missingTriggers = appendOnly
    .filter((table) => !triggers.some((row) => row.relname === table))
    .map((table): Diagnosis => ({ code: 'HKL_SCHEMA_BROKEN', message: `the trigger that keeps ${table} append-only is missing or disabled: P8 does not hold`, breaks: 'P8' }))
  return [...missingKeys, ...missingTriggers]
}

async function diagnosePartitions(db: Database): Promise<Diagnosis[]> {
  const [row] = await db.query<{ ahead: string; strays: boolean; oldest: string | null }>({
    text: `select (select count(*) from pg_inherits i join pg_class c on c.oid = i.inhrelid
          where i.inhparent = $1::regclass and c.relname ~ '^payloads_\\d{8}$'
            and to_date(right(c.relname, 8), 'YYYYMMDD') >= (now() at time zone 'UTC')::date) as ahead,
        exists (select 1 from ${db.schema}payloads_default) as strays,
        (select extract(epoch from max(now() - xact_start))::bigint from pg_stat_activity where backend_xmin is not null) as oldest`,
    values: [`${db.schema}payloads`],
  })
  const found: Diagnosis[] = []
  if (Number(row?.ahead ?? 0) < 7) found.push({ code: 'advice', message: `only ${row?.ahead ?? 0} day partitions for payloads are left: run "hookledger prune"` })
  if (row?.strays === true) found.push({ code: 'advice', message: 'payloads lie in the default partition: run "hookledger prune"' })
  if (Number(row?.oldest ?? 0) > 3600) found.push({ code: 'advice', message: `a transaction has been open for ${row?.oldest} s and holds back vacuum` })
  return found
}
