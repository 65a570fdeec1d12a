import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { diagnose } from '../../src/postgres/doctor.ts'
import {
  installation,
  migrate,
  newestMigration,
  pendingMigrations,
  schemaVersion,
} from '../../src/postgres/migrate.ts'
import { migrations } from '../../src/postgres/migrations.generated.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { makeRoles, roleName } from '../../src/postgres/roles.ts'
import type { Database } from '../../src/postgres/executor.ts'
import { queryOnce } from '../support/once-query.ts'
import { createTestDatabase, databaseUrl, type TestDatabase } from '../support/test-database.ts'
import { createRoleBench, dropRoles } from './role-logins.ts'

let database: TestDatabase
beforeEach(async () => {
  database = await createTestDatabase()
})
afterEach(() => database.drop())

const open = (schemaName = 'hookledger'): Database =>
  createDatabase(database.pool({ max: 2 }), schemaName)
const names = migrations.map((each) => each.name)

/** What a schema consists of, without its name and what differs from one installation to the next. */
async function catalog(db: Database): Promise<string[]> {
  const rows = await db.query<{ thing: string }>({
    text: `select thing from (
        select c.relkind::text || ' ' || c.relname || ' ' || coalesce(string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull, ', ' order by a.attnum), '') as thing
        from pg_class c left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where c.relnamespace = $1::text::regnamespace group by c.oid, c.relname, c.relkind
        union all select 'constraint ' || conname || ' ' || pg_get_constraintdef(oid) from pg_constraint where connamespace = $1::text::regnamespace
        union all select 'index ' || indexdef from pg_indexes where schemaname = $1::text
        union all select 'function ' || pg_get_functiondef(oid) from pg_proc where pronamespace = $1::text::regnamespace
        union all select 'trigger ' || tgname from pg_trigger t join pg_class c on c.oid = tgrelid where relnamespace = $1::text::regnamespace and not tgisinternal
      ) t order by 1`,
    values: [db.schemaName],
  })
  return rows.map(({ thing }) =>
    thing
      .replaceAll(new RegExp(`\\b${db.schemaName}\\b`, 'g'), 'SCHEMA')
      .replaceAll('"SCHEMA"', 'SCHEMA'),
  )
}

/** Takes back what the migrations after the fourth made. */
const undoneAfterFourth = [
  'alter table ledger_decisions drop constraint ledger_decisions_entitles_check',
  'drop function if exists claimed_events, locked_orders, leased_requests, unpark_orders, dispatch_round, read_operation, is_request_intact, drop_requests, redecidable_payload, newest_answers, read_evidence, is_evidence_intact, drop_evidence, gathered_payloads cascade',
  `do $$ declare name text; begin
     for name in select relname from pg_class
       where relnamespace = current_schema::regnamespace and relkind = 'r'
         and relname ~ '^(outbox|operation_reads|reconciliation_|repairs|shadow_|evidence|looked_at|fetch|inbox_gathers|customer_links|subject_merges|entitlement_(watch|ends|changes)|processes|console_|bulk_)'
     loop execute format('drop table %I cascade', name); end loop;
   end $$`,
  'drop sequence if exists outbox_lease_seq, entitlement_telling_seq',
  'drop index if exists entitlements_until_idx',
  'alter table payload_reads drop column evidence_id, alter column event_key set not null',
  'drop function if exists refuse_repair_change, refuse_all_but_texts, is_telling, word_pattern, erased_text, erased_json, holds_word, erasure_scope, erasure_unfinished, give_up_events, erase_names, erase_subject, console_secret, refuse_bulk_change cascade',
  'drop table if exists erased_events, erasures cascade',
  'drop index if exists deliveries_delivery_idx, orders_opened_order_idx, findings_seen_idx, fulfillment_effects_decision_idx, ledger_payments_decision_idx, fulfillment_effects_reference_idx, findings_unowned_idx, inbox_events_received_idx, deliveries_received_idx',
  'alter table inbox_events drop column if exists trace',
  'drop index if exists ledger_decisions_decided_idx, ledger_payments_recorded_idx, orders_opened_idx, findings_kind_idx, findings_dismissed_idx',
  `alter table findings drop constraint if exists findings_dismissed_check, drop column if exists source_id,
     drop column if exists reference, drop column if exists dismissed_until, drop column if exists dismissed_evidence,
     drop column if exists closed_because, drop column if exists escalations`,
]

