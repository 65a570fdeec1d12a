import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LedgerDatabase, type LedgerFixture } from '../report/ledger-fixture.ts'
import { outboxHistory, recordOperation, type OutboxHistory } from '../report/outbox-fixture.ts'
import { run, type Ran } from './memory-world.ts'

const config = join(import.meta.dirname, '../../examples/shop/hookledger.config.ts')
let database: LedgerDatabase
let fixture: LedgerFixture
let outbox: OutboxHistory

beforeAll(async () => {
  database = await LedgerDatabase.create()
  fixture = database.committing()
  await fixture.cleanHistory()
  outbox = await outboxHistory(fixture)
})

afterAll(() => database.drop())

function hookledger(...line: string[]): Promise<Ran> {
  return run([...line, '--config', config], {
    variables: { DATABASE_URL: database.url, USER: 'ada' },
  })
}

async function jsonRows(...line: string[]): Promise<Record<string, unknown>[]> {
  const { code, stdout } = await hookledger(...line, '--json')
  expect(code).toBe(0)
  return stdout
    .split('\n')
    .filter((row) => row !== '')
    .map((row) => JSON.parse(row) as Record<string, unknown>)
}

const stateOf = async (id: string): Promise<unknown> =>
  (await jsonRows('outbox', 'show', id))[0]?.['state']

describe('hookledger outbox list', () => {
  it('lists what is not finished, one JSON line each, and says where a person decides', async () => {
    const rows = await jsonRows('outbox')
    expect(rows.map((row) => row['state'])).toEqual(['pending', 'dead', 'uncertain', 'uncertain'])
    const { code, stdout, stderr } = await hookledger('outbox', 'list')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/dead0000 +gift to email +dead +1001 +1 .* a person decides/)
    expect(stdout).toContain('4 operations')
  })

  it('filters by state, destination and order', async () => {
    expect(await jsonRows('outbox', 'list', '--state', 'sent')).toHaveLength(2)
    expect(await jsonRows('outbox', 'list', '--state', 'all', '--order', '1001')).toHaveLength(6)
    expect(await jsonRows('outbox', 'list', '--destination', 'nowhere')).toEqual([])
    expect((await hookledger('outbox', 'list', '--state', 'lost')).code).toBe(2)
  })

  it('tells where to go on, and goes on there', async () => {
    const all = await jsonRows('outbox', 'list', '--state', 'all')
    const page = await hookledger('outbox', 'list', '--state', 'all', '--limit', '3')
    const [, after = ''] = /go on with --after (\d+)/.exec(page.stderr) ?? []
    const rest = await jsonRows('outbox', 'list', '--state', 'all', '--after', after)
    expect(rest.map((row) => row['operation_id'])).toEqual(
      all.slice(3).map((row) => row['operation_id']),
    )
    expect((await hookledger('outbox', 'list', '--after', 'x')).code).toBe(2)
  })
})

