import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { money } from 'hookledger'
import { runConfiguredDryRun } from '../../src/compose/dry-run.ts'
import { partsOf } from '../../src/hookledger.ts'
import type { DryRunDifference } from '../../src/inbox/dry-run-compare.ts'
import { fulfill, skip, type Decision } from '../../src/workflow/decision.ts'
import type { Opening } from '../../src/workflow/opening.ts'
import { notOurs } from '../../src/workflow/resolution.ts'
import {
  clearHooks,
  createProbe,
  deliverTo,
  probe,
  probeWorkflow,
  workOff,
  type Probe,
  type ProbeBody,
  type ProbeHooks,
} from '../support/probe.ts'

const hooks: ProbeHooks = {}
let bench: Probe

beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow(hooks)] })
})
afterAll(() => bench.close())
beforeEach(async () => {
  clearHooks(hooks)
  await bench.reset()
  hooks.decide = toItsSubject
})

/** Grants to the order's subject, where it has one: what was decided tells whether the app had opened it. */
const toItsSubject: NonNullable<ProbeHooks['decide']> = ({ event, order }) => {
  const body = event as unknown as ProbeBody
  if (body.type !== 'pay') return undefined
  return fulfill({
    to: 'paid',
    payment: { id: body.payment ?? `pay_${order.id}`, money: money(body.amount ?? 4900, 'usd') },
    effects: [{ type: 'grant', reference: body.id }],
    entitle: [{ subject: order.subject ?? 'user:nobody', entitlement: 'pro' }],
  }) as Decision
}

/** An event, or what the app opens the order with. */
type Step = ProbeBody | Omit<Opening, 'id'>

async function live(...steps: readonly Step[]): Promise<void> {
  for (const step of steps) {
    if ('type' in step) {
      await deliverTo(bench.hookledger, [step])
      await workOff(bench.hookledger)
    } else {
      const opening = { ...step, id: 'a', workflow: 'probe' }
      await bench.hookledger.openOrder(bench.pool, opening)
    }
    // each at a moment of its own, so that a window can begin between any two
    await new Promise((resolve) => setTimeout(resolve, 3))
  }
}

async function differences(since: Date = new Date(0)): Promise<DryRunDifference[]> {
  const found: DryRunDifference[] = []
  await runConfiguredDryRun(bench.db, partsOf(bench.hookledger).config, since, {
    onDifference: (each) => found.push(each),
  })
  return found
}

/** Nothing differs, wherever in history it begins. */
async function expectTheSame(): Promise<void> {
  const moments = await bench.rows<{ at: Date }>(
    `select distinct date_trunc('milliseconds', decided_at) as at from ledger_decisions order by 1`,
  )
  for (const { at } of [{ at: new Date(0) }, ...moments]) expect(await differences(at)).toEqual([])
}

const state = async (): Promise<unknown> =>
  (await bench.rows<{ state: string }>(`select state from orders`))[0]?.state

const opened: Step = { subject: 'user:1', expected: money(4900, 'usd') }
const pay = (fields: Partial<ProbeBody> = {}): ProbeBody => probe('pay', { order: 'a', ...fields })
const refund = (): ProbeBody => probe('refund', { order: 'a' })
const note = (): ProbeBody => probe('note', { order: 'a' })

describe('a dry run over an order that an event opened and the app opened later', () => {
  it.each<[string, string, () => Step[]]>([
    ['never moved', 'pending', () => [note(), opened, note()]],
    ['was underpaid', 'pending', () => [note(), opened, pay({ amount: 100 })]],
    ['was paid before', 'paid', () => [pay(), opened]],
    ['was paid before, and goes on', 'paid', () => [pay(), opened, note(), pay()]],
    ['was paid after', 'paid', () => [note(), opened, pay()]],
    ['was refunded before', 'refunded', () => [pay(), refund(), opened]],
    ['was refunded after', 'refunded', () => [pay(), opened, refund()]],
    ['was paid again', 'paid', () => [pay(), refund(), opened, pay({ payment: 'pi_2' })]],
    [
      'came back to where it was opened',
      'paid',
      () => [pay(), refund(), pay({ payment: 'pi_2' }), opened, pay({ payment: 'pi_3' })],
    ],
  ])('finds nothing where it %s', async (_, end, steps) => {
    await live(...steps())
    expect(await state()).toBe(end)
    expect(await bench.rows(`select 1 from decisions where kind = 'opened'`)).toHaveLength(1)
    await expectTheSame()
  })

  it('finds nothing where it was opened twice, each time with what the other had not named', async () => {
    const subject = { subject: 'user:1' }
    const expected = { expected: money(9900, 'usd') }
    await live(note(), subject, pay(), expected, pay({ payment: 'pi_2', amount: 9900 }))
    expect(await bench.rows(`select 1 from decisions where kind = 'opened'`)).toHaveLength(2)
    await expectTheSame()
    await bench.reset()
    await live(expected, pay(), subject, pay({ payment: 'pi_2', amount: 9900 }))
    expect(await bench.rows(`select 1 from decisions where kind = 'opened'`)).toHaveLength(2)
    await expectTheSame()
  })

  it('takes an opening for earlier than what got its id before it and waited for the order', async () => {
    await live(note(), opened, pay())
    // as it is where the event has its id and the app has the lock
    const ids = await bench.rows<{ id: string }>(
      `select decision_id as id from decisions where kind in ('opened', 'fulfilled') order by 1 desc limit 2`,
    )
    const [paid, opening] = ids.map(({ id }) => id)
    const renamed = (column: string): string =>
      `${column} = case ${column} when ${paid} then ${opening} else ${column} end`
    await bench.pool.query(`begin; set local session_replication_role = replica;
      update ledger_decisions set decision_id = -1 where decision_id = ${opening};
      update ledger_decisions set decision_id = ${opening} where decision_id = ${paid};
      update ledger_decisions set decision_id = ${paid} where decision_id = -1;
      update ledger_payments set ${renamed('decision_id')};
      update fulfillment_effects set ${renamed('decision_id')};
      update entitlements set ${renamed('granted_by')}, ${renamed('changed_by')};
      commit`)
    expect(await bench.rows(`select kind from decisions order by decision_id`)).toEqual([
      { kind: 'fulfilled' },
      { kind: 'fulfilled' },
      { kind: 'opened' },
    ])
    expect(await differences()).toEqual([])
  })

  it('still tells what other code would have decided', async () => {
    await live(pay(), opened, refund())
    hooks.decide = (input) =>
      (input.event as unknown as ProbeBody).type === 'refund'
        ? (skip('no more') as Decision)
        : toItsSubject(input)
    expect(await differences()).toEqual([
      expect.objectContaining({
        recorded: 'moved, paid → refunded',
        now: 'skipped, paid: no more',
      }),
      expect.objectContaining({ event: null, recorded: expect.stringContaining('refunded') }),
    ])
  })

  it('begins in the first state where no event opens it any more', async () => {
    await live(pay(), opened)
    hooks.order = () => notOurs('another shop')
    const end = (await differences()).find(({ event }) => event === null)
    expect(end?.now).toMatch(/^pending/)
  })
})
