import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { expireDeferrals, rescueWaits, type SweepContext } from '../../src/inbox/sweep.ts'
import { partsOf } from '../../src/hookledger.ts'
import type { Hookledger } from 'hookledger'
import {
  createProbe,
  deliverTo,
  probe,
  probeWorkflow,
  workOff,
  type Probe,
} from '../support/probe.ts'

let bench: Probe
let ignoring: Hookledger
let sweep: SweepContext
beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow()] })
  ignoring = bench.another({ workflows: [probeWorkflow({}, { unclaimed: 'ignore' })] })
  ;({ sweep } = await partsOf(bench.hookledger).contexts())
})
afterAll(() => bench.close())
beforeEach(() => bench.reset())

const pastDeadline = (): Promise<unknown> =>
  bench.rows(`update inbox_deferred set deadline_at = now() - interval '1 minute'`)

async function inbox(): Promise<unknown> {
  return bench.rows(`select event_id, state from webhook_inbox order by event_key`)
}

describe('a wait past its deadline', () => {
  it('stays deferred and becomes one finding with an owner, which closes when the event is woken and decided', async () => {
    await bench.deliver(probe('refund', { id: 'evt_r', waits: 'n', payment: 'pay_x' }))
    await bench.work()
    await pastDeadline()
    expect(await expireDeferrals(sweep)).toBe(1)
    expect(await expireDeferrals(sweep)).toBe(0)
    expect(await inbox()).toEqual([{ event_id: 'evt_r', state: 'deferred' }])
    expect(
      await bench.rows(
        `select kind, class, state, owner, times_seen::int, evidence ->> 'waits_for' as waits_for from findings`,
      ),
    ).toEqual([
      {
        kind: 'wait_overdue',
        class: 'lag',
        state: 'open',
        owner: 'operations',
        times_seen: 1,
        waits_for: 'ref n',
      },
    ])
    await bench.deliver(probe('pay', { id: 'evt_p', order: 'x', learns: 'n' }))
    await bench.work()
    expect(await inbox()).toEqual([
      { event_id: 'evt_r', state: 'processed' },
      { event_id: 'evt_p', state: 'processed' },
    ])
    expect(await bench.rows(`select state, closed_at is not null as closed from findings`)).toEqual(
      [{ state: 'closed', closed: true }],
    )
  })

  it('is not prolonged by waiting again, and makes no second finding', async () => {
    await bench.deliver(
      probe('pay', { order: 'x' }),
      probe('after', { id: 'evt_a', order: 'x', needs: 'evt_n' }),
    )
    await bench.work()
    await pastDeadline()
    await expireDeferrals(sweep)
    // the order changes: the event looks again, and waits on
    await bench.deliver(probe('note', { id: 'evt_other', order: 'x' }))
    await bench.work()
    expect(
      await bench.rows(`select deadline_at < now() as past, overdue from inbox_deferred`),
    ).toEqual([{ past: true, overdue: true }])
    expect(await expireDeferrals(sweep)).toBe(0)
    expect(await bench.rows(`select state, times_seen::int from findings`)).toEqual([
      { state: 'open', times_seen: 1 },
    ])
    // what it waits for did not change: that is no news to record
    expect(await bench.rows(`select 1 from ledger_decisions where kind = 'deferred'`)).toHaveLength(
      1,
    )
  })

  it('is ignored where the type says so, and a name that comes later still wakes it', async () => {
    await deliverTo(ignoring, [probe('refund', { id: 'evt_r', waits: 'n', payment: 'pay_x' })])
    await workOff(ignoring)
    await pastDeadline()
    expect(await expireDeferrals(sweep)).toBe(1)
    expect(await inbox()).toEqual([{ event_id: 'evt_r', state: 'ignored' }])
    expect(await bench.rows(`select reason from decisions where kind = 'ignored'`)).toEqual([
      { reason: 'nothing claimed it: it waited for ref n' },
    ])
    expect(await bench.rows(`select 1 from findings`)).toEqual([])
    await deliverTo(ignoring, [probe('pay', { id: 'evt_p', order: 'x', learns: 'n' })])
    await workOff(ignoring)
    expect(await inbox()).toEqual([
      { event_id: 'evt_r', state: 'processed' },
      { event_id: 'evt_p', state: 'processed' },
    ])
  })

  it('of a known order is a finding though the type ignores what nothing claims, and is woken by what it waits for', async () => {
    await deliverTo(ignoring, [
      probe('pay', { id: 'evt_p', order: 'x' }),
      probe('after', { id: 'evt_a', order: 'x', needs: 'evt_n' }),
      probe('refund', { id: 'evt_s', waits: 'stranger' }),
    ])
    await workOff(ignoring)
    await pastDeadline()
    await expireDeferrals(sweep)
    const states = (): Promise<unknown> =>
      bench.rows(
        `select event_id, state from webhook_inbox where event_id in ('evt_a', 'evt_s') order by 1`,
      )
    expect(await states()).toEqual([
      { event_id: 'evt_a', state: 'deferred' },
      { event_id: 'evt_s', state: 'ignored' },
    ])
    const found = (): Promise<unknown> =>
      bench.rows(`select kind, state, evidence ->> 'event' as event from findings`)
    expect(await found()).toEqual([{ kind: 'wait_overdue', state: 'open', event: 'evt_a' }])
    await deliverTo(ignoring, [probe('note', { id: 'evt_n', order: 'x' })])
    await workOff(ignoring)
    expect(await states()).toEqual([
      { event_id: 'evt_a', state: 'processed' },
      { event_id: 'evt_s', state: 'ignored' },
    ])
    expect(await found()).toEqual([{ kind: 'wait_overdue', state: 'closed', event: 'evt_a' }])
  })

  it('is a finding where one of the workflows that wait says so', async () => {
    const both = bench.another({
      workflows: [
        probeWorkflow({}, { unclaimed: 'ignore' }),
        probeWorkflow({}, { name: 'careful', types: ['refund'] }),
      ],
    })
    await deliverTo(both, [probe('refund', { waits: 'n' })])
    await workOff(both)
    expect(await bench.rows(`select at_deadline from inbox_deferred`)).toEqual([
      { at_deadline: 'finding' },
    ])
  })

  it('takes the configured deadline where its decision gives none', async () => {
    const short = bench.another({ workflows: [probeWorkflow()], limits: { deferralMs: 5000 } })
    await deliverTo(short, [probe('refund', { waits: 'n' })])
    await workOff(short)
    expect(
      await bench.rows(
        `select extract(epoch from deadline_at - deferred_at)::int as seconds from inbox_deferred`,
      ),
    ).toEqual([{ seconds: 5 }])
  })

  it('ends with the event when that is dead, and the death has a finding of its own', async () => {
    await bench.deliver(probe('after', { id: 'evt_a', order: 'x', needs: 'evt_n' }))
    await bench.work()
    await pastDeadline()
    await expireDeferrals(sweep)
    await bench.rows(`update payloads set body = '{'::bytea`)
    await bench.deliver(probe('note', { id: 'evt_other', order: 'x' }))
    await bench.work()
    expect(await bench.rows(`select state from webhook_inbox where event_id = 'evt_a'`)).toEqual([
      { state: 'dead' },
    ])
    expect(await bench.rows(`select kind, state from findings order by kind`)).toEqual([
      { kind: 'dead_event', state: 'open' },
      { kind: 'wait_overdue', state: 'closed' },
    ])
  })
})

