import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type pg from 'pg'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import { writeTemporary } from '../support/temporary-file.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { run, type Ran } from './memory-world.ts'

const shopConfig = join(import.meta.dirname, '../../examples/shop/hookledger.config.ts')
const shadowConfig = join(import.meta.dirname, 'shadow.config.ts')
let database: TestDatabase
let pool: pg.Pool

beforeAll(async () => {
  database = await createHookledgerDatabase()
  pool = database.pool({ options: '-c search_path=hookledger,public' })
  await pool.query('create table app_gives (subject text, entitlement text)')
})
afterAll(() => database.drop())

function hookledger(...line: string[]): Promise<Ran> {
  return runWith(shopConfig, line)
}

function runWith(config: string, line: readonly string[]): Promise<Ran> {
  return run([...line, '--config', config], {
    variables: { DATABASE_URL: database.url, USER: 'ada' },
  })
}

async function rows(text: string, values: unknown[] = []): Promise<unknown[]> {
  return (await pool.query<Record<string, unknown>>(text, values)).rows
}

describe('hookledger grant', () => {
  it('gives away, says how to end it, and ends it', async () => {
    const line = ['grant', 'user:1', '--entitlement', 'pro,seats=3', '--reason', 'an outage']
    const { code, stdout } = await hookledger(...line, '--until', '2999-01-31T00:00:00Z')
    expect(code).toBe(0)
    const [, id = ''] = /grant (grant_[0-9a-f-]+)/.exec(stdout) ?? []
    expect(stdout).toContain(`hookledger grant --end ${id}`)
    expect(
      await rows(
        `select entitlement, quantity::int from current_entitlements where subject = 'user:1'`,
      ),
    ).toEqual([
      { entitlement: 'pro', quantity: 1 },
      { entitlement: 'seats', quantity: 3 },
    ])
    expect(
      await rows(`select act, reason, actor from operator_acts where target = $1`, [`order:${id}`]),
    ).toEqual([{ act: 'grant', reason: 'an outage', actor: 'ada' }])
    const ending = ['grant', '--end', id, '--reason', 'a mistake', '--actor', 'bob']
    expect((await hookledger(...ending)).stdout).toContain('is ended')
    const again = await hookledger(...ending, '--json')
    expect([again.code, JSON.parse(again.stdout)]).toEqual([
      0,
      { order_id: id, outcome: 'already_ended' },
    ])
    expect(await rows(`select 1 from current_entitlements where subject = 'user:1'`)).toEqual([])
  })

  it.each<[number, string, string[]]>([
    [2, '--reason is missing', ['user:2', '--entitlement', 'pro']],
    [2, 'SUBJECT is missing', ['--entitlement', 'pro', '--reason', 'x']],
    [2, '--entitlement is missing', ['user:2', '--reason', 'x']],
    [
      2,
      '--until must be a time',
      ['user:2', '--entitlement', 'pro', '--until', 'x', '--reason', 'x'],
    ],
    [2, 'nothing about another one', ['user:2', '--end', 'g', '--reason', 'x']],
    [2, 'HKL_GRANT_INVALID', ['--end', 'nothing', '--reason', 'x']],
    [
      2,
      'HKL_GRANT_INVALID',
      ['user:2', '--entitlement', 'pro', '--until', '2001-01-01', '--reason', 'x'],
    ],
    [
      2,
      '--until must be a time',
      ['user:2', '--entitlement', 'pro', '--until', 'in 2100', '--reason', 'x'],
    ],
    [
      2,
      'not "2027-02-31"',
      ['user:2', '--entitlement', 'pro', '--until', '2027-02-31', '--reason', 'x'],
    ],
    [
      2,
      '--reason is longer than 2000 characters',
      ['user:2', '--entitlement', 'pro', '--reason', 'x'.repeat(2001)],
    ],
    [
      2,
      '--actor contains a control character',
      ['user:2', '--entitlement', 'pro', '--reason', 'x', '--actor', 'ada\neve'],
    ],
    ...['seats=0', 'seats=-5', 'seats=5.5', 'seats=9999999999999999', 'seats=05', '=5', 'a='].map(
      (each): [number, string, string[]] => [
        2,
        `NAME=N with N a positive whole number, not "${each}"`,
        ['user:2', '--entitlement', each, '--reason', 'x'],
      ],
    ),
  ])('exits %i: %s', async (code, message, line) => {
    const ran = await hookledger('grant', ...line)
    expect(ran.code).toBe(code)
    expect(ran.stderr).toContain(message)
    expect(await rows(`select 1 from entitlements where subject = 'user:2'`)).toEqual([])
  })
})

