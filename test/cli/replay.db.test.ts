import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import { deliverTo, probe, workOff } from '../support/probe.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { run, type Ran } from './memory-world.ts'
import { options } from './redecide.config.ts'

const config = join(import.meta.dirname, 'redecide.config.ts')
let database: TestDatabase
let shop: Hookledger

beforeAll(async () => {
  database = await createHookledgerDatabase()
  shop = createHookledger({ ...options, database: database.pool({ max: 6 }) })
  await deliverTo(shop, [
    probe('pay', { id: 'evt_1', order: 'a' }),
    probe('pay', { id: 'evt_2', order: 'b' }),
  ])
  await workOff(shop)
})
afterAll(async () => {
  await shop.stop()
  await database.drop()
})
afterEach(() => {
  delete process.env['PRICED']
})

function replay(...line: string[]): Promise<Ran> {
  return run(['replay', ...line, '--config', config], {
    variables: { DATABASE_URL: database.url, USER: 'ada' },
  })
}

describe('hookledger replay --dry-run', () => {
  it('exits 0 when the present code decides the same', async () => {
    const { code, stdout } = await replay('--dry-run', '--since', '2020-01-01')
    expect([code, stdout]).toEqual([
      0,
      '2 events and 2 orders since 2020-01-01T00:00:00.000Z decided again; nothing was written\nthe present code decides the same\n',
    ])
  })

  it('prints what would differ and exits 3', async () => {
    process.env['PRICED'] = 'yes'
    const { code, stdout } = await replay('--dry-run', '--since', '2020-01-01')
    expect(code).toBe(3)
    expect(stdout).toContain(
      'order a, pay evt_1\n  is:       skipped, pending (decision 1)\n  would be: fulfilled, pending → paid: pending to paid: grant',
    )
    expect(stdout).toContain('order a, the end of its history\n  is:       pending\n')
    expect(stdout).toContain('4 differences under the present code')
  })

  it('prints one JSON object with what would differ', async () => {
    process.env['PRICED'] = 'yes'
    const { code, stdout } = await replay('--dry-run', '--since', '2020-01-01', '--json')
    expect(code).toBe(3)
    expect(JSON.parse(stdout)).toMatchObject({
      events: 2,
      orders: 2,
      differences: 4,
      expired: { events: 0, examples: [] },
      found: [
        { order_id: 'a', event: { id: 'evt_1' } },
        { order_id: 'a', event: null },
        { order_id: 'b', event: { id: 'evt_2' } },
        { order_id: 'b', event: null },
      ],
    })
  })

  it('decides nothing that came before the time', async () => {
    process.env['PRICED'] = 'yes'
    const { code, stdout } = await replay('--dry-run', '--since', '2100-01-01')
    expect(code).toBe(0)
    expect(stdout).toContain('0 events and 0 orders')
  })

  it.each([
    [['--dry-run']],
    [['--dry-run', '--since', 'yesterday']],
    [['--dry-run', '--since', '2020-01-01', 'evt_1']],
    [['--dry-run', '--since', '2020-01-01', '--type', 'pay']],
    [['--dry-run', '--since', '2020-01-01', '--until', '2021-01-01']],
  ])('is refused as %j', async (line) => {
    expect((await replay(...line)).code).toBe(2)
  })
})

describe('hookledger replay --redecide', () => {
  it('shows the plan and does nothing with --plan', async () => {
    process.env['PRICED'] = 'yes'
    const { code, stdout } = await replay('evt_1', '--redecide', '--plan')
    expect(code).toBe(0)
    expect(stdout).toBe(
      [
        'pay evt_1 was skipped: no price is known (decision 1)',
        'the present code decides about order a: fulfilled, pending → paid, because pending to paid: grant',
        '  payment pay_a 49.00 USD',
        '  effect grant',
        '  grants user:a pro',
        '',
      ].join('\n'),
    )
    expect(await shop.entitlements('user:a')).toEqual([])
  })

  it('shows the plan first, decides, and says how to see it', async () => {
    process.env['PRICED'] = 'yes'
    const { code, stdout, stderr } = await replay(
      ...['evt_1', '--redecide', '--reason', 'the price list is complete now'],
    )
    expect([code, stderr.split('\n')[0]]).toEqual([
      0,
      'pay evt_1 was skipped: no price is known (decision 1)',
    ])
    expect(stdout).toMatch(
      /^evt_1 is decided anew: fulfilled, pending → paid, decision \d+; see "hookledger explain a"\n$/,
    )
    expect(await shop.entitlements('user:a')).toHaveLength(1)
    const again = await replay('evt_1', '--redecide', '--reason', 'once more')
    expect([again.code, again.stdout]).toEqual([
      0,
      expect.stringContaining(
        'was decided anew already, because the price list is complete now (decision',
      ),
    ])
    const { stdout: story } = await run(['explain', 'evt_1', '--config', config], {
      variables: { DATABASE_URL: database.url },
    })
    expect(story).toContain('redecided, pending → paid')
    expect(story).toContain('because the price list is complete now')
    expect(story).toContain(
      'of evt_1, in the place of decision 1: fulfilled, pending to paid: grant',
    )
    expect(story).toContain('ada did redecide')
  })

  it('prints the plan and the decision as one JSON object', async () => {
    process.env['PRICED'] = 'yes'
    const { code, stdout } = await replay(
      ...['evt_2', '--redecide', '--reason', 'a price', '--actor', 'bo', '--json'],
    )
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      outcome: 'redecided',
      as_event: expect.stringMatching(/^redecide:\d+$/),
      plan: { kind: 'fulfilled', order: { id: 'b', from: 'pending', to: 'paid' } },
    })
  })

  it.each([
    ['without a reason', ['evt_1', '--redecide'], 2],
    ['without an event', ['--redecide', '--reason', 'x'], 2],
    ['with a filter beside the event', ['evt_1', '--redecide', '--reason', 'x', '--all'], 2],
    ['with --plan alone', ['evt_1', '--plan'], 2],
    ['for an event that never came', ['evt_9', '--redecide', '--reason', 'x'], 1],
  ])('is refused %s', async (_, line, expected) => {
    expect((await replay(...line)).code).toBe(expected)
  })
})