describe('a redelivery of an event that waits', () => {
  it('makes it look again, and it waits on with the deadline that it had', async () => {
    const body = probe('refund', { id: 'evt_r', waits: 'n' })
    await bench.deliver(body)
    await bench.work()
    const before = await bench.rows(`select deadline_at from inbox_deferred`)
    await bench.deliver(body)
    await bench.work()
    expect(await bench.rows(`select deadline_at from inbox_deferred`)).toEqual(before)
    expect(await bench.rows(`select count(*)::int as n from inbox_waits`)).toEqual([{ n: 1 }])
  })
})

describe('the net under wake-ups', () => {
  it('would find a name that is there although an event waits for it', async () => {
    await bench.deliver(probe('refund', { waits: 'n' }), probe('pay', { order: 'x' }))
    await bench.work()
    // as no code of ours leaves it
    await bench.rows(`update order_names set order_id = 'x' where name = 'n'`)
    expect(await rescueWaits(bench.db)).toBe(0)
    await bench.rows(`update inbox_deferred set deferred_at = deferred_at - interval '1 minute'`)
    expect(await rescueWaits(bench.db)).toBe(1)
    expect(await bench.rows(`select 1 from inbox_ready`)).toHaveLength(1)
  })

  it('would find a change of an order that an event waits for', async () => {
    await bench.deliver(probe('after', { order: 'x', needs: 'n' }))
    await bench.work()
    await bench.rows(
      `update inbox_deferred set deferred_at = deferred_at - interval '1 minute'; update orders set updated_at = now() - interval '30 seconds'`,
    )
    expect(await rescueWaits(bench.db)).toBe(1)
  })

  it('leaves alone what waits for what is not there', async () => {
    await bench.deliver(probe('refund', { waits: 'n' }), probe('after', { order: 'x', needs: 'n' }))
    await bench.work()
    await bench.rows(
      `update inbox_deferred set deferred_at = deferred_at - interval '1 minute'; update orders set updated_at = updated_at - interval '2 minutes', opened_at = opened_at - interval '2 minutes'`,
    )
    expect(await rescueWaits(bench.db)).toBe(0)
  })
})
