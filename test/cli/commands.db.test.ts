import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/test-database.ts'
import { LedgerDatabase, type LedgerFixture } from '../report/ledger-fixture.ts'
import { run, type Ran } from './memory-world.ts'

const config = join(import.meta.dirname, '../../examples/shop/hookledger.config.ts')
let database: LedgerDatabase
let fixture: LedgerFixture

beforeAll(async () => {
  database = await LedgerDatabase.create()
  fixture = database.committing()
  await fixture.cleanHistory()
  await fixture.put(await fixture.event({ id: 'evt_dead', type: 'refund.created' }), 'dead')
  await fixture.put(
    await fixture.event({ id: 'evt_gone', type: 'refund.updated', body: null }),
    'ignored',
  )
  await fixture.put(
    await fixture.event({ id: 'evt_wait', type: 'charge.dispute.closed' }),
    'deferred',
  )
  await fixture.finding({ kind: 'paid_twice', order: '1001', evidence: { payment: 'pi_2' } })
})

afterAll(() => database.drop())

function hookledger(...line: string[]): Promise<Ran> {
  return run([...line, '--config', config], {
    variables: { DATABASE_URL: database.url, USER: 'ada' },
  })
}

async function json<T = Record<string, unknown>>(...line: string[]): Promise<T> {
  const { code, stdout } = await hookledger(...line, '--json')
  expect(code).toBe(0)
  expect(stdout.trimEnd()).not.toContain('\n')
  return JSON.parse(stdout) as T
}

async function jsonRows(...line: string[]): Promise<Record<string, unknown>[]> {
  const { code, stdout } = await hookledger(...line, '--json')
  expect(code).toBe(0)
  return stdout
    .split('\n')
    .filter((row) => row !== '')
    .map((row) => JSON.parse(row) as Record<string, unknown>)
}

describe('hookledger status', () => {
  it('prints counts for a person and one object for a program', async () => {
    expect((await json('status'))['events']).toEqual({
      total: 6,
      pending: 0,
      deferred: 1,
      processed: 3,
      ignored: 1,
      dead: 1,
    })
    const { code, stdout, stderr } = await hookledger('status')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('6 events in 8 deliveries, 2 duplicates')
    expect(stdout).toContain('1 dead event: hookledger dead list')
  })
})

describe('hookledger explain', () => {
  it('tells the story of an order, and finds it by what belongs to it', async () => {
    const { stdout } = await hookledger('explain', '1001')
    expect(stdout).toContain('order 1001 of workflow license is paid, which entitles')
    expect(stdout).toContain('checkout.session.completed evt_paid: fulfilled, pending → paid')
    expect(stdout).toContain('because pending to paid: license')
    expect(stdout).toContain('finding paid_twice (high) of ops')
    for (const id of ['evt_intent', 'pi_1', 're_1']) {
      expect((await hookledger('explain', id)).stdout).toContain('of order 1001')
    }
  })

  it('says of a waiting event what for and until when', async () => {
    expect((await hookledger('explain', 'evt_wait')).stdout).toMatch(
      /waits for payment_intent pi_9 until \d{4}-/,
    )
  })

  it('says what to try when nothing knows the id', async () => {
    const { code, stdout, stderr } = await hookledger('explain', 'pi_nobody')
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain('nothing is known of "pi_nobody"')
    expect(stderr).toContain('hookledger status')
  })

  it('prints one object with the whole record', async () => {
    const found = await json<{ asked: object; records: { order: object; timeline: object[] }[] }>(
      'explain',
      '1001',
    )
    expect(found.asked).toMatchObject({ kind: 'order', id: '1001', order_ids: ['1001'] })
    expect(found.records[0]?.order).toMatchObject({ order_id: '1001', state: 'paid' })
    expect(found.records[0]?.timeline.length).toBeGreaterThan(6)
  })
})

describe('hookledger audit', () => {
  it('exits 0 while every promise holds, an open finding or not', async () => {
    const { code, stdout } = await hookledger('audit')
    expect(code).toBe(0)
    expect(stdout).toContain('P2 holds  one effect')
    expect(stdout).toContain('every promise holds')
  })

  it('exits 3 on a broken promise and names what broke it', async () => {
    const key = await fixture.event({ id: 'evt_stray', type: 'plan.updated' })
    const { code, stdout } = await hookledger('audit')
    expect(code).toBe(3)
    expect(stdout).toContain('P5 BROKEN')
    expect(stdout).toContain(`event:${key}: plan.updated evt_stray has no state and no decision`)
    const report = await hookledger('audit', '--json')
    expect(report.code).toBe(3)
    expect(JSON.parse(report.stdout)).toMatchObject({ holds: false })
    await fixture.put(key, 'ready')
    expect((await hookledger('audit')).code).toBe(0)
    await fixture.sql('delete from hookledger.inbox_ready')
    await fixture.put(key, 'ignored')
  })
})

