import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serveStripeDouble, type ServedDouble } from '../../src/testing/stripe-double/serve.ts'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../src/testing/stripe-double/stripe-double.ts'
import { createShop, shopSecret, type Shop } from '../support/shop.ts'
import { run, type Ran } from './memory-world.ts'

const config = join(import.meta.dirname, 'reconcile.config.ts')
let shop: Shop
let double: StripeDouble
let served: ServedDouble

beforeAll(async () => {
  shop = await createShop()
  await shop.rows(`update installation set created_at = now() - interval '2 days'`)
  const clock = Date.now() - 3_600_000
  double = createStripeDouble({ signingSecret: shopSecret, seed: 'cli', clock: () => clock })
  served = await serveStripeDouble(double)
  process.env['RECONCILE_TEST_API_BASE'] = served.url
  await shop.hookledger.start()
})

afterAll(async () => {
  delete process.env['RECONCILE_TEST_API_BASE']
  await served.close()
  await shop.close()
})

/** Pays an order at the provider; nothing of it is delivered. */
function pay(order: string): void {
  double.hold(() => {
    double.completeSession(double.createSession({ clientReferenceId: order }).id)
  })
}

function hookledger(...line: string[]): Promise<Ran> {
  return run([...line, '--config', config], {
    variables: { DATABASE_URL: shop.database.url, USER: 'ada' },
  })
}

interface Printed {
  readonly complete: boolean
  readonly runs: readonly Record<string, unknown>[]
}

async function json(...line: string[]): Promise<{ code: number; pass: Printed }> {
  const { code, stdout } = await hookledger('reconcile', ...line, '--json')
  return { code, pass: JSON.parse(stdout) as Printed }
}

describe('hookledger reconcile', () => {
  it('brings in what was lost, says what it went through, and exits 0', async () => {
    pay('1001')
    const { code, stdout } = await hookledger('reconcile')
    expect(stdout).toMatch(/^stripe: complete, \d+ calls in /)
    expect(stdout).toMatch(
      /event +\d{4}-\S+ \S+ to \d{4}-\S+ \S+ +\d+ records +\d+ pages? +\d+ slices/,
    )
    expect(stdout).toMatch(/checkout\.session .* 1 record/)
    expect(stdout).toMatch(/[1-9]\d* events put into the inbox/)
    expect(code).toBe(0)
    expect(await shop.rows(`select state from orders where order_id = '1001'`)).toEqual([
      { state: 'paid' },
    ])
  })

  it('finds nothing to do the second time', async () => {
    const { code, pass } = await json()
    expect(code).toBe(0)
    expect(pass).toMatchObject({
      complete: true,
      runs: [{ source: 'stripe', how: 'manual', state: 'complete', injected: 0, opened: 0 }],
    })
    expect(Object.keys(pass.runs[0]?.['coverage'] as object)).toContain('payment_intent')
  })

  it('records who ran it and how', async () => {
    await hookledger('reconcile', '--deep', '--actor', 'ben')
    const rows = await shop.rows(
      `select how, actor from reconciliation_runs order by started_at desc limit 1`,
    )
    expect(rows).toEqual([{ how: 'deep', actor: 'cli:ben' }])
  })

  it('goes through a window and through kinds that are named', async () => {
    const { pass } = await json('--from', '2026-01-01T00:00:00Z', '--kind', 'refund,dispute')
    expect(pass.runs[0]?.['how']).toBe('range')
    expect(Object.keys(pass.runs[0]?.['coverage'] as object).sort()).toEqual(['dispute', 'refund'])
  }, 60_000)

  it.each([
    [['--to', '2026-01-01'], '--to goes with --from'],
    [['--deep', '--from', '2026-01-01'], 'give one of them'],
    [['--from', 'yesterday'], '--from must be a time'],
    [['--from', '2999-01-01'], '--from must be before now'],
    [['--from', '1'], '--from must be a time'],
    [['--from', '2026-01-01', '--to', '2026-02-31'], '--to must be a time'],
    [['--source', 'strip'], 'did you mean "stripe"'],
    [['--kind', 'refunds'], 'did you mean "refund"'],
  ])('refuses %j as wrong use', async (line, says) => {
    const { code, stderr } = await hookledger('reconcile', ...line)
    expect(stderr).toContain(says)
    expect(code).toBe(2)
  })

  it('exits 1 and says why when the provider refuses to be asked', async () => {
    const fault = double.fault({
      match: { path: '/v1/events' },
      respond: { status: 401, body: { error: { type: 'invalid_request_error', message: 'no' } } },
    })
    const { code, stdout } = await hookledger('reconcile')
    fault.remove()
    expect(stdout).toMatch(/not complete: event of stripe: /)
    expect(stdout).toMatch(/checkout\.session .* \d+ pages?/)
    expect(code).toBe(1)
  })
})
