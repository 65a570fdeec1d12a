import { stripe } from 'hookledger'
import { afterEach, describe, expect, it } from 'vitest'
import { partsOf } from '../../src/hookledger.ts'
import { probe, probeSecret, type ProbeHooks } from '../support/probe.ts'
import {
  checkpointOf,
  createReconcileProbe,
  doors,
  type ReconcileProbe,
  type ReconcileProbeOptions,
} from '../support/reconcile-probe.ts'
import { garbage, listed, unavailable } from '../support/scripted-records.ts'
import { RecordsError } from '../../src/workflow/records.ts'

const closing: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function create(options?: ReconcileProbeOptions): Promise<ReconcileProbe> {
  const made = await createReconcileProbe(options)
  closing.push(made.close)
  return made
}

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** Events of the provider's list that were never delivered, so many minutes apart. */
function lost(count: number, everyMs = minute): ReturnType<typeof listed>[] {
  return Array.from({ length: count }, (_, at) =>
    listed(probe('note', { id: `evt_lost_${at}`, order: `order-${at % 3}` }), (at + 1) * everyMs),
  )
}

describe('a pass over an event list', () => {
  it('puts in what was never delivered, which then takes the same way as a delivery', async () => {
    const synthetic: boolean[] = []
    const hooks: ProbeHooks = {
      decide: ({ event }) => {
        synthetic.push(event.synthetic)
        return undefined
      },
    }
    const made = await create({ hooks })
    const delivered = probe('pay', { order: '1', id: 'evt_delivered' })
    const dropped = probe('note', { order: '1', id: 'evt_dropped' })
    await made.deliver(delivered)
    await made.work()
    made.records.held.push(listed(delivered, hour), listed(dropped, hour))
    const run = await made.pass()
    expect(run).toMatchObject({ state: 'complete', injected: 1, opened: 1, error: null })
    expect(await doors(made)).toEqual({ evt_delivered: 'webhook', evt_dropped: 'reconciliation' })
    expect(await made.rows(`select event_id, kind from decisions where final order by 1`)).toEqual([
      { event_id: 'evt_delivered', kind: 'fulfilled' },
      { event_id: 'evt_dropped', kind: 'fulfilled' },
    ])
    expect(synthetic).toEqual([false, true])
    expect(await made.rows(`select count(*)::int as n from deliveries`)).toEqual([{ n: 1 }])
  })

  it('changes nothing the second time', async () => {
    const made = await create()
    made.records.held.push(...lost(10))
    await made.pass()
    const before = await tables(made)
    const run = await made.pass()
    expect(run).toMatchObject({ state: 'complete', injected: 0, opened: 0, closed: 0 })
    expect(await tables(made)).toEqual(before)
  })

  it('closes the finding of a lost event once that is decided', async () => {
    const made = await create()
    made.records.held.push(...lost(1))
    const run = await made.pass()
    expect(run).toMatchObject({ opened: 1, closed: 1 })
    expect(await made.rows(`select kind, class, state from findings`)).toEqual([
      { kind: 'event_missing', class: 'lag', state: 'closed' },
    ])
  })

  it('stores the body as the list has it, under its own hash', async () => {
    const made = await create()
    const body = probe('note', { id: 'evt_body', order: '1', text: 'grün \u{1F600} "quoted"' })
    made.records.held.push(listed(body, hour))
    await made.pass()
    const [row] = await made.rows<{ body: Buffer; sound: boolean }>(
      `select body, sha256(body) = body_sha256 and octet_length(body) = body_bytes as sound
       from payloads join inbox_events using (event_key)`,
    )
    expect(JSON.parse(row?.body.toString() ?? '')).toEqual(body)
    expect(row?.sound).toBe(true)
  })

  it('lets a webhook that comes later find its event there', async () => {
    const made = await create()
    const body = probe('note', { id: 'evt_both', order: '1' })
    made.records.held.push(listed(body, hour))
    await made.pass()
    await made.deliver(body)
    await made.work()
    expect(await doors(made)).toEqual({ evt_both: 'reconciliation' })
    expect(await made.rows(`select count(*)::int as n from fulfillment_effects`)).toEqual([
      { n: 1 },
    ])
  })

  it('goes over every page of every slice, and says how many of each', async () => {
    const made = await create({ pageSize: 4, settings: { sliceMs: hour } })
    made.records.held.push(...lost(50, 10 * minute))
    const run = await made.pass()
    expect(run.injected).toBe(50)
    expect(run.coverage['event']).toMatchObject({
      records: 50,
      injected: 50,
      known: 0,
      accounts: 1,
    })
    const { slices = 0, pages = 0 } = run.coverage['event'] ?? {}
    expect(pages).toBeGreaterThanOrEqual(13)
    expect(slices).toBeGreaterThan(5)
    expect(run.calls).toBe(made.records.asked.length)
  })

  it('leaves alone what is too recent, and takes it the next time', async () => {
    const made = await create({ settings: { lagMs: 2 * minute } })
    made.records.held.push(listed(probe('note', { id: 'evt_young', order: '1' }), minute))
    expect((await made.pass()).injected).toBe(0)
    const later = await made.other({ lagMs: 0 })
    const { runs } = await later.pass({ how: 'manual', actor: 'test' })
    expect(runs[0]?.injected).toBe(1)
  })

  it('sees what was listed late, as long as the overlap reaches', async () => {
    const made = await create({ settings: { overlapMs: hour } })
    await made.pass()
    made.records.held.push(listed(probe('note', { id: 'evt_late', order: '1' }), 50 * minute))
    expect((await made.pass()).injected).toBe(1)
  })

  it('sees what was listed later than that in a deep pass', async () => {
    const made = await create({ settings: { overlapMs: hour, deepMs: 3 * day } })
    await made.pass()
    made.records.held.push(listed(probe('note', { id: 'evt_later', order: '1' }), day))
    expect((await made.pass()).injected).toBe(0)
    const { through } = await checkpointOf(made)
    expect((await made.pass({ how: 'deep' })).injected).toBe(1)
    expect((await checkpointOf(made)).through).toBeGreaterThanOrEqual(through)
  })

  it('never looks further back than the installation unless a window is given by hand', async () => {
    const made = await create({ installedAgoMs: hour })
    made.records.held.push(listed(probe('note', { id: 'evt_old', order: '1' }), 3 * hour))
    expect((await made.pass()).injected).toBe(0)
    expect((await made.pass({ how: 'deep' })).injected).toBe(0)
    const before = await checkpointOf(made)
    const run = await made.pass({ how: 'range', from: new Date(Date.now() - 4 * hour) })
    expect(run).toMatchObject({ state: 'complete', injected: 1 })
    expect(await checkpointOf(made)).toEqual(before)
  })

  it('takes only events that something handles where the configuration says so', async () => {
    const made = await create({ settings: { events: 'handled' } })
    made.records.held.push(
      listed(probe('unheard', { id: 'evt_unheard' }), hour),
      listed(probe('note', { id: 'evt_note', order: '1' }), hour),
    )
    await made.pass()
    expect(Object.keys(await doors(made))).toEqual(['evt_note'])
  })

  it('takes every event otherwise, and makes no finding of one that nothing handles', async () => {
    const made = await create()
    made.records.held.push(listed(probe('unheard', { id: 'evt_unheard' }), hour))
    expect(await made.pass()).toMatchObject({ injected: 1, opened: 0 })
    expect(await made.rows(`select state from webhook_inbox`)).toEqual([{ state: 'ignored' }])
  })

  it('says loudly what the provider does not keep any more, and goes on with the rest', async () => {
    const made = await create({ reachMs: 2 * day })
    made.records.held.push(...lost(2))
    const run = await made.pass()
    expect(run).toMatchObject({ state: 'complete', injected: 2 })
    const [row] = await made.rows<{ state: string; severity: string; evidence: object }>(
      `select state, severity, evidence from findings where kind = 'beyond_reach'`,
    )
    expect(row).toMatchObject({ state: 'open', severity: 'high', evidence: { record: 'event' } })
    await made.pass()
    expect(
      await made.rows(`select count(*)::int as n from findings where kind = 'beyond_reach'`),
    ).toEqual([{ n: 1 }])
  })

  it('opens one finding of what is past the reach, whatever times were asked for', async () => {
    const made = await create({ reachMs: 2 * day })
    const at = (days: number): Date => new Date(Date.now() - days * day)
    const earliest = at(30)
    for (const from of [at(20), earliest, at(10)])
      await made.pass({ how: 'range', from, to: at(1) })
    const found = await made.rows<{ evidence: { from: string } }>(
      `select evidence from findings where kind = 'beyond_reach'`,
    )
    expect(found.map(({ evidence }) => evidence.from)).toEqual([earliest.toISOString()])
  })

  it('goes through each connected account under its own namespace', async () => {
    const accounts = ['acct_1', 'acct_2', 'acct_3']
    const made = await create({ accounts, connect: ['acct_2', 'acct_3'] })
    for (const account of accounts) {
      made.records.held.push(
        listed(probe('note', { id: 'evt_same', order: `of-${account}`, account }), hour, account),
      )
    }
    const run = await made.pass()
    expect(run).toMatchObject({ state: 'complete', injected: 3 })
    expect(run.coverage['event']?.accounts).toBe(3)
    expect(await made.rows(`select provider_account, state from webhook_inbox order by 1`)).toEqual(
      accounts.map((account) => ({ provider_account: account, state: 'processed' })),
    )
  })
})

