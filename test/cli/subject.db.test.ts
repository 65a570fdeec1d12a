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

  it('lets explain find the orders of a customer that is linked', async () => {
    await hookledger('subject', 'link', 'cus_7', 'user:1', '--source', 'stripe', ...why)
    const { stdout } = await hookledger('explain', 'cus_7', '--json')
    expect((JSON.parse(stdout) as { asked: object }).asked).toMatchObject({
      kind: 'customer',
      order_ids: expect.arrayContaining(['for_user:1', 'for_user:2']) as string[],
    })
  })
})