describe('hookledger outbox show', () => {
  it('tells the promise, the key, every attempt, and what happens next', async () => {
    const { code, stdout } = await hookledger('outbox', 'show', outbox.renewed)
    expect(code).toBe(0)
    expect(stdout).toContain('pickup to email is sent since')
    expect(stdout).toContain(`of effect shipment of order 1001, by decision ${outbox.decision}`)
    expect(stdout).toContain('promise: once')
    expect(stdout).toContain(`key: ${outbox.renewed}:2`)
    expect(stdout).toMatch(/call 1 .* uncertain .* timeout/)
    expect(stdout).toMatch(/lookup 2 .* absent/)
    expect(stdout).toMatch(/call 3 .* sent .* key 2/)
    expect(stdout).toContain('next: nothing: it is finished')
    expect(stdout).toContain('hookledger explain 1001')
  })

  it('says what a person has to do, and names the command', async () => {
    const { stdout } = await hookledger('outbox', 'show', 'a50000')
    expect(stdout).toContain('parcel to email is uncertain since')
    expect(stdout).toContain(`hookledger outbox resolve ${outbox.asking} --as sent`)
  })

  it('says "at least once" where the destination honors no id', async () => {
    const id = await recordOperation(fixture.db, {
      order: null,
      destination: 'fax',
      nextIn: 3600,
      promise: 'at_least_once',
    })
    const { stdout } = await hookledger('outbox', 'show', id)
    expect(stdout).toContain('promise: at least once: fax honors no id')
    expect(stdout).not.toContain('key:')
  })

  it('never shows what was sent or answered', async () => {
    for (const line of [
      ['outbox', 'show', outbox.sent],
      ['outbox', 'list', '--state', 'all'],
      ['explain', '1001'],
    ]) {
      const plain = await hookledger(...line)
      const json = await hookledger(...line, '--json')
      expect(plain.code + json.code).toBe(0)
      expect(plain.stdout + json.stdout).not.toMatch(/"to"|"secret"|bytea/)
    }
  })

  it('does not guess which operation is meant', async () => {
    const many = await hookledger('outbox', 'show', '5e0000')
    expect([many.code, many.stderr]).toEqual([1, expect.stringContaining('give more of the id')])
    const none = await hookledger('outbox', 'show', 'ffffff')
    expect([none.code, none.stderr]).toEqual([
      1,
      expect.stringContaining('outbox list --state all'),
    ])
  })
})

describe('hookledger explain and status', () => {
  it('shows operations in the story of their order, and finds it by one', async () => {
    const { stdout } = await hookledger('explain', outbox.sent)
    expect(stdout).toContain(`${outbox.sent} is an operation of order 1001`)
    expect(stdout).toContain('→ label to email: call 2, sent')
    expect(stdout).toMatch(/operation +label to email +sent, attempt 2: message m_1/)
    expect(stdout).toMatch(/gift to email is dead after status 422: correct the cause/)
  })

  it('tells what of each destination is open, and what to do about it', async () => {
    const { stdout } = await hookledger('status')
    expect(stdout).toMatch(/email +1 +0 +2 +1/)
    expect(stdout).toContain('2 operations that only a person can end: hookledger outbox list')
  })
})

describe('hookledger doctor', () => {
  it('names a destination that operations go to and nobody configures', async () => {
    const { code, stdout } = await hookledger('doctor')
    expect(code).toBe(3)
    expect(stdout).toContain(
      'look at destination "fax" is not configured, and operations to it are not sent (1)',
    )
    expect(stdout).not.toContain('destination "email"')
  })

  it('names a destination that is left alone since it fails', async () => {
    await fixture.sql(
      `insert into hookledger.outbox_destinations (destination, promise, window_ms, failures, closed_until)
       values ('email', 'once', 82800000, 20, now() + interval '1 minute')`,
    )
    const { stdout } = await hookledger('doctor')
    expect(stdout).toMatch(
      /destination "email" is left alone until .*: it failed 20 times in a row/,
    )
    await fixture.sql(`update hookledger.outbox_destinations set failures = 0, closed_until = null`)
    expect((await hookledger('doctor')).stdout).not.toContain('destination "email"')
  })
})

describe('hookledger prune', () => {
  it('drops the request of what ended past its window, and says so', async () => {
    const old = { state: 'discarded', order: null, promise: 'at_least_once' } as const
    const id = await recordOperation(fixture.db, old)
    await fixture.sql(
      `insert into hookledger.operator_acts (act, target, reason, actor) values ('outbox discard', 'operation:' || $1, 'old', 'ada')`,
      [id],
    )
    await fixture.sql(
      `update hookledger.outbox_operations set finished_at = now() - interval '1 hour' where operation_id = $1`,
      [id],
    )
    const { code, stdout } = await hookledger('prune')
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining('1 requests of finished operations'),
    ])
    expect((await hookledger('outbox', 'show', id)).stdout).toContain(', no longer kept')
    expect((await hookledger('outbox', 'show', outbox.sent)).stdout).not.toContain('no longer kept')
  })
})

