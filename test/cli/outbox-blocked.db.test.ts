import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { appOperationId } from '../../src/postgres/permanent-id.ts'
import { LedgerDatabase, type LedgerFixture } from '../report/ledger-fixture.ts'
import { act, recordOperation } from '../report/outbox-fixture.ts'
import { run, type Ran } from './memory-world.ts'

const config = join(import.meta.dirname, 'sequenced.config.ts')
const dead = 'dead0000-0000-5000-8000-00000000000a'
const behind = 'be000000-0000-5000-8000-00000000000b'
const last = '1a000000-0000-5000-8000-00000000000c'
const free = 'f4ee0000-0000-5000-8000-00000000000d'
const first = { fax: '' as string, email: '' as string }
let database: LedgerDatabase
let fixture: LedgerFixture

beforeAll(async () => {
  database = await LedgerDatabase.create()
  fixture = database.committing()
  await fixture.cleanHistory()
  await fixture.sql(
    `insert into hookledger.outbox_destinations (destination, promise, window_ms)
     values ('email', 'once', 82800000), ('fax', 'once', 82800000)`,
  )
  const error =
    'status 422: the address "nobody at example.com" is not one that mail can be sent to'
  const refused = { state: 'dead', error, tries: [{ outcome: 'refused', error }] } as const
  await recordOperation(fixture.db, { id: dead, name: 'gift', ...refused })
  await recordOperation(fixture.db, { id: behind, name: 'thanks', nextIn: 30 })
  await recordOperation(fixture.db, { id: last, name: 'survey', nextIn: 30 })
  await recordOperation(fixture.db, { id: free, destination: 'fax', name: 'copy', nextIn: 30 })
  const [installation] = await fixture.sql<{ installation_id: string }>(
    'select installation_id from hookledger.installation',
  )
  for (const destination of ['fax', 'email'] as const) {
    first[destination] = appOperationId(installation?.installation_id ?? '', destination, 'inv 7')
    const of = { id: first[destination], destination, name: 'inv 7', order: null, nextIn: 60 }
    await recordOperation(fixture.db, of)
  }
})

afterAll(() => database.drop())

function hookledger(...line: string[]): Promise<Ran> {
  return run([...line, '--config', config], {
    variables: { DATABASE_URL: database.url, USER: 'ada' },
  })
}

describe('an operation behind a dead one of its order, where they go in sequence', () => {
  it('is named as blocked, with what it waits for, by outbox list', async () => {
    const { stdout } = await hookledger('outbox', 'list')
    expect(stdout).toMatch(/be000000 +thanks to email +pending .* blocked by dead0000, dead/)
    expect(stdout).toMatch(/1a000000 +survey to email +pending .* blocked by dead0000, dead/)
    expect(stdout).toMatch(/f4ee0000 +copy to fax +pending .* in \d+ s/)
    const json = await hookledger('outbox', 'list', '--json')
    const rows = json.stdout.split('\n').filter((line) => line !== '')
    const row = rows.map((line) => JSON.parse(line)).find((each) => each.operation_id === behind)
    expect(row.blocked_by).toMatchObject({ operation_id: dead, state: 'dead', asks: true })
  })

  it('is named so by outbox show and explain, with the command that looks at what it waits for', async () => {
    const text =
      'blocked: email takes the operations of an order one after the other, and it waits for gift to email, ' +
      `which is dead and needs a person: hookledger outbox show ${dead}`
    expect((await hookledger('outbox', 'show', behind)).stdout).toContain(`next: ${text}`)
    expect((await hookledger('explain', '1001')).stdout).toContain(
      `thanks to email is pending: ${text}`,
    )
    expect((await hookledger('outbox', 'show', dead)).stdout).not.toContain('blocked')
    expect((await hookledger('outbox', 'show', free)).stdout).not.toContain('blocked')
  })
})

