import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
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
const why = ['--reason', 'ticket 12']

it('shows a plan that changes nothing, and erases once the subject is typed again', async () => {
  await hookledger('grant', 'user:eve', '--entitlement', 'pro', '--id', 'gift-1', ...why)
  await pool.query('delete from entitlement_changes')
  const plan = await hookledger('erase', 'user:eve')
  expect([plan.code, plan.stderr]).toEqual([0, ''])
  expect(plan.stdout).toContain('1 order')
  expect(plan.stdout).toContain('still active: pro of order gift-1')
  expect(plan.stdout).toContain('nothing was changed; to do it: hookledger erase user:eve --apply')
  expect((await pool.query('select from erasures')).rowCount).toBe(0)
  const done = await hookledger('erase', 'user:eve', '--apply', '--confirm', 'user:eve', ...why)
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect(done.stdout).toMatch(/the subject is erased:[0-9a-f-]{36} now, in 1 order/)
  expect((await pool.query(`select from orders where subject = 'user:eve'`)).rowCount).toBe(0)
  expect((await pool.query(`select actor from operator_acts where act = 'erase'`)).rows).toEqual([
    { actor: 'ada' },
  ])
  expect((await hookledger('audit')).code).toBe(0)
})

it.each([
  ['--reason is missing', ['user:1', '--apply', '--confirm', 'user:1'], 2],
  ['--confirm must be the subject', ['user:1', '--apply', '--confirm', 'user:2', ...why], 2],
  ['HKL_NOT_FOUND', ['user:nobody'], 1],
  ['HKL_ERASE_INVALID', ['user:1', '--also', 'ada'], 2],
])('refuses with %s', async (says, line, code) => {
  const refused = await hookledger('erase', ...line)
  expect(refused.stderr).toContain(says)
  expect(refused.code).toBe(code)
})
