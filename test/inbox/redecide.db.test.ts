import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createRedecider, type Redecider } from '../../src/compose/redecide.ts'
import { partsOf } from '../../src/hookledger.ts'
import { replayEvent } from '../../src/inbox/replay.ts'
import { audit } from '../../src/report/audit.ts'
import { contradict, fulfill, skip } from '../../src/workflow/decision.ts'
import type { Decision } from '../../src/workflow/decision.ts'
import {
  createProbe,
  decideProbe,
  deliverTo,
  probe,
  probeWorkflow,
  workOff,
  type Probe,
  type ProbeBody,
  type ProbeHooks,
} from '../support/probe.ts'

const by = { reason: 'the price list was wrong', actor: 'ada' }
let bench: Probe
const hooks: ProbeHooks = {}
let applied: string[] = []
let redecider: Redecider

beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow(hooks)] })
  const parts = partsOf(bench.hookledger)
  redecider = createRedecider((await parts.contexts()).work, parts.signals)
})
afterAll(() => bench.close())
beforeEach(async () => {
  await bench.reset()
  applied = []
  hooks.apply = async ({ order, effect }) => void applied.push(`${order.id} ${effect.type}`)
  delete hooks.order
  hooks.decide = () => skip('no price is known') as Decision
})

/** From now on the workflow decides as the probe does by itself. */
function correct(): void {
  delete hooks.decide
}

async function decided(...events: ProbeBody[]): Promise<void> {
  await deliverTo(bench.hookledger, events)
  await workOff(bench.hookledger)
}

async function plan(
  id: string,
): Promise<Extract<Awaited<ReturnType<Redecider['plan']>>, { kind: 'planned' }>> {
  const planned = await redecider.plan({ id }, by)
  if (planned.kind !== 'planned') throw new Error('it was decided anew already')
  return planned
}

const tables = [
  'ledger_decisions',
  'orders',
  'ledger_payments',
  'fulfillment_effects',
  'entitlements',
  'inbox_events',
  'findings',
  'operator_acts',
  'outbox_operations',
]
async function contents(): Promise<unknown> {
  return Promise.all(tables.map((table) => bench.rows(`select * from ${table} order by 1, 2, 3`)))
}

const brokenPromises = async (): Promise<readonly string[]> =>
  (await audit(bench.db)).checks.filter((each) => !each.holds).map((each) => each.check)