describe('hookledger outbox retry, resolve and discard', () => {
  beforeAll(async () => {
    await fixture.sql(
      `insert into hookledger.outbox_destinations (destination, promise, window_ms) values ('email', 'once', 82800000)
       on conflict do nothing`,
    )
  })

  it('want a reason: without one nothing happens', async () => {
    for (const line of [
      ['retry', outbox.dead],
      ['resolve', outbox.dead, '--as', 'sent'],
      ['discard', outbox.dead],
      ['discard', outbox.dead, '--reason', ' '],
    ]) {
      const { code, stderr } = await hookledger('outbox', ...line)
      expect([code, stderr]).toEqual([2, expect.stringMatching(/--reason/)])
    }
    expect(await stateOf(outbox.dead)).toBe('dead')
  })

  it('send a dead operation again, close its finding, and record who and why', async () => {
    const open = `select state from hookledger.findings where evidence ->> 'operation' = '${outbox.dead}' and state = 'open'`
    expect(await fixture.sql(open)).toHaveLength(1)
    const { code, stdout } = await hookledger(
      'outbox',
      'retry',
      'dead00',
      '--reason',
      'address fixed',
    )
    expect([code, stdout]).toEqual([
      0,
      `${outbox.dead} to email was dead and is pending, due now: hookledger outbox show ${outbox.dead}\n`,
    ])
    expect(await stateOf(outbox.dead)).toBe('pending')
    const acts = await fixture.sql(
      `select act, actor, reason from hookledger.operator_acts where target = $1`,
      [`operation:${outbox.dead}`],
    )
    expect(acts).toEqual([{ act: 'outbox retry', actor: 'ada', reason: 'address fixed' }])
    expect((await hookledger('explain', '1001')).stdout).toContain(
      `» ada did outbox retry operation:${outbox.dead}`,
    )
  })

  it('leave alone what needs nobody', async () => {
    for (const id of [outbox.sent, outbox.app]) {
      const { code, stderr } = await hookledger('outbox', 'discard', id, '--reason', 'no more')
      expect([code, stderr]).toEqual([1, expect.stringContaining('HKL_OUTBOX_NOT_OPEN')])
    }
  })

  it("take a person's word for what became of an operation", async () => {
    const say = (as: string): Promise<Ran> =>
      hookledger(
        'outbox',
        'resolve',
        outbox.asking,
        '--as',
        as,
        '--reason',
        'seen',
        '--actor',
        'bob',
        '--json',
      )
    expect((await say('maybe')).code).toBe(2)
    const { code, stdout } = await say('sent')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      operation_id: outbox.asking,
      from: 'uncertain',
      to: 'sent',
      destination: 'email',
      order_id: '1001',
    })
    expect(await stateOf(outbox.asking)).toBe('sent')
    const again = await hookledger(
      'outbox',
      'resolve',
      outbox.uncertain,
      '--as',
      'not-done',
      '--reason',
      'lost',
    )
    expect(again.stdout).toContain('was uncertain and is pending, due now')
  })

  it('send all dead operations to a destination again, each with a record of its own', async () => {
    const dead = { state: 'dead', order: null, tries: [{ outcome: 'refused' }] } as const
    const ids = [await recordOperation(fixture.db, dead), await recordOperation(fixture.db, dead)]
    const line = ['outbox', 'retry', '--destination', 'email', '--reason', 'it is back']
    expect((await hookledger('outbox', 'retry', '--reason', 'it is back')).code).toBe(2)
    expect((await hookledger(...line)).stdout).toBe('2 operations to email tried again now\n')
    const acts = await fixture.sql(
      `select 1 from hookledger.operator_acts where target = any ($1) and reason = 'it is back'`,
      [ids.map((id) => `operation:${id}`)],
    )
    expect(acts).toHaveLength(2)
  })

  it('keep every promise of the audit', async () => {
    const { code, stdout } = await hookledger('audit')
    expect(stdout).toContain('P6 holds  one external operation')
    expect(code).toBe(0)
  })
})
