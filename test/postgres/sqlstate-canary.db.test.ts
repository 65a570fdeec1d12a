/** Nothing that a delivery carries may come out of the database by way of an error. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, handle, type Hookledger } from 'hookledger'
import { toJson } from '../../src/core/json.ts'
import { createLog, logSignals } from '../../src/observe/log.ts'
import { partsOf } from '../../src/hookledger.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { signStripe } from '../../src/testing/sign.ts'
import {
  checkoutSessionCompleted,
  customerUpdated,
  stripeBody,
} from '../../src/testing/stripe-events.ts'
import { startPostgresForCrashTest, type CrashPostgres } from '../support/crash-postgres.ts'
import { shopOptions, shopSecret } from '../support/shop.ts'
import pgDriver from 'pg'

const canary = 'Cnry7Qx2vLm9'
let server: CrashPostgres
let pool: pg.Pool
let hookledger: Hookledger
const logged: string[] = []
/** What the shop's own SQL does with the customer's name. */
let ownSql = ''

beforeAll(async () => {
  server = await startPostgresForCrashTest()
  pool = new pgDriver.Pool({ connectionString: server.url, options: '-c search_path=hookledger' })
  pool.on('error', () => {})
  await migrate(createDatabase(pool, 'hookledger'), { environment: 'test' })
  await pool.query(
    'create table guarded (name text check (length(name) < 3), age integer not null)',
  )
  hookledger = createHookledger({
    ...shopOptions,
    workflows: [],
    handlers: [
      handle('stripe', 'customer.updated', async ({ event, db }) => {
        await db.query(ownSql, [event.data.object.name])
      }),
    ],
    database: pool,
  })
  const { signals } = partsOf(hookledger)
  logSignals(
    signals,
    createLog({ level: 'debug', pretty: false, color: false, write: (line) => logged.push(line) }),
  )
  await partsOf(hookledger).register()
})
afterAll(async () => {
  await hookledger.stop()
  await pool.end()
  await server.remove()
})

/** The canary as it would stand in a text, in a bytea, and in base64. */
const forms = [
  canary,
  Buffer.from(canary).toString('hex'),
  Buffer.from(canary).toString('base64').slice(0, 14),
]

function leaks(text: string): string[] {
  return forms.filter((form) => text.toLowerCase().includes(form.toLowerCase()))
}

/** Every row of every table of ours but those of bodies, as text. */
async function everyRow(): Promise<string> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'hookledger'::regnamespace and relkind in ('r', 'v') and relname !~ '^payloads' order by 1`,
  )
  const texts: string[] = []
  for (const { name } of tables) {
    const { rows } = await pool.query<{ row: string }>(`select t::text as row from ${name} t`)
    texts.push(...rows.map(({ row }) => `${name}: ${row}`))
  }
  return texts.join('\n')
}

const serverLog = (): string =>
  readFileSync(join(server.dataDir, 'postgres', 'postgres.log'), 'utf8')

async function deliver(event: object): Promise<string> {
  const body = stripeBody(event)
  expect(body).toContain(canary)
  return toJson(
    await hookledger.ingest({
      source: 'stripe',
      headers: signStripe(body, shopSecret),
      rawBody: Buffer.from(body),
    }),
  )
}

/** Looks everywhere; in the server's log from `since` on. */
async function expectNoLeak(answer: string, since = 0): Promise<void> {
  expect(leaks(answer)).toEqual([])
  expect(leaks(logged.join('\n'))).toEqual([])
  expect(leaks(await everyRow())).toEqual([])
  expect(leaks(serverLog().slice(since))).toEqual([])
}

describe('a delivery that the database refuses', () => {
  it.each([
    [
      'a check',
      'add constraint canary_check check (length(body) < 10)',
      'drop constraint canary_check',
    ],
    ['a column that may not be null', 'add column needed text not null', 'drop column needed'],
  ])('shows nothing of its body when it violates %s', async (_, change, undo) => {
    await pool.query(`alter table payloads ${change}`)
    const answer = await deliver(
      checkoutSessionCompleted({ order: canary, email: `${canary}@example.com` }),
    )
    expect(answer).toContain('"status":503')
    await expectNoLeak(answer)
    await pool.query(`alter table payloads ${undo}`)
    // the refusal was real: the server told of it
    expect(serverLog()).toMatch(/violates (check|not-null) constraint/)
  })
})

describe('own SQL that the database refuses', () => {
  it.each([
    ['a check', `insert into guarded values ($1, 1)`, '23514'],
    ['a column that may not be null', `insert into guarded values (left($1, 0), null)`, '23502'],
    ['a key', `insert into keyed select $1 from generate_series(1, 2)`, '23505'],
    ['the form of a number', 'select $1::text::integer', '22P02'],
    ['the form of JSON', 'select $1::text::jsonb', '22P02'],
  ])('shows nothing of its values when it violates %s', async (_, sql, state) => {
    await pool.query('create table if not exists keyed (name text primary key)')
    ownSql = sql
    const since = serverLog().length
    const event = customerUpdated({
      name: canary,
      id: `cus_${Buffer.from(sql).toString('hex').slice(-24)}`,
    } as never)
    const answer = await deliver(event)
    expect(answer).toContain('"status":200')
    await hookledger.runOnce({ budgetMs: 10_000 })
    const { rows } = await pool.query(
      `select 1 from webhook_inbox where last_error like 'SQLSTATE ${state}%'`,
    )
    expect(rows.length).toBeGreaterThan(0)
    // a value that cannot be converted is quoted by the server itself, whatever its settings
    await expectNoLeak(answer, state === '22P02' ? serverLog().length : since)
  })
})

describe('an error of the engine itself', () => {
  it('comes out of the pool without what it quotes, and with everything else', async () => {
    const db = createDatabase(pool, 'hookledger')
    const failures: unknown[] = []
    for (const text of [
      'select $1::text::integer',
      'select $1::text::jsonb',
      'insert into guarded values ($1, 1)',
      'insert into guarded values (null, length($1) * null)',
    ]) {
      await db.query({ text, values: [canary] }).catch((error: unknown) => failures.push(error))
      await db
        .transaction((tx) => tx.query({ text, values: [canary] }))
        .catch((error: unknown) => failures.push(error))
    }
    expect(failures).toHaveLength(8)
    for (const failure of failures) {
      const all = Object.getOwnPropertyNames(failure).map((name) =>
        String((failure as Record<string, unknown>)[name]),
      )
      expect(leaks(all.join('\n'))).toEqual([])
    }
    expect(failures[4]).toMatchObject({
      code: '23514',
      constraint: 'guarded_name_check',
      table: 'guarded',
      message: expect.stringContaining('violates check constraint'),
    })
    expect(failures[0]).toMatchObject({
      code: '22P02',
      message: 'a value was refused (it is left out here)',
    })
  })
})

describe('a reading whose record is taken back', () => {
  it('still stands in the log of the server', async () => {
    await deliver(checkoutSessionCompleted({ order: canary }))
    const { rows } = await pool.query<{ event_key: string }>(
      'select max(event_key) as event_key from inbox_events',
    )
    const client = await pool.connect()
    await client.query('begin')
    await client.query(`select read_payload($1, 'a complaint', E'ada\\nFATAL: forged line')`, [
      rows[0]?.event_key,
    ])
    await client.query('rollback')
    client.release()
    expect(serverLog()).toContain(
      `reads the payload of event ${rows[0]?.event_key} as "ada\\nFATAL: forged line", reading 1`,
    )
    expect((await pool.query('select 1 from payload_reads')).rows).toEqual([])
  })
})