/** Everything that a second pass must not change. */
async function tables(made: ReconcileProbe): Promise<unknown> {
  return made.rows(`select
    (select count(*) from inbox_events) as events, (select count(*) from ledger_decisions) as decisions,
    (select count(*) from findings) as findings, (select count(*) from fulfillment_effects) as effects,
    (select jsonb_agg(to_jsonb(o) order by order_id) from orders o) as orders,
    (select jsonb_agg(jsonb_build_array(finding_id, state, closed_at) order by finding_id) from findings) as states`)
}

describe('a pass that cannot go through everything', () => {
  it('moves nothing for a page that failed, keeps what came before it, and goes on from there', async () => {
    const made = await create({ pageSize: 2, settings: { sliceMs: day * 30 } })
    made.records.held.push(...lost(9))
    made.records.faults.push(
      () => null,
      () => null,
      garbage,
    )
    const run = await made.pass()
    expect(run).toMatchObject({ state: 'incomplete', injected: 4 })
    expect(run.error).toContain('HTML under status 200')
    expect((await checkpointOf(made)).inWork).toBe(true)
    made.records.asked.length = 0
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 5 })
    expect(made.records.asked[0]?.cursor).not.toBeNull()
    expect((await checkpointOf(made)).inWork).toBe(false)
  })

  it('backs off from a provider that is not available, and is complete when it answers again', async () => {
    const made = await create()
    made.records.held.push(...lost(2))
    made.records.faults.push(...unavailable(2))
    const run = await made.pass()
    expect(run).toMatchObject({ state: 'complete', injected: 2 })
    expect(run.calls).toBe((run.coverage['event']?.pages ?? 0) + 2)
  })

  it('begins a slice anew whose cursor is not known any more', async () => {
    const made = await create({ pageSize: 2, settings: { sliceMs: day * 30 } })
    made.records.held.push(...lost(7))
    const lostCursor = (): never => {
      throw new RecordsError('cursor_lost', 'no such cursor')
    }
    made.records.faults.push(
      () => null,
      () => null,
      lostCursor,
    )
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 7 })
  })

  it('does not go round for ever in a list that loses every cursor or repeats itself', async () => {
    const made = await create({ pageSize: 2, settings: { sliceMs: day * 30 } })
    made.records.held.push(...lost(7))
    for (let at = 0; at < 20; at++) {
      made.records.faults.push(({ cursor }) => {
        if (cursor !== null) throw new RecordsError('cursor_lost', 'no such cursor')
        return null
      })
    }
    const run = await made.pass()
    expect(run.state).toBe('incomplete')
    expect(made.records.asked.length).toBeLessThan(12)
    made.records.faults.length = 0
    const [first] = made.records.held
    made.records.faults.push(
      () => ({ records: first === undefined ? [] : [first], next: 'again' }),
      () => ({ records: [], next: 'again' }),
    )
    expect((await made.pass()).error).toContain('the page that it gave before')
    expect(await made.pass()).toMatchObject({ state: 'complete' })
    expect(Object.keys(await doors(made))).toHaveLength(7)
  })

  it('stores nothing of a page that names what no key can hold', async () => {
    const made = await create()
    made.records.held.push(
      listed(probe('note', { id: 'x'.repeat(300), order: '1' }), hour),
      listed(probe('note', { id: 'evt_beside', order: '1' }), hour),
    )
    expect((await made.pass()).state).toBe('incomplete')
    expect(await doors(made)).toEqual({})
  })

  it('ends with its calls, and the next pass takes up where it ended', async () => {
    const made = await create({
      pageSize: 2,
      settings: { callsPerPass: 10, sliceMs: day * 30 },
    })
    made.records.held.push(...lost(30))
    const injected: number[] = []
    for (let passes = 0; passes < 6; passes++) {
      const run = await made.pass()
      injected.push(run.injected)
      if (run.state === 'complete') break
      expect(run.error).toContain('callsPerPass')
      expect(run.calls).toBeLessThanOrEqual(10)
    }
    expect(injected.reduce((sum, each) => sum + each, 0)).toBe(30)
    expect(injected).toEqual([16, 14])
  })

  it('reaches every account in the end, though no pass has calls for all of them', async () => {
    const accounts = ['acct_1', 'acct_2', 'acct_3']
    const made = await create({
      accounts,
      connect: ['acct_2', 'acct_3'],
      pageSize: 1,
      settings: { callsPerPass: 8, sliceMs: day * 30 },
    })
    for (const account of accounts) {
      for (let at = 1; at <= 4; at++) {
        const body = probe('note', { id: `evt_${at}`, order: `${account}-${at}`, account })
        made.records.held.push(listed(body, at * hour, account))
      }
    }
    // a new record of the first account, every time: it would use up all calls if it always came first
    for (let passes = 0; passes < 5; passes++) {
      const body = probe('note', { order: `more-${passes}`, account: 'acct_1' })
      made.records.held.push(listed(body, minute, 'acct_1'))
      await made.pass()
    }
    expect(
      await made.rows(
        `select provider_account, count(*)::int as n from webhook_inbox where event_id like 'evt__' group by 1 order by 1`,
      ),
    ).toEqual(accounts.map((account) => ({ provider_account: account, n: 4 })))
  })

  it('says that nobody decides where no worker runs, and the next pass is complete', async () => {
    const made = await create({ decides: false, settings: { settleMs: 300 } })
    made.records.held.push(...lost(1))
    const run = await made.pass()
    expect(run).toMatchObject({ state: 'incomplete', injected: 1, closed: 0 })
    expect(run.error).toContain('a worker runs')
    await made.work()
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 0, closed: 1 })
  })

  it('ends when it is told to, and the next pass takes up where it ended', async () => {
    const made = await create({ pageSize: 2, settings: { sliceMs: day * 30 } })
    made.records.held.push(...lost(8))
    const stopping = new AbortController()
    made.records.beforeAnswer = () => {
      if (made.records.asked.length === 3) stopping.abort()
    }
    const run = await made.pass({ signal: stopping.signal })
    expect(run.state).toBe('incomplete')
    expect(run.injected).toBeLessThan(8)
    made.records.beforeAnswer = null
    const rest = await made.pass()
    expect(rest.state).toBe('complete')
    expect(run.injected + rest.injected).toBe(8)
  })

  it('names a source or a kind that there is not, and what can be asked', async () => {
    const made = await create()
    await expect(made.pass({ sources: ['prob'] })).rejects.toMatchObject({
      code: 'HKL_CONFIG_UNKNOWN_NAME',
      message: expect.stringContaining('did you mean "probe"'),
    })
    await expect(made.pass({ kinds: ['events'] })).rejects.toMatchObject({
      code: 'HKL_CONFIG_UNKNOWN_NAME',
    })
  })

  it('says so where no source can be asked', async () => {
    const made = await create()
    const deaf = made.another({
      sources: { probe: stripe({ environment: 'test', signingSecrets: [probeSecret] }) },
    })
    const reconciler = await partsOf(deaf).reconciler()
    await expect(reconciler.pass({ how: 'manual', actor: 'test' })).rejects.toMatchObject({
      code: 'HKL_RECONCILE_NO_RECORDS',
    })
  })
})