describe('hookledger adopt', () => {
  const good = [
    { order: 'a-1', workflow: 'license', state: 'paid', effects: [{ type: 'license' }] },
    { event: 'evt_a', source: 'stripe', type: 'customer.updated' },
  ]
  const fileOf = (lines: readonly object[]): string =>
    writeTemporary(lines.map((line) => JSON.stringify(line)).join('\n'))

  it('checks without writing, adopts, and adopts nothing twice', async () => {
    const file = fileOf(good)
    const checked = await hookledger('adopt', file, '--check')
    expect([checked.code, checked.stdout]).toEqual([0, '1 order and 1 event can be adopted\n'])
    expect(await rows(`select 1 from orders where order_id = 'a-1'`)).toEqual([])
    const adopted = await hookledger('adopt', file, '--reason', 'moving in', '--json')
    expect([adopted.code, JSON.parse(adopted.stdout)]).toEqual([
      0,
      {
        orders: { adopted: 1, same: 0, differing: 0 },
        events: { adopted: 1, known: 0 },
        differing: [],
        complete: true,
      },
    ])
    const again = await hookledger('adopt', file, '--reason', 'moving in')
    expect([again.code, again.stdout]).toEqual([
      0,
      '0 orders adopted, 1 recorded already\n0 handled events adopted, 1 known already\n',
    ])
  })

  it('tells every bad line and writes nothing', async () => {
    const file = fileOf([{ ...good[0], order: 'a-2' }, { order: 'a-3' }, { event: '' }])
    const { code, stderr } = await hookledger('adopt', file, '--reason', 'moving in')
    expect(code).toBe(1)
    expect(stderr).toContain('line 2: it names no workflow')
    expect(stderr).toContain('line 3: the event id is empty')
    expect(stderr).toContain('2 lines of')
    expect(stderr).toContain('nothing was written (HKL_ADOPT_INVALID)')
    expect(await rows(`select 1 from orders where order_id = 'a-2'`)).toEqual([])
  })

  it('wants a reason, and a file that is there', async () => {
    expect((await hookledger('adopt', fileOf(good))).code).toBe(2)
    const missing = await hookledger('adopt', '/nonexistent/orders.jsonl', '--check')
    expect(missing.code).toBe(1)
    expect(missing.stderr).toContain('HKL_ADOPT_INVALID')
  })
})

describe('hookledger shadow', () => {
  beforeEach(() => {
    vi.resetModules()
    vi.unstubAllEnvs()
  })

  it('says that nothing is in shadow', async () => {
    const { code, stderr } = await hookledger('shadow', 'list')
    expect(code).toBe(2)
    expect(stderr).toContain('nothing is in shadow')
  })

  it('lists where the two differ with exit 3, shows it in the status, and ends', async () => {
    await pool.query(`insert into shadow_workflows (workflow) values ('license')`)
    await pool.query(
      `insert into workflow_states (workflow, state, entitles) values ('license', 'paid', true) on conflict do nothing`,
    )
    await pool.query(
      `insert into orders (order_id, workflow, state, updated_at) values ('s-1', 'license', 'paid', now() - interval '1 hour')`,
    )
    await pool.query(
      `with d as (insert into ledger_decisions (order_id, workflow, kind, final, to_state, reason, actor)
         values ('s-1', 'license', 'adopted', false, 'paid', 'x', 'x') returning decision_id)
       insert into entitlements (order_id, subject, entitlement, active, changed_by)
       select 's-1', 'user:9', 'pro', false, decision_id from d`,
    )
    vi.stubEnv('SHADOW', 'license')
    const shadow = (...line: string[]): Promise<Ran> => runWith(shadowConfig, ['shadow', ...line])
    const differs = await shadow('list')
    expect(differs.code).toBe(3)
    expect(differs.stdout).toMatch(/user:9 +pro +only here +quantity 1, valid_until none +- +s-1/)
    expect((await hookledger('status')).stdout).toMatch(
      /in shadow: license .*; 1 difference in 1 subject, compared/,
    )
    await pool.query(`insert into app_gives values ('user:9', 'pro')`)
    expect((await shadow('list', '--last')).code).toBe(3)
    const agree = await shadow('list')
    expect([agree.code, agree.stdout]).toEqual([0, 'no difference\n'])
    const early = await shadow('end', 'license', '--reason', 'agreed')
    expect([early.code, early.stderr]).toEqual([
      2,
      expect.stringContaining('out of shadow in the configuration first'),
    ])
    const end = ['shadow', 'end', 'license', '--reason', 'agreed']
    const ended = await hookledger(...end)
    expect([ended.code, ended.stdout]).toEqual([
      0,
      'license: 1 entitlement of 1 order counts from now on\n',
    ])
    expect(await rows(`select subject from current_entitlements where subject = 'user:9'`)).toEqual(
      [{ subject: 'user:9' }],
    )
    expect((await hookledger('shadow', 'end', 'credits', '--reason', 'x')).code).toBe(1)
    expect((await hookledger('shadow', 'end', 'license')).code).toBe(2)
    expect((await hookledger('status')).stdout).not.toContain('in shadow')
  })
})
