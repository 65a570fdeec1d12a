import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type pg from 'pg'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { run, type Ran } from './memory-world.ts'

const config = join(import.meta.dirname, '../../examples/shop/hookledger.config.ts')
let database: TestDatabase
let pool: pg.Pool
beforeAll(async () => {
  database = await createHookledgerDatabase()
  pool = database.pool({ options: '-c search_path=hookledger,public' })
})
afterAll(() => database.drop())

const hookledger = (...line: string[]): Promise<Ran> =>
  run([...line, '--config', config], { variables: { DATABASE_URL: database.url, USER: 'ada' } })
const rows = async (text: string): Promise<unknown[]> =>
  (await pool.query<Record<string, unknown>>(text)).rows
const why = ['--reason', 'they called']

describe('hookledger subject link', () => {
  it('links, says so when it is asked again, and replaces only where that is said', async () => {
    const link = (...more: string[]): Promise<Ran> =>
      hookledger('subject', 'link', 'cus_1', ...more, '--source', 'stripe', ...why)
    const first = await link('org:7')
    expect([first.code, first.stdout]).toEqual([0, expect.stringContaining('is org:7 from now on')])
    expect((await link('org:7')).stdout).toContain('nothing changed')
    const refused = await link('org:8')
    expect([refused.code, refused.stderr]).toEqual([
      expect.any(Number),
      expect.stringContaining('HKL_SUBJECT_LINKED'),
    ])
    expect(refused.code).not.toBe(0)
    const replaced = await link('org:8', '--replace', '--json')
    expect(JSON.parse(replaced.stdout)).toEqual({
      customer: 'cus_1',
      subject: 'org:8',
      source: 'stripe',
      outcome: 'linked',
    })
    expect(await rows(`select act, target, reason, actor from operator_acts`)).toEqual(
      Array.from({ length: 2 }, () => ({
        act: 'customer link',
        target: 'customer:cus_1',
        reason: 'they called',
        actor: 'ada',
      })),
    )
  })

  it.each([
    ['--reason is missing', ['link', 'cus_2', 'org:1', '--source', 'stripe']],
    ['did you mean "stripe"', ['link', 'cus_2', 'org:1', '--source', 'strip', ...why]],
    [
      'HKL_SUBJECT_INVALID',
      ['link', 'cus_2', 'org:1', '--source', 'stripe', '--account', 'a', ...why],
    ],
    ['--reason is missing', ['merge', 'user:1', 'user:2']],
    ['into itself', ['merge', 'user:1', 'user:1', ...why]],
  ])('is wrong use: %s', async (message, line) => {
    const { code, stderr } = await hookledger('subject', ...line)
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)])
    expect(await rows(`select 1 from customer_links where customer_id = 'cus_2'`)).toEqual([])
  })
})

describe('hookledger subject', () => {
  it('shows what it knows where neither of the two is said', async () => {
    const { code, stderr } = await hookledger('subject')
    expect([code, stderr]).toEqual([2, expect.stringMatching(/link[\s\S]*merge/)])
  })
})

describe('hookledger subject merge', () => {
  it('merges, and explain finds the orders of both under either name', async () => {
    for (const subject of ['user:1', 'user:2'])
      await hookledger('grant', subject, '--entitlement', 'pro', '--id', `for_${subject}`, ...why)
    const merged = await hookledger('subject', 'merge', 'user:1', 'user:2', ...why)
    expect([merged.code, merged.stdout]).toEqual([0, expect.stringContaining('user:2 from now on')])
    expect((await hookledger('subject', 'merge', 'user:1', 'user:2', ...why)).stdout).toContain(
      'nothing changed',
    )
    // the same grant again, by the name that its subject has now
    expect(
      (await hookledger('grant', 'user:2', '--entitlement', 'pro', '--id', 'for_user:1', ...why))
        .code,
    ).toBe(0)
    for (const asked of ['user:1', 'user:2']) {
      const { stdout } = await hookledger('explain', asked, '--json')
      const { asked: found } = JSON.parse(stdout) as {
        asked: { kind: string; order_ids: string[] }
      }
      expect([found.kind, [...found.order_ids].sort()]).toEqual([
        'subject',
        ['for_user:1', 'for_user:2'],
      ])
    }
    expect((await hookledger('explain', 'user:9')).stderr).toContain('HKL_NOT_FOUND')
  })

  it('names what the second one became, where it was merged itself', async () => {
    await hookledger('subject', 'merge', 'org:1', 'org:2', ...why)
    const merged = await hookledger('subject', 'merge', 'org:3', 'org:1', ...why)
    expect(merged.stdout).toContain('org:3 is org:2 from now on')
    expect(merged.stdout).toContain('is of org:2')
    const again = await hookledger('subject', 'merge', 'org:3', 'org:1', '--json', ...why)
    expect(JSON.parse(again.stdout)).toEqual({
      from: 'org:3',
      into: 'org:1',
      now: 'org:2',
      outcome: 'existed',
    })
  })

  it('is shown by explain with who and why, without any order too, and so are links', async () => {
    await hookledger('subject', 'link', 'cus_8', 'org:1', '--source', 'stripe', ...why)
    const merges = [
      'org:1 became org:2, said ada',
      'org:3 became org:2, said ada',
      'customer cus_8 of stripe:stripe:test is org:1, said ada',
    ]
    for (const asked of ['org:1', 'org:2', 'org:3', 'cus_8']) {
      const { code, stdout } = await hookledger('explain', asked)
      expect([asked, code]).toEqual([asked, 0])
      for (const line of merges) expect(stdout).toContain(line)
      expect(stdout).toContain(': they called')
    }
    const { stdout } = await hookledger('explain', 'cus_1', '--json')
    expect(JSON.parse(stdout)).toMatchObject({
      asked: { kind: 'customer' },
      // the one that was replaced, too
      subject_acts: [
        { target: 'customer:cus_1', subject: 'org:7', reason: 'they called', actor: 'ada' },
        { target: 'customer:cus_1', subject: 'org:8', reason: 'they called', actor: 'ada' },
      ],
    })
  })

  it('lets explain find the orders of a customer that is linked', async () => {
    await hookledger('subject', 'link', 'cus_7', 'user:1', '--source', 'stripe', ...why)
    const { stdout } = await hookledger('explain', 'cus_7', '--json')
    expect((JSON.parse(stdout) as { asked: object }).asked).toMatchObject({
      kind: 'customer',
      order_ids: expect.arrayContaining(['for_user:1', 'for_user:2']) as string[],
    })
  })
})