describe('the record of a pass', () => {
  it('keeps coverage, calls, counts and who ran it', async () => {
    const made = await create()
    made.records.held.push(...lost(3))
    const run = await made.pass({ actor: 'cli:ana' })
    const [row] = await made.rows(
      `select run_id::text, source, how, actor, state, calls, injected, opened, closed, error, coverage,
         finished_at is not null as finished, compared_at is not null as compared from reconciliation_runs`,
    )
    expect(row).toEqual({
      run_id: run.runId,
      source: 'probe',
      how: 'manual',
      actor: 'cli:ana',
      state: 'complete',
      calls: run.calls,
      injected: 3,
      opened: 3,
      closed: 3,
      error: null,
      coverage: run.coverage,
      finished: true,
      compared: true,
    })
  })

  it('tells what it does while it does it', async () => {
    const made = await create()
    made.records.held.push(...lost(3))
    const steps = new Set<string>()
    await made.pass({ onProgress: ({ step, source }) => steps.add(`${source} ${step}`) })
    expect([...steps].sort()).toEqual(['probe comparing', 'probe listing', 'probe settling'])
  })

  it('does not leave a run running whose process is gone', async () => {
    const made = await create()
    await made.rows(
      `insert into reconciliation_runs (run_id, source, how, actor, started_at, seen_at)
       values (gen_random_uuid(), 'probe', 'scheduled', 'gone', now() - interval '1 hour', now() - interval '50 minutes')`,
    )
    await made.pass()
    expect(await made.rows(`select state from reconciliation_runs where actor = 'gone'`)).toEqual([
      { state: 'failed' },
    ])
  })
})