describe('migrate', () => {
  it('applies each migration once when eight start at once', async () => {
    const reports = await Promise.all(
      Array.from({ length: 8 }, () => migrate(open(), { environment: 'test' })),
    )
    expect(reports.flatMap((report) => report.applied).sort()).toEqual(names)
    expect(new Set(reports.map((report) => report.version))).toEqual(new Set([newestMigration]))
    const ids = await Promise.all(reports.map(async () => (await installation(open())).id))
    expect(new Set(ids).size).toBe(1)
    expect(await diagnose(open())).toEqual([])
  })

  it('fixes the environment for ever, by the first of those who start', async () => {
    const outcomes = await Promise.allSettled(
      (['live', 'test'] as const).map((environment) => migrate(open(), { environment })),
    )
    const refused = outcomes.filter((each) => each.status === 'rejected')
    expect(refused).toHaveLength(1)
    expect(refused[0]?.reason).toMatchObject({
      code: 'HKL_CONFIG_ENVIRONMENT',
      message: expect.stringContaining('HOOKLEDGER_SCHEMA'),
    })
  })

  it('keeps two schemas of one database apart, live and test', async () => {
    const [live, test] = [open('shop_live'), open('user')]
    await migrate(live, { environment: 'live' })
    await migrate(test, { environment: 'test' })
    const [a, b] = [await installation(live), await installation(test)]
    expect([a.environment, b.environment]).toEqual(['live', 'test'])
    expect(a.id).not.toBe(b.id)
    expect(await catalog(live)).toEqual(await catalog(test))
    expect((await catalog(live)).filter((thing) => thing.includes('hookledger.'))).toEqual([])
    await live.query({
      text: `insert into shop_live.sources (provider, provider_account, environment) values ('stripe', 'a', 'live')`,
    })
    expect(await test.query({ text: 'select 1 from "user".sources' })).toEqual([])
    expect([
      await diagnose(live, { environment: 'live' }),
      await diagnose(test, { environment: 'test' }),
    ]).toEqual([[], []])
  })

  it('is done again without touching anything', async () => {
    const db = open()
    await migrate(db, { environment: 'test', partitionsAheadDays: 3 })
    const before = await catalog(db)
    expect(await migrate(db, { environment: 'test', partitionsAheadDays: 3 })).toMatchObject({
      applied: [],
      version: newestMigration,
    })
    expect(await catalog(db)).toEqual(before)
  })

  it('says which promise rests on good will where one login does everything', async () => {
    const { advice } = await migrate(open(), { environment: 'test' })
    expect(advice).toEqual([expect.stringMatching(/^P9 .* superuser.*migrate --roles/)])
    await database.pool().query('grant select on hookledger.payloads_default to public')
    expect((await migrate(open(), { environment: 'test' })).advice).toContainEqual(
      expect.stringContaining('P9 does not hold for public'),
    )
  })

  it('leaves nothing half applied when its connection breaks before a statement, and goes on from there', async () => {
    const client = pg.Client.prototype as unknown as {
      query: (...args: unknown[]) => unknown
      connection: { stream: { destroy(): void } }
    }
    const original = client.query
    let left = 0
    client.query = function (this: typeof client, ...args: unknown[]) {
      if (left-- === 0) this.connection.stream.destroy()
      return original.apply(this, args)
    }
    try {
      let broken = 0
      // every statement of the first two migrations, and every third after them
      for (let step = 0; step < 300; step += step < 24 ? 1 : 3) {
        const db = open(`step_${step}`)
        left = step
        const failed = await migrate(db, { environment: 'test', partitionsAheadDays: 0 }).then(
          () => false,
          () => true,
        )
        if (!failed && left >= 0) break
        if (failed) broken++
        left = -1
        const version = await schemaVersion(db)
        // what is recorded is all there, and nothing more
        const tables = await db.query<{ name: string }>({
          text: `select relname as name from pg_class where relnamespace = to_regnamespace($1) and relkind in ('r', 'p')`,
          values: [db.schemaName],
        })
        expect(tables.some(({ name }) => name === 'inbox_events')).toBe(version >= 1)
        expect(tables.some(({ name }) => name === 'ledger_decisions')).toBe(version >= 2)
        expect(tables.some(({ name }) => name === 'retention')).toBe(version >= 4)
        await migrate(db, { environment: 'test', partitionsAheadDays: 0 })
        expect((await diagnose(db)).filter((each) => each.breaks !== undefined)).toEqual([])
      }
      expect(broken).toBeGreaterThan(30)
    } finally {
      client.query = original
    }
  }, 120_000)
})