describe('hookledger outbox list', () => {
  it('has a column for the last error, shortened to what a line has room for', async () => {
    const { stdout } = await hookledger('outbox', 'list')
    expect(stdout).toMatch(/^id +operation .* last error +next$/m)
    expect(stdout).toMatch(/dead0000 .* status 422: the address "nobody at exam… +a person decides/)
  })
})

describe('hookledger outbox show', () => {
  it('shows what people did about the operation', async () => {
    await act(fixture, 'outbox retry', dead)
    const { stdout } = await hookledger('outbox', 'show', dead)
    expect(stdout).toMatch(/ada did outbox retry, because the carrier said so/)
    const { acts } = JSON.parse((await hookledger('outbox', 'show', dead, '--json')).stdout)
    expect(acts).toMatchObject([{ act: 'outbox retry', actor: 'ada' }])
    expect((await hookledger('outbox', 'show', behind)).stdout).not.toContain(' did ')
  })

  it('takes the key of outbox.add, and does not guess between destinations that know it', async () => {
    const both = await hookledger('outbox', 'show', 'inv 7')
    expect([both.code, both.stderr]).toEqual([1, expect.stringContaining(`${first.fax} to fax`)])
    await fixture.sql(`delete from hookledger.outbox_destinations where destination = 'fax'`)
    const { code, stdout } = await hookledger('outbox', 'show', 'inv 7')
    expect([code, stdout]).toEqual([0, expect.stringContaining('inv 7 to email is pending')])
    expect((await hookledger('outbox', 'show', 'inv 8')).code).toBe(1)
    await fixture.sql(
      `insert into hookledger.outbox_destinations (destination, promise, window_ms) values ('fax', 'once', 82800000)`,
    )
  })
})

describe('hookledger explain', () => {
  it('takes the key of outbox.add, and explains what each destination has under it', async () => {
    const { code, stdout } = await hookledger('explain', 'inv 7', '--json')
    expect(code).toBe(0)
    const found = JSON.parse(stdout)
    expect(found.asked).toMatchObject({ kind: 'operation', id: 'inv 7', order_ids: [] })
    expect(
      found.records[0].operations.map((each: { destination: string }) => each.destination),
    ).toEqual(['fax', 'email'])
  })
})

describe('hookledger outbox discard', () => {
  it('ends what nothing sends any more, since its destination is not configured', async () => {
    const mine = await hookledger('outbox', 'discard', behind, '--reason', 'moved')
    expect([mine.code, mine.stderr]).toEqual([1, expect.stringContaining('HKL_OUTBOX_NOT_OPEN')])
    const { code, stdout } = await hookledger('outbox', 'discard', free, '--reason', 'no fax now')
    expect([code, stdout]).toEqual([0, expect.stringContaining('was pending and is discarded')])
    // a destination that was never registered, or whose row is gone
    const gone = { destination: 'telex', order: null, state: 'dead', error: 'refused' } as const
    const id = await recordOperation(fixture.db, gone)
    expect((await hookledger('outbox', 'discard', id, '--reason', 'no telex')).code).toBe(0)
  })

  it('ends what a dispatcher left behind there, and leaves alone what one has in hand', async () => {
    const held = { destination: 'fax', order: null, state: 'sending', tries: [{}] } as const
    const id = await recordOperation(fixture.db, held)
    await fixture.sql(
      `update hookledger.outbox_destinations set under_way = 1 where destination = 'fax'`,
    )
    expect((await hookledger('outbox', 'discard', id, '--reason', 'no fax')).code).toBe(1)
    await fixture.sql(
      `update hookledger.outbox_operations set leased_until = now() - interval '1 second' where operation_id = $1`,
      [id],
    )
    expect((await hookledger('outbox', 'discard', id, '--reason', 'no fax')).code).toBe(0)
    expect(
      await fixture.sql(
        `select under_way from hookledger.outbox_destinations where destination = 'fax'`,
      ),
    ).toEqual([{ under_way: 0 }])
  })
})

describe('hookledger outbox retry --destination', () => {
  it('takes uncertain operations that wait for a person, too, and says which it cannot take', async () => {
    const asking = { order: null, state: 'uncertain', nextIn: null } as const
    const known = await recordOperation(fixture.db, { ...asking, tries: [{ at: 0 }] })
    const forgotten = await recordOperation(fixture.db, { ...asking, tries: [{ at: -90_000 }] })
    const goesOn = await recordOperation(fixture.db, { ...asking, nextIn: 60, tries: [{ at: 0 }] })
    const line = ['outbox', 'retry', '--destination', 'email', '--reason', 'it is back']
    const { code, stdout } = await hookledger(...line)
    expect(code).toBe(0)
    expect(stdout).toContain('2 operations to email tried again now')
    expect(stdout).toContain('1 may have been done, and email can no longer tell')
    const acts = await fixture.sql<{ target: string }>(
      `select target from hookledger.operator_acts where reason = 'it is back' order by act_id`,
    )
    const targets = acts.map((row) => row.target)
    expect(targets.sort()).toEqual([`operation:${known}`, `operation:${dead}`].sort())
    expect(targets).not.toContain(`operation:${forgotten}`)
    expect(targets).not.toContain(`operation:${goesOn}`)
  })
})
