import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { explainText } from '../../src/cli/explain-text.ts'
import { statusText } from '../../src/cli/status.ts'
import type { Style } from '../../src/cli/output.ts'
import { runUpkeep } from '../../src/compose/upkeep.ts'
import { defaultLimits } from '../../src/core/limits.ts'
import { partsOf } from '../../src/hookledger.ts'
import { tellOverdue } from '../../src/inbox/gather/overdue.ts'
import { releaseUnasked, rescueGathers } from '../../src/inbox/gather-net.ts'
import { runBatch, type RunReport } from '../../src/inbox/run-batch.ts'
import { replayEvent } from '../../src/inbox/replay.ts'
import type { WorkContext } from '../../src/inbox/work-batch.ts'
import { audit } from '../../src/report/audit.ts'
import { explain, type Explanation } from '../../src/report/explain.ts'
import { status } from '../../src/report/status.ts'
import { isWorkedOff } from '../../src/report/summary.ts'
import { mirroredSources, mirrorWorkflow } from '../support/mirror-workflow.ts'
import { answerNow, sendRequest, storeAnswer } from '../support/played-gatherer.ts'
import { createProbe, probe, probeWorkflow, type Probe, type ProbeBody } from '../support/probe.ts'
import { seriesOf } from './gauge-series.ts'

let bench: Probe
let work: WorkContext
beforeAll(async () => {
  bench = await createProbe({ workflows: [mirrorWorkflow()], sources: mirroredSources })
  ;({ work } = await partsOf(bench.hookledger).contexts())
})
afterAll(() => bench.close())
beforeEach(() => bench.reset())

const same = (text: string): string => text
const plain: Style = { good: same, bad: same, warning: same, strong: same, faint: same }
const batch = (): Promise<RunReport> => runBatch(work, { kind: 'next', after: 0n, limit: 500 })
const look = (id: string): ProbeBody => probe('look', { id, order: 'o1', plan: 'p1' })

async function deliver(...bodies: ProbeBody[]): Promise<void> {
  await bench.deliver(...bodies)
  await batch()
}

async function explained(id: string): Promise<Explanation> {
  const found = await explain(bench.db, id)
  if (found === null) throw new Error(`${id} is unknown`)
  return found
}

const told = async (id: string): Promise<string> => explainText(await explained(id), plain)

async function broken(): Promise<string[]> {
  return (await audit(bench.db)).checks.filter((each) => !each.holds).map((each) => each.check)
}

