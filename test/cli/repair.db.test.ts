import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRepairBench, type RepairBench } from '../support/repair-bench.ts'
import { run, type Ran } from './memory-world.ts'

const config = join(import.meta.dirname, 'repair.config.ts')
let bench: RepairBench
let directory: string

beforeAll(async () => {
  bench = await createRepairBench()
  directory = mkdtempSync(join(tmpdir(), 'hookledger-repair-'))
})
afterAll(async () => {
  rmSync(directory, { recursive: true, force: true })
  await bench.close()
})

/** Runs a command against the same database and the same provider. */
async function hookledger(...line: string[]): Promise<Ran> {
  process.env['REPAIR_PAYMENTS'] = JSON.stringify(Object.fromEntries(bench.provider.payments))
  return run([...line, '--config', config], {
    variables: { DATABASE_URL: bench.database.url, USER: 'ada' },
  })
}

async function refundedThere(order: string): Promise<{ id: string; payment: string }> {
  const payment = await bench.buy(order)
  bench.provider.refund(payment)
  return { id: await bench.find({ kind: 'refunded_there', order, payment }), payment }
}

describe('hookledger repair plan', () => {
  it('says what would change, from which to which, what is sent, and how to do it', async () => {
    const { id, payment } = await refundedThere('p1')
    const { code, stdout, stderr } = await hookledger('repair', 'plan', id.slice(0, 8))
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('refunded_there (contradiction, high) of operations, open')
    expect(stdout).toMatch(new RegExp(`the provider says of payment_intent ${payment}: payment`))
    expect(stdout).toContain('order p1 goes from paid to refunded')
    expect(stdout).toContain('records effect refund')
    expect(stdout).toContain('revokes email:p1@example.com pro')
    expect(stdout).toContain('the order then entitles to nothing')
    expect(stdout).toContain('sends refund to email, because of effect refund')
    expect(stdout).toContain('--choice keep')
    expect(stdout).toContain(`hookledger repair apply ${id.slice(0, 8)} --reason`)
    expect(await bench.order('p1')).toMatchObject({ state: 'paid' })
    expect(await bench.finding(id)).toMatchObject({ state: 'open', repairs: 0 })
  })

  it('lists the choices a line each where somebody must choose, and exits 2', async () => {
    const payment = await bench.buy('p2')
    const id = await bench.find({ kind: 'paid_twice', order: 'p2', evidence: { payment } })
    const { code, stdout, stderr } = await hookledger('repair', 'plan', id, '--quiet')
    expect(code).toBe(2)
    const lines = stdout.split('\n')
    expect(lines).toEqual(
      expect.arrayContaining([
        expect.stringMatching(new RegExp(`^ +--choice refund:${payment} `)) as string,
        expect.stringMatching(/^ +--choice compensate:license /) as string,
        expect.stringMatching(/^ +--to STATE /) as string,
        expect.stringMatching(/^ +--choice keep /) as string,
      ]),
    )
    expect(stderr).toContain('HKL_REPAIR_CHOICE')
  })

  it('prints the choices as one JSON object for a program', async () => {
    const payment = await bench.buy('p3')
    const id = await bench.find({ kind: 'paid_twice', order: 'p3', evidence: { payment } })
    const { code, stdout } = await hookledger('repair', 'plan', id, '--json')
    expect(code).toBe(2)
    const { choices, ...rest } = JSON.parse(stdout) as { choices: { choice: string }[] }
    expect(rest).toMatchObject({ finding_id: id, plan: null })
    expect(choices.map(({ choice }) => choice)).toEqual([
      `refund:${payment}`,
      ...choices.filter(({ choice }) => choice.startsWith('compensate:')).map((x) => x.choice),
      'target',
      'keep',
    ])
  })

  it('knows no finding by less than six characters, or by none of its ids', async () => {
    expect((await hookledger('repair', 'plan', 'abc')).code).toBe(2)
    const { code, stderr } = await hookledger('repair', 'plan', 'ffffffffffff')
    expect(code).toBe(1)
    expect(stderr).toContain('HKL_FINDING_UNKNOWN')
  })
})