describe('hookledger findings', () => {
  it('lists open ones, one JSON line each, and shows one by the beginning of its id', async () => {
    const rows = await jsonRows('findings')
    expect(rows.map((row) => row['kind']).sort()).toEqual(['dead_event', 'paid_twice'])
    const [paidTwice] = await jsonRows('findings', 'list', '--kind', 'paid_twice')
    const id = String(paidTwice?.['finding_id'])
    expect(await json('findings', 'show', id.slice(0, 8))).toMatchObject({
      finding_id: id,
      evidence: { payment: 'pi_2' },
    })
    expect((await hookledger('findings', 'show', id)).stdout).toContain('hookledger explain 1001')
    expect(await jsonRows('findings', 'list', '--overdue')).toEqual([])
    expect((await hookledger('findings', 'show', 'ffffff')).code).toBe(1)
  })
})

describe('hookledger dead and replay', () => {
  it('lists and shows dead events', async () => {
    expect((await jsonRows('dead')).map((row) => row['event_id'])).toEqual(['evt_dead'])
    const { stdout } = await hookledger('dead', 'show', 'evt_dead')
    expect(stdout).toContain('because it threw')
    expect(stdout).toContain('hookledger replay evt_dead')
    expect((await hookledger('dead', 'show', 'evt_paid')).code).toBe(1)
  })

  it('answers an event with a final decision with it', async () => {
    const { code, stdout } = await hookledger('replay', 'evt_paid')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^evt_paid has its final decision: fulfilled pending → paid about order 1001, because pending to paid: license \(decision \d+\); nothing changed\n$/,
    )
  })

  it('says "payload expired" and fails for an event whose body is gone', async () => {
    const { code, stderr } = await hookledger('replay', 'evt_gone')
    expect(code).toBe(1)
    expect(stderr).toContain('payload expired')
  })

  it('replays all dead ones, prints how many match first, and records who and why', async () => {
    const { code, stdout, stderr } = await hookledger(
      'replay',
      '--all-dead',
      '--reason',
      'the parser is fixed',
    )
    expect(stderr).toContain('matched: 1 dead; 3 events with a final decision will not be touched')
    expect(stdout).toContain('1 event pending again')
    expect(code).toBe(0)
    const acts = await fixture.sql('select act, actor, reason from hookledger.operator_acts')
    expect(acts).toEqual([{ act: 'replay', actor: 'ada', reason: 'the parser is fixed' }])
    expect(await json('replay', 'evt_dead')).toMatchObject({
      event_id: 'evt_dead',
      outcome: 'pending',
    })
  })

  it('replays what waits and what is ignored by its type, and fails for what has no body', async () => {
    const ignored = await fixture.event({ id: 'evt_ignored', type: 'plan.created' })
    await fixture.put(ignored, 'ignored')
    const types = ['--type', 'charge.dispute.closed', '--type', 'plan.created,refund.updated']
    const { code, stdout } = await hookledger('replay', ...types, '--json')
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({
      replayed: 2,
      expired: 1,
      matched: { deferred: 1, ignored: 2 },
    })
    expect(await json('dead', 'replay', '--type', 'plan.created')).toMatchObject({ replayed: 0 })
  })
})

describe('hookledger migrate, doctor and prune', () => {
  it('makes a schema, says what it would do first, and is content the second time', async () => {
    const empty = await createTestDatabase()
    try {
      const on = (...line: string[]): Promise<Ran> =>
        run([...line, '--config', config], { variables: { DATABASE_URL: empty.url } })
      const status = await on('status')
      expect([status.code, status.stderr]).toEqual([
        1,
        expect.stringContaining('run "hookledger migrate"'),
      ])
      expect((await on('doctor')).code).toBe(3)
      expect((await on('migrate', '--dry-run')).code).toBe(3)
      const printed = await on('migrate', '--print')
      expect(printed.stdout).toContain('create table "hookledger".inbox_events')
      const migrated = await on('migrate')
      expect(migrated.code).toBe(0)
      expect(migrated.stdout).toContain('0001_inbox')
      expect((await on('migrate', '--dry-run')).code).toBe(0)
      expect((await on('migrate')).stdout).toContain('was current')
      expect((await on('migrate', '--environment', 'live')).code).toBe(2)
      expect((await on('prune')).code).toBe(0)
      const doctor = await on('doctor')
      expect(doctor.stdout).toContain('nothing to do')
      expect(doctor.code).toBe(0)
    } finally {
      await empty.drop()
    }
  })

  it('prints the SQL of separate roles without making them', async () => {
    const { code, stdout } = await hookledger('migrate', '--roles', '--print')
    expect(code).toBe(0)
    expect(stdout).toContain('hookledger_receiver')
    expect(
      await fixture.sql(`select 1 from pg_roles where rolname = 'hookledger_receiver'`),
    ).toEqual([])
  })

  it('retires a version that was taken back, and names those there are for any other', async () => {
    await fixture.sql(
      `insert into hookledger.workflow_versions (workflow, version, event_types, effect_types) values ('license', 'v9', '{}', '{}')`,
    )
    expect(await json('migrate', '--retire', 'v9')).toEqual({
      version: 'v9',
      workflows: ['license'],
    })
    const other = await hookledger('migrate', '--retire', 'v8')
    expect([other.code, other.stderr]).toEqual([
      1,
      expect.stringContaining('no workflow has a version "v8"'),
    ])
  })
})
