import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger } from 'hookledger'
import {
  diagnose,
  promisedIndexes,
  requireHealthy,
  type Diagnosis,
} from '../../src/postgres/doctor.ts'
import { appendOnlyTables, promisedConstraints } from '../../src/postgres/schema-checks.ts'
import { migrate, newestMigration } from '../../src/postgres/migrate.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import type { Database } from '../../src/postgres/executor.ts'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import { shopOptions } from '../support/shop.ts'
import { oncePool } from '../support/once-pool.ts'
import { queryOnce } from '../support/once-query.ts'
import { createTestDatabase, databaseUrl, type TestDatabase } from '../support/test-database.ts'

let database: TestDatabase
let db: Database

/** The schema of a database whose sessions have these settings. */
function open(options = ''): Database {
  const pool = database.pool({ max: 3, options: `-c search_path=hookledger ${options}` })
  return createDatabase(pool, 'hookledger')
}

beforeAll(async () => {
  database = await createHookledgerDatabase()
  db = open()
  await db.query({ text: 'select make_payload_partitions(10)' })
})
afterAll(() => database.drop())

/** What is found after these statements, in a transaction that is taken back. */
async function diagnoseAfter(...statements: string[]): Promise<Diagnosis[]> {
  let diagnoses: Diagnosis[] = []
  const undone = new Error('undone')
  await db
    .transaction(async (tx) => {
      for (const text of statements) await tx.query({ text })
      diagnoses = await diagnose({
        ...db,
        schema: db.schema,
        schemaName: db.schemaName,
        query: tx.query.bind(tx),
      })
      throw undone
    })
    .catch((error: unknown) => {
      if (error !== undone) throw error
    })
  return diagnoses
}

const found = (code: Diagnosis['code'], message: string, breaks?: string): unknown => [
  expect.objectContaining({
    code,
    message: expect.stringContaining(message),
    ...(breaks !== undefined && { breaks }),
  }),
]

describe('a fresh schema', () => {
  it('is healthy, and a start has nothing to warn of', async () => {
    expect(await diagnose(db)).toEqual([])
    expect(await requireHealthy(db, { environment: 'test', lockTimeoutMs: 500 })).toEqual([])
  })
})

describe('promised indexes', () => {
  it.each(promisedIndexes.map(([promise, table, index]) => [index, table, promise]))(
    'misses %s',
    async (index, table, promise) => {
      const diagnoses = await diagnoseAfter(
        `alter table ${table} drop constraint if exists ${index} cascade`,
        `drop index if exists ${index}`,
      )
      const message = expect.stringContaining(`${index} on ${table} is missing`)
      expect(diagnoses).toContainEqual({ code: 'HKL_SCHEMA_BROKEN', message, breaks: promise })
    },
  )

  const identity = 'alter table inbox_events drop constraint inbox_events_identity_key'
  it.each([
    [
      'is not unique',
      'create index inbox_events_identity_key on inbox_events (source_id, event_id)',
    ],
    [
      'covers (event_id) instead of (source_id,event_id)',
      'create unique index inbox_events_identity_key on inbox_events (event_id)',
    ],
    [
      'covers (source_id,) instead of',
      'create unique index inbox_events_identity_key on inbox_events (source_id, lower(event_id))',
    ],
    [
      'covers only rows where',
      `create unique index inbox_events_identity_key on inbox_events (source_id, event_id) where via = 'webhook'`,
    ],
    [
      'is not collated "C"',
      'create unique index inbox_events_identity_key on inbox_events (source_id, event_id collate "en-x-icu")',
    ],
    [
      'is deferrable',
      'alter table inbox_events add constraint inbox_events_identity_key unique (source_id, event_id) deferrable',
    ],
  ])('sees an index that %s', async (problem, statement) => {
    expect(await diagnoseAfter(identity, statement)).toEqual(
      found('HKL_SCHEMA_BROKEN', `inbox_events_identity_key on inbox_events ${problem}`, 'P1'),
    )
  })

  it('sees that every decision would have to be unique where only final ones are', async () => {
    const statements = [
      'drop index ledger_decisions_final_key',
      'create unique index ledger_decisions_final_key on ledger_decisions (event_key)',
    ]
    expect(await diagnoseAfter(...statements)).toEqual(
      found('HKL_SCHEMA_BROKEN', 'covers every row', 'P3'),
    )
  })

  it('accepts an index that was built again, whatever it is called and in whatever order', async () => {
    expect(
      await diagnoseAfter(
        identity,
        'create unique index rebuilt on inbox_events (event_id, source_id) include (event_type)',
      ),
    ).toEqual([])
  })
})

