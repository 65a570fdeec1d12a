import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LedgerDatabase, type LedgerFixture } from '../report/ledger-fixture.ts'
import { run, type Ran } from './memory-world.ts'

const config = join(import.meta.dirname, '../../examples/shop/hookledger.config.ts')
let database: LedgerDatabase
let fixture: LedgerFixture
let id: string

beforeAll(async () => {
  database = await LedgerDatabase.create()
  fixture = database.committing()
  await fixture.cleanHistory()
  id = await fixture.finding({ kind: 'paid_twice', order: '1001', evidence: { payment: 'pi_2' } })
})
afterAll(() => database.drop())

function hookledger(...line: string[]): Promise<Ran> {
  return run([...line, '--config', config], {
    variables: { DATABASE_URL: database.url, USER: 'ada' },
  })
}

const acts = (): Promise<object[]> =>
  fixture.sql(
    `select act, target, reason, actor, details from hookledger.operator_acts where target = 'finding:' || $1 order by act_id`,
    [id],
  )

describe('hookledger findings assign', () => {
  it('wants an owner and a reason', async () => {
    expect((await hookledger('findings', 'assign', id, '--reason', 'r')).code).toBe(2)
    expect((await hookledger('findings', 'assign', id, '--owner', 'bob')).code).toBe(2)
    for (const owner of ['bob\u001b[31m', 'bob\neve', 'x'.repeat(201)])
      expect(
        (await hookledger('findings', 'assign', id, '--owner', owner, '--reason', 'r')).code,
      ).toBe(2)
    expect(await acts()).toEqual([])
  })

  it('gives it to somebody, recorded with who and why', async () => {
    const line = ['findings', 'assign', id.slice(0, 8), '--owner', 'bob', '--reason', 'knows them']
    const { code, stdout } = await hookledger(...line)
    expect([code, stdout]).toEqual([0, `paid_twice ${id.slice(0, 8)} was ops's and is bob's\n`])
    expect(await acts()).toEqual([
      {
        act: 'findings assign',
        target: `finding:${id}`,
        reason: 'knows them',
        actor: 'ada',
        details: { from: 'ops', to: 'bob' },
      },
    ])
  })
})

describe('hookledger findings list --kind', () => {
  it('refuses a kind that there is not, with the nearest that there is', async () => {
    const { code, stdout, stderr } = await hookledger('findings', 'list', '--kind', 'paid_twise')
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain('no finding is of kind "paid_twise", did you mean "paid_twice"?')
  })

  it('takes a kind of the engine that nothing has, and one that only a workflow makes', async () => {
    const none = await hookledger('findings', 'list', '--kind', 'over_refunded')
    expect([none.code, none.stdout]).toEqual([0, 'no findings\n'])
    await fixture.finding({ kind: 'address_odd', order: '1001', evidence: {} })
    const own = await hookledger('findings', 'list', '--kind', 'address_odd')
    expect([own.code, own.stdout]).toEqual([0, expect.stringContaining('address_odd') as string])
  })

  it('says what is wrong with a limit below zero', async () => {
    const { code, stderr } = await hookledger('findings', 'list', '--limit', '-1')
    expect([code, stderr]).toEqual([
      2,
      'hookledger: --limit must be a positive whole number, not "-1" (HKL_CLI_USAGE)\n',
    ])
  })

  it('has one code for an id that no finding has, whichever command is asked', async () => {
    for (const line of [
      ['findings', 'show'],
      ['findings', 'assign', '--owner', 'bob', '--reason', 'r'],
      ['repair', 'plan'],
    ]) {
      const { code, stderr } = await hookledger(...line, 'ffffffff')
      expect([code, stderr]).toEqual([1, expect.stringContaining('HKL_FINDING_UNKNOWN') as string])
    }
  })
})

describe('hookledger findings dismiss', () => {
  it('wants a day to come, and a reason', async () => {
    const dismiss = (...more: string[]): Promise<Ran> =>
      hookledger('findings', 'dismiss', id, ...more)
    expect((await dismiss('--reason', 'r')).stderr).toContain('--until is missing')
    expect((await dismiss('--until', '2001-01-01', '--reason', 'r')).stderr).toContain('is past')
    expect((await dismiss('--until', 'soon', '--reason', 'r')).code).toBe(2)
    expect((await dismiss('--until', '2100-01-01')).code).toBe(2)
    for (const until of ['2027-02-31', '99999-01-01']) {
      const { code, stderr } = await dismiss('--until', until, '--reason', 'r')
      expect([code, stderr]).toEqual([
        2,
        expect.stringContaining('--until must be a time') as string,
      ])
    }
  })

  it('dismisses it until then, and says so where it is shown', async () => {
    const line = ['findings', 'dismiss', id, '--until', '2100-01-01', '--reason', 'a gift']
    const { code, stdout } = await hookledger(...line, '--actor', 'eve', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      finding_id: id,
      state: 'dismissed',
      until: '2100-01-01T00:00:00.000Z',
    })
    expect(await acts()).toMatchObject([{}, { act: 'findings dismiss', actor: 'eve' }])
    expect((await hookledger('findings', 'show', id)).stdout).toContain(
      'dismissed until 2100-01-01',
    )
    expect((await hookledger('findings')).stdout).not.toContain('paid_twice')
  })

  it('leaves one alone that is closed', async () => {
    const closed = await fixture.finding({ kind: 'underpaid', order: '1001', state: 'closed' })
    const line = ['findings', 'dismiss', closed, '--until', '2100-01-01', '--reason', 'r']
    const { code, stderr } = await hookledger(...line)
    expect(code).toBe(1)
    expect(stderr).toContain('HKL_FINDING_NOT_OPEN')
  })
})