describe('hookledger repair apply', () => {
  it('repairs by a fresh plan, asks the provider again, and says so', async () => {
    const { id } = await refundedThere('q1')
    const { code, stdout } = await hookledger('repair', 'apply', id, '--reason', 'a refund by hand')
    expect(code).toBe(0)
    expect(stdout).toContain('repaired refunded_there by provider: order q1 paid → refunded')
    expect(stdout).toContain('both sides agree, and the finding is closed')
    expect(
      await bench.rows(`select reason, actor from repairs where finding_id = $1`, [id]),
    ).toEqual([{ reason: 'a refund by hand', actor: 'ada' }])
    const again = await hookledger('repair', 'apply', id, '--reason', 'twice')
    expect(again.code).toBe(1)
    expect(again.stderr).toContain('HKL_FINDING_NOT_OPEN')
  })

  it('applies exactly the plan of a file, once', async () => {
    const { id } = await refundedThere('q2')
    const file = join(directory, 'q2.json')
    const planned = await hookledger('repair', 'plan', id, '--json')
    writeFileSync(file, planned.stdout)
    const { plan_id: planId } = JSON.parse(planned.stdout) as { plan_id: string }
    const line = ['repair', 'apply', id, '--plan', file, '--reason', 'as agreed', '--json']
    const [first, second] = [await hookledger(...line), await hookledger(...line)]
    expect(JSON.parse(first.stdout)).toMatchObject({
      outcome: 'applied',
      repair_id: planId,
      finding: 'closed',
      verified: true,
      order_id: 'q2',
      from: 'paid',
      to: 'refunded',
    })
    expect(JSON.parse(second.stdout)).toMatchObject({ outcome: 'recorded', repair_id: planId })
    expect(await bench.finding(id)).toMatchObject({ repairs: 1 })
  })

  it('refuses the plan of a file when anything changed since, and says what', async () => {
    const { id } = await refundedThere('q3')
    const file = join(directory, 'q3.json')
    writeFileSync(file, (await hookledger('repair', 'plan', id, '--json')).stdout)
    await bench.rows(`update orders set version = version + 5 where order_id = 'q3'`)
    const { code, stderr } = await hookledger(
      'repair',
      'apply',
      id,
      '--plan',
      file,
      '--reason',
      'as agreed',
    )
    expect(code).toBe(1)
    expect(stderr).toContain('HKL_REPAIR_CHANGED')
    expect(stderr).toMatch(/order, version: \d+, not \d+/)
    expect(await bench.finding(id)).toMatchObject({ state: 'open', repairs: 0 })
  })

  it('says of a plan whose id is not its own that nothing else differs', async () => {
    const { id } = await refundedThere('q7')
    const file = join(directory, 'q7.json')
    const plan = JSON.parse((await hookledger('repair', 'plan', id, '--json')).stdout) as object
    writeFileSync(file, JSON.stringify({ ...plan, plan_id: id }))
    const line = ['repair', 'apply', id, '--plan', file, '--reason', 'as agreed']
    const { code, stderr } = await hookledger(...line)
    expect([code, stderr]).toEqual([1, expect.stringContaining('has another id') as string])
    expect(stderr).not.toContain('()')
    expect(await bench.finding(id)).toMatchObject({ state: 'open', repairs: 0 })
  })

  it('carries nothing out that a file says beyond the plan', async () => {
    const { id } = await refundedThere('q4')
    const file = join(directory, 'q4.json')
    const plan = JSON.parse((await hookledger('repair', 'plan', id, '--json')).stdout) as object
    writeFileSync(file, JSON.stringify({ ...plan, effects: [{ effect_type: 'license' }] }))
    await hookledger('repair', 'apply', id, '--plan', file, '--reason', 'forged')
    expect(
      await bench.rows(
        `select effect_type from fulfillment_effects where order_id = 'q4' order by 1`,
      ),
    ).toEqual([{ effect_type: 'buyer' }, { effect_type: 'license' }, { effect_type: 'refund' }])
  })

  it.each([
    [['--choice', 'keep']],
    [['--reason', ' ']],
    [['--plan', 'x.json', '--choice', 'keep', '--reason', 'r']],
    [['--plan', 'missing.json', '--reason', 'r']],
  ])('is wrong use with %j', async (rest) => {
    const { id } = await refundedThere(`q5${rest.length}${rest[1] ?? ''}`.replace(/\W/g, ''))
    const { code } = await hookledger('repair', 'apply', id, ...rest)
    expect(code).toBe(2)
  })

  it('says that a kept finding stays as it is until its figures change', async () => {
    const { id } = await refundedThere('q6')
    const { code, stdout } = await hookledger(
      'repair',
      'apply',
      id,
      '--choice',
      'keep',
      '--reason',
      'a gift',
    )
    expect(code).toBe(0)
    expect(stdout).toContain('dismissed for these figures')
    expect(await bench.order('q6')).toMatchObject({ state: 'paid' })
  })
})
