/**
 * What the server must be and how it must be set: new enough, flushing what it acknowledges, and not
 * writing payloads into its log. Settings are those of the present session, so of this role.
 */
import type { Diagnosis } from './diagnosis.ts'
import type { Database } from './executor.ts'

/** The settings that matter, by name, as pg_settings has them. */
export type ServerSettings = ReadonlyMap<string, string>

const asked = [
  'server_version_num',
  'fsync',
  'full_page_writes',
  'synchronous_commit',
  'session_replication_role',
  'deadlock_timeout',
  'default_transaction_read_only',
  'log_statement',
  'log_min_duration_statement',
  'log_min_duration_sample',
  'log_duration',
  'log_parameter_max_length',
  'log_parameter_max_length_on_error',
]

/** Reads the server's settings and judges them. */
export async function diagnoseServer(
  db: Database,
  lockTimeoutMs: number | undefined,
): Promise<Diagnosis[]> {
  const rows = await db.query<{ name: string; setting: string }>({
    text: `select name, setting from pg_settings where name = any ($1::text[])
      union all select 'in_recovery', case when pg_is_in_recovery() then 'on' else 'off' end`,
    values: [asked],
  })
  return judgeServer(new Map(rows.map((row) => [row.name, row.setting])), lockTimeoutMs)
}

/** Judges settings. Exported because no test can start an old server. */
export function judgeServer(settings: ServerSettings, lockTimeoutMs?: number): Diagnosis[] {
  return [
    ...judgeVersion(Number(settings.get('server_version_num') ?? 0)),
    ...judgeWritable(settings),
    ...judgeDurability(settings),
    ...judgeTriggers(settings),
    ...judgeTimeouts(settings, lockTimeoutMs),
    ...judgeLogging(settings),
  ]
}

function judgeVersion(version: number): Diagnosis[] {
  if (version >= 140000) return []
  return [
    {
      code: 'HKL_DATABASE_TOO_OLD',
      message: `PostgreSQL 14 or newer is needed, this server is ${Math.trunc(version / 10000)}`,
      breaks: 'all',
    },
  ]
}

function judgeWritable(settings: ServerSettings): Diagnosis[] {
  const why =
    settings.get('in_recovery') === 'on'
      ? 'this server is a standby'
      : settings.get('default_transaction_read_only') === 'on'
        ? 'default_transaction_read_only is on'
        : null
  if (why === null) return []
  return [
    {
      code: 'HKL_DATABASE_UNSAFE',
      message: `${why}: nothing can be stored; connect to the primary`,
      breaks: 'all',
    },
  ]
}

function judgeDurability(settings: ServerSettings): Diagnosis[] {
  const found: Diagnosis[] = []
  const unsafe = (what: string, remedy: string): void => {
    const message = `${what}: an acknowledged event can be lost (P1). ${remedy}, or say acceptDurability: '<why it is safe here>'`
    found.push({ code: 'HKL_DATABASE_UNSAFE', message, breaks: 'P1', acceptable: true })
  }
  for (const name of ['fsync', 'full_page_writes']) {
    if (settings.get(name) === 'off') unsafe(`${name} is off`, 'Turn it on')
  }
  const commit = settings.get('synchronous_commit') ?? 'on'
  if (commit === 'off' || commit === 'local') {
    unsafe(
      `synchronous_commit is ${commit} for this role`,
      'Run: alter role <receiver> set synchronous_commit = on',
    )
  }
  return found
}

function judgeTriggers(settings: ServerSettings): Diagnosis[] {
  if (settings.get('session_replication_role') !== 'replica') return []
  const message =
    'session_replication_role is replica for this role: foreign keys and append-only tables are not enforced (P4, P8); reset it'
  return [{ code: 'HKL_DATABASE_UNSAFE', message, breaks: 'P4' }]
}

function judgeTimeouts(settings: ServerSettings, lockTimeoutMs: number | undefined): Diagnosis[] {
  const deadlock = Number(settings.get('deadlock_timeout') ?? 1000)
  if (lockTimeoutMs === undefined || deadlock > lockTimeoutMs) return []
  const message = `deadlock_timeout is ${deadlock} ms and a worker waits ${lockTimeoutMs} ms for a lock: in a deadlock your own transaction could be the one that is ended; set limits.lockTimeoutMs below ${deadlock}`
  return [{ code: 'advice', message }]
}

function judgeLogging(settings: ServerSettings): Diagnosis[] {
  const found: Diagnosis[] = []
  if ((settings.get('log_parameter_max_length_on_error') ?? '0') !== '0') {
    found.push({
      code: 'advice',
      message:
        'log_parameter_max_length_on_error is not 0: the log of the server shows payloads when a statement fails (P9); set it to 0',
    })
  }
  const logs = ['log_min_duration_statement', 'log_min_duration_sample'].filter(
    (name) => Number(settings.get(name) ?? -1) >= 0,
  )
  if (['mod', 'all'].includes(settings.get('log_statement') ?? 'none')) logs.push('log_statement')
  if (logs.length > 0 && (settings.get('log_parameter_max_length') ?? '-1') !== '0') {
    found.push({
      code: 'advice',
      message: `${logs.join(' and ')} makes the server log statements with their parameters, payloads among them (P9); set log_parameter_max_length to 0`,
    })
  }
  return found
}

/** What holds back vacuum: small tables of ours grow with rows that are gone, and claims get slower. */
export async function diagnoseHorizon(db: Database, seconds: number): Promise<Diagnosis[]> {
  const rows = await db.query<{ what: string }>({
    text: `select 'a transaction of ' || coalesce(usename, 'somebody') || ' has been open for '
          || extract(epoch from clock_timestamp() - xact_start)::bigint || ' s' as what
        from pg_stat_activity
        where pid <> pg_backend_pid() and (backend_xmin is not null or backend_xid is not null)
          and xact_start < clock_timestamp() - make_interval(secs => $1::integer)
      union all
      select 'prepared transaction ' || quote_literal(left(gid, 60)) || ' has been open for '
          || extract(epoch from clock_timestamp() - prepared)::bigint || ' s'
        from pg_prepared_xacts where prepared < clock_timestamp() - make_interval(secs => $1::integer)
      union all
      select 'nobody reads replication slot ' || slot_name || ', which' from pg_replication_slots
        where not active and (xmin is not null or catalog_xmin is not null)`,
    values: [seconds],
  })
  return rows.map(({ what }): Diagnosis => ({
    code: 'advice',
    message: `${what} holds back vacuum, and claims get slower: end it`,
  }))
}