describe('an event that waits for an answer', () => {
  beforeEach(() => deliver(look('evt_1'), look('evt_2')))

  it('is pending in the inbox, which says what it waits for and why that takes time', async () => {
    await bench.rows(
      `update fetches set attempts = 2, last_error = 'answered 503', due_at = '2030-01-01'`,
    )
    expect(
      await bench.rows(
        `select event_id, state, order_id, waits_for, last_error, next_attempt_at from webhook_inbox where event_id = 'evt_1'`,
      ),
    ).toEqual([
      {
        event_id: 'evt_1',
        state: 'pending',
        order_id: 'o1',
        waits_for: 'the answer about plan p1',
        last_error: 'answered 503',
        next_attempt_at: new Date('2030-01-01'),
      },
    ])
  })

  it('counts as pending in status and gauges, with the request that serves both', async () => {
    await bench.rows(`update fetches set attempts = 2, last_error = 'answered 503'`)
    await bench.rows(
      `insert into fetch_budgets (budget, tokens, failures, closed_until) values ('source:probe', 1, 20, now() + interval '1 minute')`,
    )
    const report = await status(bench.db)
    expect(report.events.pending).toBe(2)
    expect(report.pending).toMatchObject({ ready: 0, gathering: 2 })
    expect(report.pending.oldest_age_ms).not.toBeNull()
    expect(report.gathering).toMatchObject({
      requests: 1,
      failing: 1,
      last_error: 'answered 503',
      paused: [{ budget: 'source:probe', failures: 20 }],
    })
    const text = statusText(report, plain)
    expect(text).toContain('2 waiting for an answer')
    expect(text).toContain('1 failing (answered 503)')
    expect(text).toContain('source:probe is left alone until')
    expect(await seriesOf(bench.db)).toMatchObject({
      'inbox_backlog gathers': 2,
      fetches_open: 1,
      fetches_failing: 1,
      fetch_budgets_paused: 1,
    })
    expect(await isWorkedOff(bench.db)).toBe(false)
  })

  it('is explained by itself, by its order and by the object, before there is an order', async () => {
    for (const id of ['evt_1', 'o1', 'p1']) {
      const text = await told(id)
      expect(text, id).toContain('look evt_1 is pending: waits for the answer about plan p1')
      expect(text, id).toContain('plan p1 is to be looked at since')
    }
    expect((await explained('o1')).asked).toMatchObject({ kind: 'order', order_ids: ['o1'] })
    expect((await explained('p1')).asked).toMatchObject({ kind: 'name', order_ids: ['o1'] })
  })

  it('is on a list that the audit knows, and replaying it leaves it there', async () => {
    expect(await broken()).toEqual([])
    expect(await replayEvent(bench.db, { id: 'evt_1' }, { reason: 'r', actor: 'a' })).toMatchObject(
      { outcome: 'pending' },
    )
    expect(await bench.rows('select 1 from inbox_gathers where waiting')).toHaveLength(2)
    await bench.rows(`update inbox_gathers set waiting = false`)
    expect(await broken()).toEqual(['event_in_no_state'])
  })

  it('asks again where its request is lost, and leaves nothing behind where it went another way', async () => {
    expect(await rescueGathers(bench.db)).toBe(0)
    await bench.rows(`update inbox_gathers set asked_at = now() - interval '2 minutes'`)
    expect(await rescueGathers(bench.db)).toBe(0)
    await bench.rows('delete from fetches')
    expect(await broken()).toEqual(['waits_for_no_request'])
    expect(await rescueGathers(bench.db)).toBe(2)
    expect((await batch()).asked).toHaveLength(2)
    expect(await broken()).toEqual([])
    await bench.rows(
      `update inbox_gathers set waiting = false, asked_at = now() - interval '1 day'`,
    )
    expect(await rescueGathers(bench.db)).toBe(0)
    expect(await bench.rows('select 1 from inbox_gathers')).toEqual([])
  })

  it('keeps its body past its time, and so does an answer that it is about to be decided from', async () => {
    await answerNow(bench, 'plan', 'p1', { status: 'active' })
    const days = { ...defaultLimits, payloadRetentionDays: 1 }
    await age(40)
    expect(await runUpkeep(bench.db, days)).toMatchObject({ evidenceDropped: 0 })
    await batch()
    expect(await runUpkeep(bench.db, days)).toMatchObject({ evidenceDropped: 1 })
    expect(await bench.rows('select body, body_bytes > 0 as had from evidence')).toEqual([
      { body: null, had: true },
    ])
    expect(await broken()).toEqual([])
  })
})

describe('a workflow that looks at nothing any more', () => {
  it('closes what a person was told of such a request, and nothing of other requests', async () => {
    await deliver(look('evt_1'), probe('ask', { id: 'evt_2', order: 'o2' }))
    const gathering = await partsOf(bench.hookledger).gatherContext()
    await bench.rows(`update fetches set asked_at = now() - interval '2 hours'`)
    expect(await tellOverdue(gathering)).toBe(2)
    const { registry } = work
    const [plans] = [...registry.workflows.values()]
    const handlers = new Map([...(plans?.handlers ?? [])].filter(([type]) => type !== 'look'))
    const newer = { workflows: new Map([['plans', { ...plans, handlers }]]) } as never
    const context = { ...work, registry: newer, mayIgnore: () => Promise.resolve(true) }
    expect(await releaseUnasked(context)).toBe(1)
    expect(
      await bench.rows(
        `select order_id, state, closed_because from findings where kind = 'fetch_overdue' order by order_id`,
      ),
    ).toEqual([
      { order_id: 'o1', state: 'closed', closed_because: 'nobody asks for it any more' },
      { order_id: 'o2', state: 'open', closed_because: null },
    ])
  })

  it('lets go of what waits for its requests: it is ignored under the present configuration', async () => {
    await deliver(look('evt_1'), look('evt_2'))
    expect(await releaseUnasked(work)).toBe(0)
    const plain = bench.another({ workflows: [probeWorkflow()] })
    const context = (await partsOf(plain).contexts()).work
    // an older process does not judge what a newer one may know
    expect(await releaseUnasked({ ...context, mayIgnore: () => Promise.resolve(false) })).toBe(0)
    expect(await releaseUnasked({ ...context, mayIgnore: () => Promise.resolve(true) })).toBe(2)
    expect(await bench.rows('select 1 from fetches')).toEqual([])
    await runBatch(
      { ...context, mayIgnore: () => Promise.resolve(true) },
      { kind: 'next', after: 0n, limit: 500 },
    )
    expect(await bench.rows('select distinct state from webhook_inbox')).toEqual([
      { state: 'ignored' },
    ])
    expect(await broken()).toEqual([])
  })
})

