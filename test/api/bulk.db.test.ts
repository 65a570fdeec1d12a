import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { bulkItemsStatement, bulkListStatement } from '../../src/compose/bulk/bulk-views.ts'
import { bulkLoop, runBulk } from '../../src/compose/bulk/bulk-run.ts'
import { PermanentError } from '../../src/core/errors.ts'
import { fulfill, type Decision } from '../../src/workflow/decision.ts'
import { scripted, unknown } from '../support/scripted-destination.ts'
import { money } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { audit } from '../../src/report/audit.ts'
import { startApi, type TestApi } from '../support/console-api.ts'
import {
  createProbe,
  probe,
  probeWorkflow,
  until,
  type Probe,
  type ProbeHooks,
} from '../support/probe.ts'

const crm = scripted()
const hooks: ProbeHooks = {}
const reason = 'the price list was wrong'
let bench: Probe
let api: TestApi
let guarded: TestApi

interface Bulk {
  readonly bulk_id: string
  readonly state: string
  readonly count: number
  readonly done: number
  readonly unchanged: number
  readonly failed: number
  readonly pending: number
  readonly confirm: string
}

beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow(hooks)], destinations: { crm } })
  api = (await startApi(bench.hookledger)).as('operator')
  const careful = bench.another({ console: { approval: { bulkFrom: 2 } } })
  guarded = (await startApi(careful)).as('operator')
})
afterAll(() => bench.close())
beforeEach(async () => {
  crm.reset()
  await bench.reset()
})

async function deadEvents(count: number): Promise<void> {
  hooks.decide = () => {
    throw new PermanentError('no such price')
  }
  await bench.deliver(
    ...Array.from({ length: count }, (_, at) => probe('pay', { order: `order_${at}` })),
  )
  await bench.work()
  delete hooks.decide
}

async function openFindings(count: number): Promise<string[]> {
  const rows = await bench.rows<{ id: string }>(
    `insert into findings (finding_id, kind, class, severity, owner, evidence, due_at)
     select gen_random_uuid(), 'paid_twice', 'contradiction', 'high', 'operations', '{}', now() + n * interval '1 minute'
     from generate_series(1, $1) n returning finding_id as id`,
    [count],
  )
  return rows.map(({ id }) => id)
}

const plan = (by: TestApi, body: object = {}): Promise<Bulk> =>
  by.post<Bulk>('/bulk', { bulk_id: randomUUID(), act: 'replay', filter: {}, reason, ...body })
const step = (by: TestApi, name: string, { bulk_id, confirm }: Bulk): ReturnType<TestApi['ask']> =>
  by.ask('POST', `/bulk/${bulk_id}/${name}`, {
    body: { reason, ...(name === 'start' || name === 'approve' ? { confirm } : {}) },
  })
const seen = ({ bulk_id }: Bulk): Promise<Bulk> => api.get<Bulk>(`/bulk/${bulk_id}`)
const ended = (bulk: Bulk): Promise<Bulk> =>
  until(
    () => seen(bulk),
    ({ state }) => state !== 'running',
  )
const acts = (): Promise<{ act: string; n: number }[]> =>
  bench.rows(
    'select act, actor, count(*)::int as n from operator_acts group by act, actor order by min(act_id)',
  )

