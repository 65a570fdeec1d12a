import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { runConfiguredDryRun } from '../../src/compose/dry-run.ts'
import { partsOf } from '../../src/hookledger.ts'
import type { DryRunDifference } from '../../src/inbox/dry-run-compare.ts'
import type { DryRunReport } from '../../src/inbox/dry-run.ts'
import { fulfill, mirrored, skip } from '../../src/workflow/decision.ts'
import { followedPlans, type FollowedPlans, type Plan } from '../support/followed-plans.ts'

let plans: FollowedPlans
beforeAll(async () => {
  plans = await followedPlans()
})
afterAll(() => plans.close())
beforeEach(() => plans.reset())

async function run(
  since = new Date(0),
): Promise<{ readonly report: DryRunReport; readonly found: DryRunDifference[] }> {
  const found: DryRunDifference[] = []
  const before = plans.provider.asked
  const report = await runConfiguredDryRun(plans.db, partsOf(plans.hookledger).config, since, {
    onDifference: (difference) => found.push(difference),
  })
  expect(plans.provider.asked).toBe(before)
  return { report, found }
}

const none = { events: 0, examples: [] }

async function becomes(plan: Partial<Plan>, eventId?: string): Promise<void> {
  plans.set({ id: 'p1', order: 'o1', status: 'active', ...plan })
  await plans.tell('p1', 'o1', eventId)
  await plans.work()
}

/** A life with every kind of change, one after the other. */
async function life(): Promise<void> {
  await becomes({ seats: 2 })
  await becomes({ seats: 2 })
  await becomes({ seats: 5 })
  await becomes({ status: 'late' })
  await becomes({ seats: 5 })
  await becomes({ seats: 1 })
  await becomes({ status: 'odd' })
  plans.present.delete('p1')
  await plans.tell('p1', 'o1')
  await plans.work()
}

const now = async (): Promise<Date> => {
  await new Promise((resolve) => setTimeout(resolve, 5))
  const [row] = await plans.rows<{ at: Date }>('select clock_timestamp() as at')
  await new Promise((resolve) => setTimeout(resolve, 5))
  return row?.at ?? new Date(0)
}

describe('a dry run over what was decided from answers of the provider', () => {
  it('decides the same from the answers that were kept, and asks nobody', async () => {
    await life()
    const { report, found } = await run()
    expect(found).toEqual([])
    expect(report).toMatchObject({ events: 8, differences: 0, unanswered: none, expired: none })
  })

  it('decides the same from wherever it begins: figures are those of then', async () => {
    const moments: Date[] = []
    for (const plan of [
      { seats: 2 },
      { seats: 2 },
      { seats: 5 },
      { seats: 5 },
      { seats: 1 },
      { seats: 1 },
      { status: 'late' },
      { status: 'late' },
      { seats: 3 },
    ]) {
      moments.push(await now())
      await becomes(plan)
    }
    for (const since of moments) {
      const { found } = await run(since)
      expect(found).toEqual([])
    }
  })

  it('says what the present code would decide otherwise', async () => {
    await becomes({ status: 'late' }, 'evt_late')
    plans.hooks.decide = (plan) => mirrored({ to: plan?.status === 'late' ? 'paused' : 'active' })
    const { found } = await run()
    expect(found).toMatchObject([
      { order_id: 'o1', event: { id: 'evt_late' }, details: ['to: "paused", not "late"'] },
      { order_id: 'o1', event: null },
    ])
  })

  it('decides events that shared an answer as they were decided', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active', seats: 2 })
    await plans.deliver(
      ...['evt_s1', 'evt_s2', 'evt_s3'].map((id) => ({
        id,
        type: 'plan.changed',
        plan: { id: 'p1', order: 'o1' },
      })),
    )
    await plans.work()
    expect(plans.provider.asked).toBeLessThan(3)
    expect((await run()).found).toEqual([])
  })

  it('says what it can no longer tell where an answer is not kept', async () => {
    await becomes({ seats: 2 }, 'evt_kept')
    await becomes({ status: 'late' }, 'evt_gone')
    await plans.rows('update evidence set body = null where number = 2')
    plans.hooks.decide = () => skip('nothing is followed any more')
    const { report, found } = await run()
    expect(report.unanswered).toEqual({ events: 1, examples: ['evt_gone'] })
    expect(found.map(({ event }) => event?.id)).toEqual(['evt_kept'])
  })

  it('decides again from what was gathered', async () => {
    for (const n of [1, 2]) {
      await plans.deliver({
        id: `evt_note_${n}`,
        type: 'note',
        plan: { id: 'p1', order: 'o1' },
        note: `n${n}`,
      })
      await plans.work()
    }
    expect((await run()).found).toEqual([])
    plans.hooks.note = (evidence) =>
      fulfill({
        effects: [{ type: 'note', reference: `from ${JSON.stringify(evidence)}` }],
      })
    const { found } = await run()
    expect(found).toHaveLength(2)
    expect(found[0]?.details.join()).toContain('{"found":1}')
  })

  it('counts as decided what only the present code follows: nobody had asked', async () => {
    await becomes({ seats: 2 }, 'evt_seen')
    const client = await plans.pool.connect()
    try {
      await client.query(
        `set session_replication_role = replica; update hookledger.ledger_decisions set evidence = evidence - 'fetch'; reset session_replication_role`,
      )
    } finally {
      client.release()
    }
    const { report, found } = await run()
    expect(found).toEqual([])
    expect(report.unanswered).toEqual({ events: 1, examples: ['evt_seen'] })
  })
})