describe('keys, conditions and triggers', () => {
  it.each(promisedConstraints.map(([table, name]) => [name, table]))(
    'misses %s',
    async (name, table) => {
      expect(await diagnoseAfter(`alter table ${table} drop constraint ${name}`)).toEqual(
        found('HKL_SCHEMA_BROKEN', `${name} on ${table} is missing`, 'P4'),
      )
    },
  )

  it('sees a foreign key that is not validated', async () => {
    const diagnoses = await diagnoseAfter(
      'alter table entitlements drop constraint entitlements_granted_by_fkey',
      `alter table entitlements add constraint entitlements_granted_by_fkey foreign key (order_id, granted_by, granting)
        references ledger_decisions (order_id, decision_id, entitles) not valid`,
    )
    expect(diagnoses).toEqual(
      found(
        'HKL_SCHEMA_BROKEN',
        'entitlements_granted_by_fkey on entitlements is not validated',
        'P4',
      ),
    )
  })

  it('sees a foreign key whose triggers are switched off', async () => {
    expect(await diagnoseAfter('alter table entitlements disable trigger all')).toEqual(
      found(
        'HKL_SCHEMA_BROKEN',
        'entitlements_granted_by_fkey on entitlements is not enforced',
        'P4',
      ),
    )
  })

  it.each(appendOnlyTables)('sees that %s can be changed', async (table) => {
    const broken = found('HKL_SCHEMA_BROKEN', `${table} append-only is missing or disabled`, 'P8')
    const trigger = `${table}_append_only`
    expect(await diagnoseAfter(`alter table ${table} disable trigger ${trigger}`)).toEqual(broken)
    expect(await diagnoseAfter(`alter table ${table} enable replica trigger ${trigger}`)).toEqual(
      broken,
    )
    expect(await diagnoseAfter(`alter table ${table} enable always trigger ${trigger}`)).toEqual([])
    const half = `create trigger ${trigger} before delete on ${table} for each statement execute function refuse_change()`
    expect(await diagnoseAfter(`drop trigger ${trigger} on ${table}`, half)).toEqual(broken)
  })

  it.each([
    ['repairs', 'repairs_append_only'],
    ['evidence', 'evidence_append_only'],
    ['evidence', 'evidence_permanent'],
  ])('sees that what %s keeps is not kept by %s', async (table, trigger) => {
    expect(await diagnoseAfter(`alter table ${table} disable trigger ${trigger}`)).toEqual(
      found('HKL_SCHEMA_BROKEN', `trigger ${trigger} that keeps ${table} as it was written`, 'P8'),
    )
  })

  it('sees a table that a crash would empty', async () => {
    expect(await diagnoseAfter('alter table deliveries set unlogged')).toEqual(
      found('HKL_SCHEMA_BROKEN', 'deliveries is unlogged', 'P1'),
    )
  })
})

describe('the session', () => {
  it.each(['off', 'local'])(
    'may not commit with synchronous_commit %s, unless somebody says why',
    async (level) => {
      const unsafe = open(`-c synchronous_commit=${level}`)
      expect(await diagnose(unsafe)).toEqual(
        found('HKL_DATABASE_UNSAFE', `synchronous_commit is ${level} for this role`, 'P1'),
      )
      await expect(requireHealthy(unsafe, {})).rejects.toMatchObject({
        code: 'HKL_DATABASE_UNSAFE',
      })
      expect(await requireHealthy(unsafe, { acceptDurability: 'a battery' })).toEqual([
        expect.stringMatching(/synchronous_commit is .*accepted: a battery/),
      ])
    },
  )

  it('may not be without foreign keys and triggers, whatever somebody says', async () => {
    const unsafe = open('-c session_replication_role=replica')
    expect(await diagnose(unsafe)).toEqual(
      found('HKL_DATABASE_UNSAFE', 'session_replication_role is replica', 'P4'),
    )
    await expect(requireHealthy(unsafe, { acceptDurability: 'a battery' })).rejects.toMatchObject({
      code: 'HKL_DATABASE_UNSAFE',
    })
  })

  it('may not be read-only', async () => {
    expect(await diagnose(open('-c default_transaction_read_only=on'))).toEqual(
      found('HKL_DATABASE_UNSAFE', 'connect to the primary', 'all'),
    )
  })

  it('is told when a worker would not be the first to give way', async () => {
    const options = { lockTimeoutMs: 500 }
    expect(await diagnose(open('-c deadlock_timeout=400ms'), options)).toEqual(
      found('advice', 'set limits.lockTimeoutMs below 400'),
    )
    expect(await diagnose(open('-c deadlock_timeout=600ms'), options)).toEqual([])
  })

  it.each([
    ['-c log_parameter_max_length_on_error=-1', 'log_parameter_max_length_on_error is not 0'],
    [
      '-c log_statement=mod -c log_parameter_max_length=-1',
      'log_statement makes the server log statements with their parameters',
    ],
    [
      '-c log_min_duration_statement=1000 -c log_parameter_max_length=100',
      'log_min_duration_statement makes the server log',
    ],
  ])('is told where the log would show payloads: %s', async (settings, message) => {
    expect(await diagnose(open(settings))).toEqual(found('advice', message))
    expect(await requireHealthy(open(settings), {})).toEqual([expect.stringContaining('payloads')])
  })

  it('is told of a transaction that holds back vacuum', async () => {
    const holder = await database.pool().connect()
    await holder.query('begin isolation level repeatable read')
    await holder.query('select 1')
    try {
      expect(await diagnose(db, { heldHorizonSeconds: 0 })).toContainEqual(
        expect.objectContaining({
          code: 'advice',
          message: expect.stringMatching(
            /^a transaction of \w+ has been open for \d+ s holds back vacuum/,
          ),
        }),
      )
      expect(await diagnose(db)).toEqual([])
    } finally {
      await holder.query('rollback')
      holder.release()
    }
  })
})

