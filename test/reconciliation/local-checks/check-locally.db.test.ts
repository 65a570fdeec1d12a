import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { comparisonOf } from '../../../src/compose/comparison.ts'
import { partsOf } from '../../../src/hookledger.ts'
import type { CompareReport, Comparison } from '../../../src/reconciliation/ports.ts'
import { createProbe, probe as body, probeWorkflow, type Probe } from '../../support/probe.ts'

let probe: Probe
let comparison: Comparison

beforeAll(async () => {
  probe = await createProbe({
    workflows: [probeWorkflow()],
    reconcile: { stuckAfterMs: 3_600_000 },
  })
  const parts = partsOf(probe.hookledger)
  const installed = await parts.installation()
  const { db } = probe
  comparison = comparisonOf({
    db,
    installed,
    config: parts.config,
    signals: parts.signals,
  }).comparison
})
afterAll(() => probe.close())
beforeEach(() => probe.reset())

const check = (): Promise<CompareReport> => {
  const now = Date.now()
  const signal = new AbortController().signal
  const [from, to] = [new Date(now - 600_000), new Date(now + 600_000)]
  return comparison.checkLocally({ from, to, signal })
}

const findings = (): Promise<object[]> =>
  probe.rows(
    `select kind, class, state, order_id, evidence, closed_because, times_seen::int as times
     from findings order by kind, order_id, finding_id`,
  )

/** Orders that were paid, all in one batch each. */
async function paid(...ids: readonly string[]): Promise<void> {
  for (const id of ids) await probe.deliver(body('pay', { order: id, payment: `p${id}` }))
  await probe.work()
}