describe('deciding anew', () => {
  it('shows its plan first, and a plan changes nothing but the record of the reading', async () => {
    await decided(probe('pay', { id: 'evt_1', order: 'a' }))
    correct()
    const before = await contents()
    const { plan: shown } = await plan('evt_1')
    expect(shown).toMatchObject({
      event: { id: 'evt_1', type: 'pay' },
      supersedes: { kind: 'skipped', reason: 'no price is known' },
      kind: 'fulfilled',
      order: { id: 'a', from: 'pending', to: 'paid' },
      payment: { id: 'pay_a', amount: 4900n, currency: 'USD', applied: true },
      effects: [{ type: 'grant', reference: '' }],
      granted: ['user:a pro'],
      operations: [],
      closes: [],
    })
    expect(await contents()).toEqual(before)
    expect(applied).toEqual([])
    expect(await bench.rows('select reason, actor from payload_reads')).toEqual([by])
  })

  it('is an event of the source hookledger that supersedes the first decision, which stays final for its own event', async () => {
    await decided(probe('pay', { id: 'evt_1', order: 'a' }))
    const [first] = await bench.rows<{ decision_id: string }>(
      `select decision_id from decisions where event_id = 'evt_1' and final`,
    )
    correct()
    const done = await redecider.apply(await plan('evt_1'), by)
    expect(done).toMatchObject({ kind: 'redecided', eventId: `redecide:${first?.decision_id}` })
    expect(
      await bench.rows(`select provider, provider_account, event_type, kind, final, from_state, to_state, reason, actor,
        supersedes, evidence -> 'redecided' as redecided from decisions where kind = 'redecided'`),
    ).toEqual([
      {
        provider: 'hookledger',
        provider_account: 'hookledger',
        event_type: 'replay.redecide',
        kind: 'redecided',
        final: true,
        from_state: 'pending',
        to_state: 'paid',
        reason: by.reason,
        actor: 'ada',
        supersedes: first?.decision_id,
        redecided: {
          event: 'evt_1',
          event_key: expect.stringMatching(/^\d+$/),
          decision: first?.decision_id,
          as: 'fulfilled',
          because: 'pending to paid: grant',
        },
      },
    ])
    expect(await bench.rows(`select kind, final from decisions where event_id = 'evt_1'`)).toEqual([
      { kind: 'skipped', final: true },
    ])
    expect(
      await bench.rows(`select via, state from webhook_inbox where provider = 'hookledger'`),
    ).toEqual([{ via: 'replay', state: 'processed' }])
    expect(await bench.rows('select subject, entitlement from current_entitlements')).toEqual([
      { subject: 'user:a', entitlement: 'pro' },
    ])
    expect(await bench.rows('select payment_id, applied from payments')).toEqual([
      { payment_id: 'pay_a', applied: true },
    ])
    expect(await bench.rows(`select act, reason, actor from operator_acts`)).toEqual([
      { act: 'redecide', ...by },
    ])
    expect(applied).toEqual(['a grant'])
    expect(await brokenPromises()).toEqual([])
    expect(await replayEvent(bench.db, { id: 'evt_1' }, by)).toMatchObject({
      outcome: 'recorded',
      decision: { kind: 'skipped' },
    })
  })

  it('applies the money of a contradiction that was kept aside, and closes its finding', async () => {
    delete hooks.decide
    hooks.decide = ({ order }) => contradict('an unknown price', { order: order.id }) as Decision
    await decided(probe('pay', { id: 'evt_1', order: 'a' }))
    expect(await bench.rows('select kind, state from findings')).toEqual([
      { kind: 'contradicted', state: 'open' },
    ])
    correct()
    const planned = await plan('evt_1')
    expect(planned.plan.closes).toHaveLength(1)
    await redecider.apply(planned, by)
    expect(await bench.rows('select kind, state from findings')).toEqual([
      { kind: 'contradicted', state: 'closed' },
    ])
    expect(await brokenPromises()).toEqual([])
  })

  it('happens once when two persons confirm the same plan at once', async () => {
    await decided(probe('pay', { id: 'evt_1', order: 'a' }))
    correct()
    const planned = await plan('evt_1')
    const done = await Promise.all([1, 2, 3, 4].map(() => redecider.apply(planned, by)))
    expect(done.map((each) => each.kind).sort()).toEqual([
      'recorded',
      'recorded',
      'recorded',
      'redecided',
    ])
    expect(applied).toEqual(['a grant'])
    expect(await bench.rows(`select 1 from operator_acts`)).toHaveLength(1)
    expect(await redecider.plan({ id: 'evt_1' }, by)).toMatchObject({
      kind: 'recorded',
      decision: { kind: 'redecided' },
    })
  })

  it('refuses a plan when the order has changed since', async () => {
    await decided(probe('pay', { id: 'evt_1', order: 'a' }))
    correct()
    const planned = await plan('evt_1')
    await decided(probe('note', { id: 'evt_2', order: 'a' }))
    const before = await contents()
    await expect(redecider.apply(planned, by)).rejects.toMatchObject({ code: 'HKL_REPAIR_CHANGED' })
    expect(await contents()).toEqual(before)
    expect(applied).toEqual(['a note'])
    expect(await redecider.apply(await plan('evt_1'), by)).toMatchObject({ kind: 'redecided' })
  })

  it('wakes what waits for the order', async () => {
    await decided(probe('pay', { id: 'evt_1', order: 'a' }))
    correct()
    await decided(probe('after', { id: 'evt_2', order: 'a', needs: 'evt_3' }))
    hooks.decide = ({ event }) =>
      event['type'] === 'note' ? (skip('not now') as Decision) : undefined
    await decided(probe('note', { id: 'evt_3', order: 'a' }))
    correct()
    await redecider.apply(await plan('evt_3'), by)
    await workOff(bench.hookledger)
    expect(await bench.rows(`select state from webhook_inbox where event_id = 'evt_2'`)).toEqual([
      { state: 'processed' },
    ])
  })

  it('leaves nothing behind when the SQL of an effect fails', async () => {
    await decided(probe('pay', { id: 'evt_1', order: 'a' }))
    correct()
    hooks.apply = async ({ db }) => void (await db.query('select 1 / 0'))
    const before = await contents()
    const planned = await plan('evt_1')
    await expect(redecider.apply(planned, by)).rejects.toMatchObject({
      code: 'HKL_REPAIR_IMPOSSIBLE',
    })
    expect(await contents()).toEqual(before)
  })

  it('waits a moment for an order that somebody holds', async () => {
    await decided(probe('pay', { id: 'evt_1', order: 'a' }))
    correct()
    const client = await bench.pool.connect()
    await client.query('begin')
    await client.query(`select 1 from orders where order_id = 'a' for update`)
    const planning = plan('evt_1')
    await new Promise((resolve) => setTimeout(resolve, 250))
    await client.query('rollback')
    client.release()
    expect((await planning).plan.kind).toBe('fulfilled')
  })

  it('can be done again to a decision that skipped again, each one superseding the last', async () => {
    await decided(probe('pay', { id: 'evt_1', order: 'a' }))
    hooks.decide = () => skip('the price is in review') as Decision
    await redecider.apply(await plan('evt_1'), by)
    correct()
    await redecider.apply(await plan('evt_1'), by)
    expect(
      await bench.rows(
        `select s.kind as over, d.to_state from decisions d join decisions s on s.decision_id = d.supersedes order by d.decision_id`,
      ),
    ).toEqual([
      { over: 'skipped', to_state: 'pending' },
      { over: 'redecided', to_state: 'paid' },
    ])
  })
})