describe('migrating beside running processes', () => {
  it('stalls no insert behind a reader, and goes on once the reader has left', async () => {
    const db = open()
    const pool = database.pool()
    for (const { sql } of (await pendingMigrations(db)).slice(0, 4)) await pool.query(sql)
    const reader = await pool.connect()
    await reader.query('begin')
    await reader.query('select count(*) from hookledger.ledger_decisions')
    let done = false
    const migrating = migrate(db, { environment: 'test' }).finally(() => {
      done = true
    })
    let inserted = 0
    for (const until = Date.now() + 1500; Date.now() < until; inserted++) {
      await pool.query(
        `insert into hookledger.ledger_decisions (kind, final, reason, actor) values ('skipped', false, 'r', 'a')`,
      )
      await sleep(10)
    }
    // each of them came through while the reader was still there and the migration still waited
    expect(done).toBe(false)
    expect(inserted).toBeGreaterThan(0)
    await reader.query('commit')
    reader.release()
    expect((await migrating).applied).toContain('0005_guards')
  })

  it('makes new things the owner’s, with the rights of the roles on them', async () => {
    const bench = await createRoleBench()
    try {
      const owner = roleName(bench.schemaName, 'owner')
      // as it was after the fourth: what the later ones made is not there
      for (const statement of undoneAfterFourth) await bench.admin.query(statement)
      await bench.admin.query(
        `revoke insert on orders from ${roleName(bench.schemaName, 'worker')}`,
      )
      await bench.admin.query('drop table migrations')
      await bench.admin
        .query(`create table migrations (migration_id integer not null, name text not null, runs_from integer not null default 0,
        applied_at timestamptz not null default now(), constraint migrations_pkey primary key (migration_id))`)
      await bench.admin.query(
        `insert into migrations (migration_id, name) select n, 'x' from generate_series(1, 4) n`,
      )
      await bench.admin.query(`alter table migrations owner to ${owner}`)
      expect(
        (await migrate(bench.db, { environment: 'test', partitionsAheadDays: 20 })).applied,
      ).toEqual(names.slice(4))
      const { rows } = await bench.admin.query(
        `select relname from pg_class where relnamespace = $1::regnamespace and relowner <> $2::regrole`,
        [bench.schemaName, owner],
      )
      expect(rows).toEqual([])
      const { rows: rights } = await bench.admin.query(
        `select has_table_privilege($1, 'orders', 'insert') as orders, has_table_privilege($1, 'migrations', 'select') as migrations`,
        [roleName(bench.schemaName, 'worker')],
      )
      expect(rights).toEqual([{ orders: true, migrations: true }])
    } finally {
      await bench.drop()
    }
  })

  it('can be done by a login that is no superuser and may make no schema, once it has been given one', async () => {
    const name = `m_${process.pid}_${Date.now().toString(36)}`
    await queryOnce(databaseUrl('postgres'), `create role ${name} login createrole password 'x'`)
    try {
      await database.pool().query(`create schema ${name} authorization ${name}`)
      const url = new URL(database.url)
      url.username = name
      url.password = 'x'
      const db = createDatabase(database.pool({ connectionString: url.href }), name)
      const { advice } = await migrate(db, { environment: 'test' })
      expect(advice).toEqual([expect.stringContaining('owns the tables')])
      expect(await diagnose(db)).toEqual([])
      // handing a schema over takes the right to make schemas: said in one line
      await expect(makeRoles(db)).rejects.toMatchObject({
        code: 'HKL_CONFIG_INVALID',
        message: expect.stringContaining('--roles --print'),
      })
      await database.pool().query(`grant create on database ${database.name} to ${name}`)
      await makeRoles(db)
      expect((await migrate(db, { environment: 'test' })).applied).toEqual([])
    } finally {
      await database.drop()
      await dropRoles(name)
      await queryOnce(databaseUrl('postgres'), `drop role ${name}`)
    }
  })
})

describe('pendingMigrations', () => {
  it('is what somebody can run by hand, with the same result', async () => {
    const [printed, migrated] = [open('printed'), open('migrated')]
    const pool = database.pool()
    const pending = await pendingMigrations(printed, 'live')
    expect(pending.map((each) => each.name)).toEqual(names)
    for (const { sql } of pending) await pool.query(sql)
    await migrate(migrated, { environment: 'live', partitionsAheadDays: 8 })
    expect(await pendingMigrations(printed, 'live')).toEqual([])
    expect(await migrate(printed, { environment: 'live', partitionsAheadDays: 8 })).toMatchObject({
      applied: [],
    })
    expect(await catalog(printed)).toEqual(await catalog(migrated))
  })

  it('leaves out what has been applied', async () => {
    const db = open()
    for (const { sql } of (await pendingMigrations(db)).slice(0, 2))
      await database.pool().query(sql)
    expect((await pendingMigrations(db)).map((each) => each.name)).toEqual(names.slice(2))
  })
})

describe('the embedded migrations', () => {
  it('are the files', () => {
    const directory = join(import.meta.dirname, '../../migrations')
    const files = readdirSync(directory)
      .filter((file) => file.endsWith('.sql'))
      .sort()
    expect(migrations.map(({ id, name, sql }) => ({ id, file: `${name}.sql`, sql }))).toEqual(
      files.map((file) => ({
        id: Number.parseInt(file, 10),
        file,
        sql: readFileSync(join(directory, file), 'utf8'),
      })),
    )
    expect(migrations.map(({ id }) => id)).toEqual(migrations.map((_, index) => index + 1))
  })
})