describe('checkLocally', () => {
  it('finds nothing in what the engine did, whatever it was, and changes nothing', async () => {
    await paid('1', '2', '3')
    await probe.deliver(body('refund', { order: '2', payment: 'p2' }))
    await probe.deliver(body('note', { order: '3', learns: 'x' }))
    await probe.deliver(body('pay', { order: '3', payment: 'p3b' }))
    await probe.deliver(body('after', { order: '1', needs: 'never' }))
    await probe.deliver(body('refund', { order: '1', payment: 'p1', amount: 9900 }))
    await probe.work()
    const engine = await findings()
    expect(await check()).toMatchObject({ opened: 0, closed: 0, compared: 3 })
    expect(await check()).toMatchObject({ opened: 0, closed: 0, compared: 3 })
    expect(await findings()).toEqual(engine)
  })

  it('finds a state that somebody changed, once, and closes it when it is as decided again', async () => {
    await paid('1', '2')
    await probe.rows(`update orders set state = 'refunded' where order_id = '1'`)
    expect(await check()).toMatchObject({ opened: 1 })
    expect(await findings()).toMatchObject([
      {
        kind: 'tampered',
        class: 'contradiction',
        state: 'open',
        order_id: '1',
        evidence: { order: '1', state: 'refunded', decided: 'paid' },
      },
    ])
    expect(await check()).toMatchObject({ opened: 0, closed: 0 })
    await probe.rows(`update orders set state = 'paid' where order_id = '1'`)
    expect(await check()).toMatchObject({ opened: 0, closed: 1 })
    expect(await findings()).toMatchObject([
      { state: 'closed', closed_because: 'the rows say what was decided', times: 2 },
    ])
  })

  it('finds what somebody did to entitlements', async () => {
    await paid('1', '2', '3', '4', '5')
    await probe.deliver(body('refund', { order: '5', payment: 'p5' }))
    await probe.work()
    await probe.rows(`update entitlements set active = false where order_id = '1'`)
    await probe.rows(`update entitlements set quantity = 5 where order_id = '2'`)
    await probe.rows(`delete from entitlements where order_id = '3'`)
    await probe.rows(
      `insert into entitlements (order_id, subject, entitlement, active, granted_by, changed_by)
       select order_id, 'user:9', entitlement, true, granted_by, changed_by from entitlements where order_id = '4'`,
    )
    await probe.rows(`update entitlements set active = true where order_id = '5'`)
    await check()
    expect(await findings()).toMatchObject([
      { kind: 'entitlement_without_state', order_id: '5', evidence: { entitled: 'user:5 pro' } },
      { kind: 'tampered', order_id: '1', evidence: { differs: 'user:1 pro is not active' } },
      {
        kind: 'tampered',
        order_id: '2',
        evidence: { differs: 'user:2 pro is 5, as no decision stated' },
      },
      { kind: 'tampered', order_id: '3', evidence: { differs: 'user:3 pro is gone' } },
      { kind: 'tampered', order_id: '4' },
    ])
  })

  it('finds an order that was changed long ago, and one that nothing says anything of', async () => {
    await paid('1', '2')
    await probe.rows(`insert into orders (order_id, workflow, state) values ('0', 'probe', 'paid')`)
    await probe.rows(`update orders set state = 'pending' where order_id = '2'`)
    const long = new Date(Date.now() - 86_400_000)
    const signal = new AbortController().signal
    expect(await comparison.checkLocally({ from: long, to: long, signal })).toMatchObject({
      opened: 2,
    })
    expect(await findings()).toMatchObject([{ order_id: '0' }, { order_id: '2' }])
  })

  it('leaves orders alone in states that only a newer version has registered', async () => {
    await paid('1', '2')
    await probe.rows(
      `insert into workflow_states (workflow, state, entitles) values ('probe', 'paused', true)`,
    )
    await probe.rows(
      `update orders set state = case order_id when '1' then 'paused' else 'nowhere' end`,
    )
    await check()
    expect(await findings()).toMatchObject([{ kind: 'tampered', order_id: '2' }])
    await probe.rows(`delete from workflow_states where state = 'paused'`)
  })

  it('finds what the app opened an order with changed', async () => {
    const client = await probe.pool.connect()
    await probe.hookledger.openOrder(client, {
      id: '1',
      workflow: 'probe',
      subject: 'user:1',
      expected: { amount: 4900n, currency: 'USD' },
    })
    client.release()
    expect(await check()).toMatchObject({ opened: 0 })
    await probe.rows(`update orders set expected_amount = 100`)
    await check()
    expect(await findings()).toMatchObject([
      { kind: 'tampered', evidence: { differs: '1.00 USD is expected, opened with 49.00 USD' } },
    ])
  })

  it('has nothing against grants, given and ended', async () => {
    const client = await probe.pool.connect()
    const granted = {
      subject: 'user:7',
      entitlements: [{ entitlement: 'pro', quantity: 3 }],
      reason: 'a gift',
      actor: 'ada',
    }
    await probe.hookledger.grant(client, granted as never)
    client.release()
    expect(await check()).toMatchObject({ opened: 0 })
    await probe.rows(`update entitlements set quantity = 9`)
    await check()
    expect(await findings()).toMatchObject([{ kind: 'tampered' }])
  })

  it('finds an effect whose event is gone', async () => {
    await paid('1')
    await probe.rows(`delete from inbox_events`)
    await check()
    expect(await findings()).toMatchObject([
      { kind: 'effect_without_event', order_id: '1', evidence: { effect: 'grant', reference: '' } },
    ])
  })

  it('finds an order of which nothing came, by its age', async () => {
    const client = await probe.pool.connect()
    for (const id of ['1', '2'])
      await probe.hookledger.openOrder(client, { id, workflow: 'probe', subject: 'u' })
    client.release()
    expect(await check()).toMatchObject({ opened: 0 })
    await probe.rows(
      `update orders set opened_at = now() - interval '2 hours', updated_at = now() - interval '2 hours' where order_id = '2'`,
    )
    await check()
    expect(await findings()).toMatchObject([
      { kind: 'order_stuck', class: 'lag', order_id: '2', evidence: { state: 'pending' } },
    ])
    await paid('2')
    await check()
    expect(await findings()).toMatchObject([{ kind: 'order_stuck', state: 'closed' }])
  })

  it('finds what is there twice once the index is gone that forbids it', async () => {
    await paid('1', '2')
    await probe.rows(`alter table fulfillment_effects drop constraint fulfillment_effects_pkey`)
    try {
      await probe.rows(
        `insert into fulfillment_effects (order_id, effect_type, effect_reference, decision_id)
         select order_id, effect_type, effect_reference, decision_id from fulfillment_effects where order_id = '1'`,
      )
      await check()
      expect(await findings()).toMatchObject([
        { kind: 'fulfilled_twice', order_id: '1', evidence: { effect: 'grant', times: '2' } },
      ])
    } finally {
      await probe.reset()
      await probe.rows(
        `alter table fulfillment_effects add constraint fulfillment_effects_pkey primary key (order_id, effect_type, effect_reference)`,
      )
    }
  })

  it('tells of a wait past its deadline where no worker did, and closes it when the event is decided', async () => {
    await paid('1')
    await probe.deliver(body('after', { order: '1', needs: 'evt_note' }))
    await probe.work()
    await probe.rows(`update inbox_deferred set deadline_at = now() - interval '10 minutes'`)
    expect(await check()).toMatchObject({ opened: 1 })
    expect(await findings()).toMatchObject([{ kind: 'wait_overdue', class: 'lag', state: 'open' }])
    await probe.deliver(body('note', { order: '1', id: 'evt_note' }))
    await probe.work()
    await check()
    expect(await findings()).toMatchObject([{ kind: 'wait_overdue', state: 'closed' }])
  })

  it('tells of a source that is silent for longer than it ever was', async () => {
    await probe.rows(
      `insert into sources (provider, provider_account, environment) values ('stripe', 'probe', 'test') on conflict do nothing`,
    )
    await probe.rows(
      `insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes, received_at)
       select source_id, 'evt_old_' || n, 'note', '\\x00', 1, now() - interval '10 hours' - (150 - n) * interval '20 minutes'
       from sources, generate_series(1, 150) n where provider_account = 'probe' order by n`,
    )
    await check()
    expect(await findings()).toMatchObject([
      { kind: 'source_silent', evidence: { source: 'probe', longest_pause: '20 min' } },
    ])
    await probe.deliver(body('note', { order: '1' }))
    await probe.work()
    await check()
    expect(await findings()).toMatchObject([
      { kind: 'source_silent', state: 'closed', closed_because: 'it delivers again' },
    ])
  })
})