describe('deciding anew is refused', () => {
  it.each([
    ['what changed something', 'evt_paid', 'HKL_INBOX_NOT_REPLAYABLE', 'was fulfilled'],
    ['what repeats what was recorded', 'evt_again', 'HKL_INBOX_NOT_REPLAYABLE', 'was absorbed'],
    ['what has no final decision', 'evt_waits', 'HKL_INBOX_NOT_REPLAYABLE', 'no final decision'],
    ['what never came', 'evt_none', 'HKL_INBOX_EVENT_UNKNOWN', 'no event evt_none'],
  ])('for %s', async (_, id, code, message) => {
    correct()
    await decided(probe('pay', { id: 'evt_paid', order: 'a' }))
    await decided(
      probe('pay', { id: 'evt_again', order: 'a' }),
      probe('after', { id: 'evt_waits', order: 'a', needs: 'nothing' }),
    )
    await expect(redecider.plan({ id }, by)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    })
  })

  it('when the present code decides the same', async () => {
    await decided(probe('pay', { id: 'evt_1', order: 'a' }))
    await expect(plan('evt_1')).rejects.toMatchObject({
      code: 'HKL_REPAIR_IMPOSSIBLE',
      message: expect.stringContaining('the present code decides the same'),
    })
  })

  it('when another payment has fulfilled the order since', async () => {
    await decided(probe('pay', { id: 'evt_1', order: 'a', payment: 'pi_1' }))
    correct()
    await decided(probe('pay', { id: 'evt_2', order: 'a', payment: 'pi_2' }))
    await expect(plan('evt_1')).rejects.toMatchObject({
      code: 'HKL_REPAIR_IMPOSSIBLE',
      message: expect.stringContaining('fulfilled for another payment since'),
    })
  })

  it('when what it would do is done', async () => {
    await decided(probe('note', { id: 'evt_1', order: 'a' }))
    hooks.decide = () => fulfill({ effects: [{ type: 'note', reference: 'shared' }] }) as Decision
    await decided(probe('note', { id: 'evt_2', order: 'a' }))
    await expect(plan('evt_1')).rejects.toMatchObject({
      code: 'HKL_REPAIR_IMPOSSIBLE',
      message: expect.stringContaining('is done: already recorded'),
    })
  })

  it('when a finding about it was repaired', async () => {
    hooks.decide = () => contradict('an unknown price', {}) as Decision
    await decided(probe('pay', { id: 'evt_1', order: 'a' }))
    await bench.rows(`insert into repairs (repair_id, finding_id, plan, reason, actor, order_id, previous_state, new_state)
      select gen_random_uuid(), finding_id, '{}', 'granted by hand', 'bo', order_id, '{}', '{}' from findings`)
    correct()
    await expect(plan('evt_1')).rejects.toMatchObject({
      code: 'HKL_REPAIR_IMPOSSIBLE',
      message: expect.stringContaining('was repaired'),
    })
  })

  it('when it would wait, and when the code fails on it', async () => {
    await decided(
      probe('pay', { id: 'evt_1', order: 'a' }),
      probe('after', { id: 'evt_2', order: 'a', needs: 'evt_9' }),
    )
    hooks.decide = (input) => {
      if (input.event['type'] === 'after') return decideProbe(input)
      throw new Error('a mistake in the code')
    }
    await expect(plan('evt_2')).rejects.toMatchObject({
      message: expect.stringContaining('it cannot be decided now'),
    })
    await expect(plan('evt_1')).rejects.toMatchObject({
      message: expect.stringContaining('a mistake in the code'),
    })
  })

  it('when its body is gone', async () => {
    await decided(probe('pay', { id: 'evt_1', order: 'a' }))
    await bench.rows('delete from payloads')
    correct()
    await expect(plan('evt_1')).rejects.toMatchObject({ code: 'HKL_INBOX_PAYLOAD_EXPIRED' })
  })
})