describe('versions and environment', () => {
  const later = (runsFrom: number): string =>
    `insert into migrations (migration_id, name, runs_from) values (${newestMigration + 1}, 'later', ${runsFrom})`

  it('says what to do when the schema is missing, older, newer, or newer than this code can bear', async () => {
    expect(await diagnose(createDatabase(database.pool(), 'elsewhere'))).toEqual(
      found('HKL_SCHEMA_MISSING', 'run "hookledger migrate"', 'all'),
    )
    expect(await diagnoseAfter(later(0))).toEqual(found('advice', 'it works on'))
    expect(await diagnoseAfter(later(newestMigration + 1))).toEqual(
      found('HKL_SCHEMA_NEWER', 'deploy the newer version', 'all'),
    )
    expect(
      await diagnoseAfter(`delete from migrations where migration_id = ${newestMigration}`),
    ).toEqual(
      found(
        'HKL_SCHEMA_OLDER',
        `is at migration ${newestMigration - 1}, this code needs ${newestMigration}`,
        'all',
      ),
    )
  })

  it('refuses sources of the other environment, and a schema that does not say which it holds', async () => {
    expect(await diagnose(db, { environment: 'live' })).toEqual(
      found('HKL_CONFIG_ENVIRONMENT', 'holds the test environment', 'all'),
    )
    expect(await diagnoseAfter('delete from installation')).toEqual(
      found('HKL_SCHEMA_OLDER', 'which environment', 'all'),
    )
  })

  it('asks for day partitions before they run out, and for strays to be moved', async () => {
    const dropped = `do $$ declare part text; begin
      for part in select relname from pg_class where relnamespace = 'hookledger'::regnamespace and relkind = 'r' and relname ~ '^payloads_\\d' loop
        execute 'drop table ' || part;
      end loop; end $$`
    expect(
      (await diagnoseAfter(dropped, `insert into payloads values (1, current_date, 'x')`)).map(
        (each) => each.message,
      ),
    ).toEqual([
      '0 day partitions for payloads are left: run "hookledger prune"',
      'payloads lie in the default partition: run "hookledger prune"',
    ])
  })
})

describe('a database with another default collation', () => {
  const name = `t_icu_${randomBytes(5).toString('hex')}`
  beforeAll(() =>
    queryOnce(
      databaseUrl('postgres'),
      `create database ${name} template template0 locale_provider icu icu_locale 'en-US-u-kn-true' locale 'C'`,
    ),
  )
  afterAll(() => queryOnce(databaseUrl('postgres'), `drop database ${name} with (force)`))

  it('keeps every key byte-wise', async () => {
    await oncePool(databaseUrl(name), async (pool) => {
      const icu = createDatabase(pool, 'hookledger')
      await migrate(icu, { environment: 'test' })
      expect(await diagnose(icu)).toEqual([])
      const rows = await icu.query({
        text: `select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
          where c.relnamespace = 'hookledger'::regnamespace
            and exists (select from unnest(i.indcollation::oid[]) o(oid) where o.oid not in (0, 'pg_catalog."C"'::regcollation))`,
      })
      expect(rows).toEqual([])
    })
  })
})

describe('a start', () => {
  it('refuses a schema that is not there, or broken by an index that failed to be built', async () => {
    const empty = await createTestDatabase()
    try {
      const fresh = createDatabase(
        empty.pool({ options: '-c search_path=hookledger' }),
        'hookledger',
      )
      await expect(requireHealthy(fresh, {})).rejects.toMatchObject({ code: 'HKL_SCHEMA_MISSING' })
      await migrate(fresh, { environment: 'test' })
      await fresh.query({
        text: 'alter table inbox_events drop constraint inbox_events_identity_key',
      })
      await fresh.query({
        text: `insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes) values (1, 'a', 't', '', 0), (1, 'a', 't', '', 0)`,
      })
      const build =
        'create unique index concurrently inbox_events_identity_key on inbox_events (source_id, event_id)'
      await expect(fresh.query({ text: build })).rejects.toMatchObject({ code: '23505' })
      await expect(requireHealthy(fresh, { acceptDurability: 'a battery' })).rejects.toMatchObject({
        code: 'HKL_SCHEMA_BROKEN',
        message: expect.stringContaining(
          'inbox_events_identity_key on inbox_events is invalid and enforces nothing: P1 does not hold',
        ),
      })
      const hookledger = createHookledger({ ...shopOptions, database: empty.pool() })
      await expect(hookledger.start()).rejects.toMatchObject({ code: 'HKL_SCHEMA_BROKEN' })
      await hookledger.stop()
    } finally {
      await empty.drop()
    }
  })
})