/** Makes answers older than they are, as only the owner can. */
async function age(days: number): Promise<void> {
  const client = await bench.pool.connect()
  try {
    await client.query('set session_replication_role = replica')
    await client.query(
      `update evidence set fetched_at = now() - ${days} * interval '1 day', requested_at = now() - ${days} * interval '1 day'`,
    )
    await client.query('reset session_replication_role')
  } finally {
    client.release()
  }
}

describe('a decision that was made from an answer', () => {
  it('is explained by it: what was looked at, which answer, when it was asked', async () => {
    await deliver(look('evt_1'))
    const first = await sendRequest(bench, 'plan', 'p1')
    await deliver(look('evt_2'))
    await answerNow(bench, 'plan', 'p1', { status: 'active' })
    await storeAnswer(bench, first, { status: 'late' })
    await bench.rows('update evidence set is_late = true where number = 1')
    await batch()
    const [record] = (await explained('o1')).records
    expect(record?.looks).toMatchObject([
      { kind: 'plan', object_id: 'p1', sent: '2', answered: '2', applied: '2', waiting: 0 },
    ])
    const text = await told('o1')
    expect(text).toMatch(/looked at plan p1: answer 2, asked 20/)
    expect(text).toMatch(
      /moved, none → active\n\s+because .*\n\s+looked at plan p1: answer 2 of 20/,
    )
    expect(text).toMatch(
      /looked at plan p1: answer 1, asked .*\n\s+it came after the answer to a later request/,
    )
    expect(await broken()).toEqual([])
  })

  it('stays explained when the object is gone', async () => {
    await deliver(look('evt_1'))
    await answerNow(bench, 'plan', 'p1', null)
    await batch()
    expect(await told('o1')).toContain(', there is none (any more)')
    expect(await broken()).toEqual([])
  })
})

describe('read_evidence', () => {
  it('shows an answer to who says why, and records it first; evidence itself never changes', async () => {
    await deliver(look('evt_1'))
    await answerNow(bench, 'plan', 'p1', { status: 'active' })
    const read = `select convert_from(read_evidence((select evidence_id from evidence), $1, 'ada'), 'UTF8') as body`
    expect(await bench.rows(read, ['a complaint'])).toEqual([
      { body: '{"value":{"status":"active"}}' },
    ])
    expect(
      await bench.rows(
        `select event_key, evidence_id is not null as of, reason, actor from payload_reads`,
      ),
    ).toEqual([{ event_key: null, of: true, reason: 'a complaint', actor: 'ada' }])
    await expect(bench.rows(read, [' '])).rejects.toMatchObject({ code: '22023' })
    await expect(bench.rows(`select read_evidence(0, 'r', 'a')`)).rejects.toMatchObject({
      code: 'P0002',
    })
    for (const change of [
      `update evidence set body = '{"value":{"status":"late"}}'`,
      `update evidence set number = 9`,
      `update evidence set fetched_at = now()`,
      'delete from evidence',
    ]) {
      await expect(bench.rows(change), change).rejects.toMatchObject({ code: '42501' })
    }
    await bench.rows('update evidence set body = null')
    expect(await bench.rows(read, ['again'])).toEqual([{ body: null }])
  })
})