describe('a bulk act', () => {
  it('is planned with its exact number and a sample, and nothing of it is done', async () => {
    await deadEvents(25)
    const planned = await plan(api)
    expect(planned).toMatchObject({
      act: 'replay',
      state: 'planned',
      count: 25,
      pending: 25,
      done: 0,
      confirm: '25',
      actor: 'operator@example.com',
      needs_approval: false,
      filter: { states: ['dead'], types: [], source: null, from: null, to: null },
    })
    expect((planned as unknown as { sample: object[] }).sample).toHaveLength(20)
    expect((planned as unknown as { sample: object[] }).sample[0]).toMatchObject({
      number: 1,
      was: 'dead',
      state: 'pending',
      reference: { kind: 'event', id: expect.stringMatching(/^stripe:probe:test\/evt_/) },
      title: expect.stringMatching(/^pay evt_/),
    })
    expect(await bench.rows('select 1 from inbox_dead')).toHaveLength(25)
    expect(await acts()).toMatchObject([{ act: 'bulk plan', n: 1 }])
  })

  it('does each target once with a record of its own, whoever asks how often', async () => {
    await deadEvents(30)
    const planned = await plan(api)
    const started = await Promise.all([1, 2, 3].map(() => step(api, 'start', planned)))
    expect(started.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(await ended(planned)).toMatchObject({ state: 'done', done: 30, pending: 0, failed: 0 })
    expect(await acts()).toEqual([
      { act: 'bulk plan', actor: 'operator@example.com', n: 1 },
      { act: 'bulk start', actor: 'operator@example.com', n: 1 },
      { act: 'replay', actor: 'operator@example.com', n: 30 },
    ])
    expect(await bench.work()).toBe(30)
  })

  it('is frozen: what came later is not among its targets, and what has changed is left alone', async () => {
    await deadEvents(3)
    const planned = await plan(api)
    await deadEvents(2)
    const [first] = await bench.rows<{ event_key: string }>(
      'select event_key from inbox_dead order by event_key limit 1',
    )
    await bench.rows('delete from inbox_dead where event_key = $1', [first?.event_key])
    await step(api, 'start', planned)
    expect(await ended(planned)).toMatchObject({ count: 3, done: 2, unchanged: 1, state: 'done' })
    expect(await bench.rows('select 1 from inbox_dead')).toHaveLength(2)
    for (const change of [
      `update bulk_acts set targets = 5`,
      `update bulk_acts set actor = 'mallory'`,
      `update bulk_items set target = 'event:1'`,
      `delete from bulk_items`,
    ])
      await expect(bench.rows(change)).rejects.toThrow(/does not change|are kept/)
  })

  it('tells what failed by its code and goes on with the others', async () => {
    await deadEvents(4)
    await bench.rows(
      'delete from payloads where event_key = (select min(event_key) from inbox_dead)',
    )
    const planned = await plan(api)
    await step(api, 'start', planned)
    expect(await ended(planned)).toMatchObject({ done: 3, failed: 1, state: 'done' })
    const { items } = await api.get<{ items: object[] }>(`/bulk/${planned.bulk_id}/items`, {
      state: 'failed',
    })
    expect(items).toMatchObject([
      { number: 1, code: 'HKL_INBOX_PAYLOAD_EXPIRED', message: expect.stringContaining('expired') },
    ])
  })

  it('acts on findings: gives them to somebody, dismisses them, repairs them', async () => {
    await openFindings(5)
    const given = await plan(api, {
      act: 'assign',
      filter: { kind: 'paid_twice' },
      details: { owner: 'ada' },
    })
    await step(api, 'start', given)
    expect(await ended(given)).toMatchObject({ done: 5 })
    expect(await bench.rows(`select 1 from findings where owner = 'ada'`)).toHaveLength(5)
    const until = new Date(Date.now() + 86_400_000).toISOString()
    const dismissed = await plan(api, {
      act: 'dismiss',
      filter: { owner: 'ada' },
      details: { until },
    })
    await step(api, 'start', dismissed)
    expect(await ended(dismissed)).toMatchObject({ done: 5 })
    await bench.rows(
      `update findings set state = 'open', dismissed_until = null, dismissed_evidence = null`,
    )
    const chosen = await plan(api, { act: 'repair', details: { choice: null } })
    await step(api, 'start', chosen)
    expect(await ended(chosen)).toMatchObject({ failed: 5, state: 'failed' })
    const kept = await plan(api, { act: 'repair', details: { choice: 'keep' } })
    await step(api, 'start', kept)
    expect(await ended(kept)).toMatchObject({ done: 5, state: 'done' })
    expect(await bench.rows(`select 1 from repairs`)).toHaveLength(5)
    expect(await acts()).toMatchObject([
      { act: 'bulk plan', n: 4 },
      { act: 'bulk start', n: 4 },
      { act: 'findings assign', n: 5 },
      { act: 'findings dismiss', n: 5 },
      { act: expect.stringContaining('repair'), n: 5 },
    ])
  })

  it('acts on operations: sends dead ones again, and discards none that has changed meanwhile', async () => {
    hooks.decide = ({ order }) =>
      fulfill({
        to: 'paid',
        payment: { id: `pay_${order.id}`, money: money(4900, 'usd') },
        effects: [{ type: 'grant', send: [{ to: 'crm', body: {} }] }],
      } as never) as Decision
    crm.otherwise({ kind: 'refused', error: 'HTTP 422', status: 422, settlesEarlier: true })
    await bench.deliver(...['a', 'b', 'c'].map((order) => probe('pay', { order })))
    await bench.work()
    const states = async (): Promise<string[]> =>
      (
        await bench.rows<{ state: string }>('select state from outbox_operations order by order_id')
      ).map(({ state }) => state)
    expect(await states()).toEqual(['dead', 'dead', 'dead'])
    const late = await plan(api, { act: 'discard', filter: { destination: 'crm' } })
    const retried = await plan(api, { act: 'retry', filter: { destination: 'crm', order_id: 'a' } })
    expect([late.count, retried.count]).toEqual([3, 1])
    crm.otherwise(unknown)
    await step(api, 'start', retried)
    expect(await ended(retried)).toMatchObject({ done: 1 })
    await bench.work()
    expect(await states()).toEqual(['uncertain', 'dead', 'dead'])
    await step(api, 'start', late)
    expect(await ended(late)).toMatchObject({ done: 2, unchanged: 1, failed: 0, state: 'done' })
    expect(await states()).toEqual(['uncertain', 'discarded', 'discarded'])
    const { items } = await api.get<{ items: object[] }>(`/bulk/${late.bulk_id}/items`, {
      state: 'unchanged',
    })
    expect(items).toMatchObject([
      { message: 'it was dead, and is uncertain by now', reference: { kind: 'operation' } },
    ])
    expect((await audit(bench.db)).checks.filter((each) => !each.holds)).toEqual([])
    delete hooks.decide
  })

  it('is done by several processes at once, each target by one of them', async () => {
    await openFindings(60)
    const planned = await plan(api, { act: 'assign', details: { owner: 'ada' } })
    await bench.rows(`update bulk_acts set state = 'running', started_at = now()`)
    const others = [bench.another({}), bench.another({}), bench.another({})].map(partsOf)
    await Promise.all(
      others.map(async (parts) => {
        while (await runBulk(parts));
      }),
    )
    expect(await seen(planned)).toMatchObject({ state: 'done', done: 60, unchanged: 0, failed: 0 })
    expect(await acts()).toMatchObject([{ act: 'bulk plan' }, { act: 'findings assign', n: 60 }])
  })

  it('is gone on with as soon as somebody looks, where a process has left it', async () => {
    await openFindings(3)
    const planned = await plan(api, { act: 'assign', details: { owner: 'ada' } })
    await bench.rows(`update bulk_acts set state = 'running', started_at = now()`)
    expect(await ended(planned)).toMatchObject({ state: 'done', done: 3 })
  })

  it('is done by the loop of a process that serves the console, whichever process it was started in', async () => {
    await openFindings(3)
    const planned = await plan(api, { act: 'assign', details: { owner: 'ada' } })
    const loop = bulkLoop(partsOf(bench.another({})))
    loop.start()
    try {
      await bench.rows(`update bulk_acts set state = 'running', started_at = now()`)
      // looks at the table: a question to the API would go on with it by itself
      const [row] = await until(
        () => bench.rows<{ state: string; done: number }>('select state, done from bulk_acts'),
        ([seenRow]) => seenRow?.state !== 'running',
      )
      expect(row).toEqual({ state: 'done', done: planned.count })
    } finally {
      await loop.stop()
    }
  })

  it('is canceled between two targets: what is done stays done, and nothing is done after', async () => {
    await openFindings(400)
    const planned = await plan(api, { act: 'assign', details: { owner: 'ada' } })
    await step(api, 'start', planned)
    const canceled = await step(api, 'cancel', planned)
    expect(canceled).toMatchObject({ status: 200, data: { state: 'canceled' } })
    const { done, pending } = canceled.data as Bulk
    expect(done + pending).toBe(400)
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(await seen(planned)).toMatchObject({ state: 'canceled', done, pending })
    expect(await bench.rows(`select 1 from findings where owner = 'ada'`)).toHaveLength(done)
    expect(await step(api, 'cancel', planned)).toMatchObject({ status: 200 })
    expect(await step(api, 'start', planned)).toMatchObject({ status: 409, code: 'HKL_BULK_STATE' })
    expect((await acts()).filter(({ act }) => act === 'bulk cancel')).toMatchObject([{ n: 1 }])
  })

  it('is planned once under one id, and not where nothing fits', async () => {
    await openFindings(2)
    const body = { bulk_id: randomUUID(), act: 'assign', details: { owner: 'ada' } }
    const [one, two] = await Promise.all([plan(api, body), plan(api, body)])
    expect(one).toEqual(two)
    expect(await acts()).toMatchObject([{ act: 'bulk plan', n: 1 }])
    const other = api.as({ actor: 'eve', roles: ['operator'] })
    await expect(plan(other, body)).rejects.toThrow('HKL_BULK_STATE')
    await expect(plan(api)).rejects.toThrow('HKL_BULK_INVALID')
  })

  it('is started only by whoever planned it, by the number typed, and within a day', async () => {
    await openFindings(2)
    const planned = await plan(api, { act: 'assign', details: { owner: 'ada' } })
    const eve = api.as({ actor: 'eve', roles: ['operator'] })
    expect(await step(eve, 'start', planned)).toMatchObject({ status: 409, code: 'HKL_BULK_STATE' })
    expect(await step(api, 'start', { ...planned, confirm: '3' })).toMatchObject({
      status: 409,
      code: 'HKL_API_CONFIRM',
    })
    const client = await bench.pool.connect()
    await client.query(
      `begin; set local session_replication_role = replica; update bulk_acts set planned_at = now() - interval '25 hours'; commit`,
    )
    client.release()
    expect(await step(api, 'start', planned)).toMatchObject({ status: 409, code: 'HKL_BULK_STATE' })
    expect(await acts()).toMatchObject([{ act: 'bulk plan', n: 1 }])
  })

  it('needs a reason for every step, and leaves no record without one', async () => {
    await openFindings(2)
    const planned = await plan(api, { act: 'assign', details: { owner: 'ada' } })
    const admin = api.as('admin')
    for (const name of ['start', 'approve', 'reject', 'cancel']) {
      const body = { confirm: '2' }
      expect(await admin.ask('POST', `/bulk/${planned.bulk_id}/${name}`, { body })).toMatchObject({
        status: 400,
      })
    }
    await expect(
      plan(api, { act: 'assign', details: { owner: 'ada' }, reason: '' }),
    ).rejects.toThrow('400')
    expect(await acts()).toMatchObject([{ act: 'bulk plan', n: 1 }])
  })
})

describe('a second person', () => {
  it('approves what the configuration asks it for, and nobody approves their own', async () => {
    await openFindings(2)
    const planned = await plan(guarded, { act: 'assign', details: { owner: 'ada' } })
    expect(planned).toMatchObject({ needs_approval: true })
    expect(await step(guarded, 'start', planned)).toMatchObject({
      status: 200,
      data: { state: 'waiting_approval' },
    })
    const own = guarded.as({ actor: 'operator@example.com', roles: ['operator', 'approver'] })
    expect(await step(own, 'approve', planned)).toMatchObject({
      status: 403,
      code: 'HKL_BULK_APPROVER',
    })
    expect(await step(guarded, 'approve', planned)).toMatchObject({
      status: 403,
      code: 'HKL_API_FORBIDDEN',
    })
    await expect(
      bench.rows(
        `update bulk_acts set state = 'running', approved_by = actor, approved_at = now()`,
      ),
    ).rejects.toThrow('bulk_acts_approver_check')
    await expect(bench.rows(`update bulk_acts set state = 'running'`)).rejects.toThrow(
      'bulk_acts_approval_check',
    )
    expect(await seen(planned)).toMatchObject({ state: 'waiting_approval', done: 0 })
    const approver = guarded.as('approver')
    const answers = await Promise.all([1, 2].map(() => step(approver, 'approve', planned)))
    expect(answers.map(({ status }) => status)).toContain(200)
    expect(await ended(planned)).toMatchObject({
      state: 'done',
      done: 2,
      approved_by: 'approver@example.com',
    })
    expect((await acts()).map(({ act, n }) => [act, n])).toEqual([
      ['bulk plan', 1],
      ['bulk start', 1],
      ['bulk approve', 1],
      ['findings assign', 2],
    ])
  })

  it('rejects it, and it never runs', async () => {
    await openFindings(2)
    const planned = await plan(guarded, { act: 'assign', details: { owner: 'ada' } })
    await step(guarded, 'start', planned)
    const approver = guarded.as('approver')
    expect(await step(approver, 'reject', planned)).toMatchObject({ data: { state: 'rejected' } })
    expect(await step(approver, 'approve', planned)).toMatchObject({ status: 409 })
    expect(await bench.rows(`select 1 from findings where owner = 'ada'`)).toEqual([])
  })

  it('is not needed below the number of the configuration', async () => {
    await openFindings(1)
    const planned = await plan(guarded, { act: 'assign', details: { owner: 'ada' } })
    await step(guarded, 'start', planned)
    expect(await ended(planned)).toMatchObject({ state: 'done', done: 1 })
  })
})

describe('the list of bulk acts', () => {
  it('is paged from the newest on', async () => {
    await openFindings(1)
    const made: string[] = []
    for (let n = 0; n < 5; n++)
      made.unshift((await plan(api, { act: 'assign', details: { owner: `ada ${n}` } })).bulk_id)
    const read: string[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: { items: Bulk[]; next: string | null } = await api.get('/bulk', {
        limit: '2',
        cursor,
      })
      read.push(...page.items.map(({ bulk_id }) => bulk_id))
      cursor = page.next
    }
    expect(read).toEqual(made)
    expect(await api.get('/bulk', { state: 'done' })).toEqual({ items: [], next: null })
  })

  it('is read by its indexes, however many there are', async () => {
    await bench.rows(
      `insert into bulk_acts (bulk_id, act, filter, details, targets, reason, actor, needs_approval, planned_at)
       select gen_random_uuid(), 'assign', '{}', '{}', 1, 'r', 'a', false, now() - n * interval '1 second' from generate_series(1, 3000) n`,
    )
    await bench.rows(
      `insert into bulk_items (bulk_id, number, target, was)
       select b.bulk_id, n, 'finding:' || gen_random_uuid(), 'open' from
         (select bulk_id from bulk_acts order by planned_at desc limit 100) b cross join generate_series(1, 200) n`,
    )
    const [newest] = await bench.rows<{ bulk_id: string }>(
      'select bulk_id from bulk_acts order by planned_at desc limit 1',
    )
    await bench.rows('analyze bulk_acts, bulk_items')
    const explained = async (text: string, values: unknown[]): Promise<string> =>
      (await bench.rows<{ 'QUERY PLAN': string }>(`explain ${text}`, values))
        .map((row) => row['QUERY PLAN'])
        .join('\n')
    const list = await explained(bulkListStatement('hookledger.'), [null, null, null, 51])
    expect(list).toContain('bulk_acts_planned_idx')
    expect(list).not.toMatch(/Seq Scan on bulk_|Sort/)
    const items = await explained(bulkItemsStatement('hookledger.'), [
      newest?.bulk_id,
      null,
      100,
      51,
    ])
    expect(items).not.toContain('Seq Scan on bulk_items')
  })
})
