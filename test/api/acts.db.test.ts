import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PermanentError } from '../../src/core/errors.ts'
import { fulfill, skip, type Decision } from '../../src/workflow/decision.ts'
import { money } from 'hookledger'
import { startApi, type TestApi } from '../support/console-api.ts'
import { createProbe, probe, probeWorkflow, type Probe, type ProbeHooks } from '../support/probe.ts'
import { scripted, unknown } from '../support/scripted-destination.ts'

const crm = scripted()
const hooks: ProbeHooks = {}
const reason = 'ticket 7'
const actor = 'operator@example.com'
let bench: Probe
let api: TestApi

beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow(hooks)], destinations: { crm } })
  api = (await startApi(bench.hookledger)).as('operator')
})
afterAll(() => bench.close())
beforeEach(async () => {
  crm.reset()
  delete hooks.decide
  await bench.reset()
})

const acts = (): Promise<object[]> =>
  bench.rows('select act, target, reason, actor from operator_acts order by act_id')

function sending(): Decision {
  return fulfill({
    to: 'paid',
    payment: { id: 'pay_1', money: money(4900, 'usd') },
    effects: [{ type: 'grant', send: [{ to: 'crm', body: { hello: 1 } }] }],
  } as never) as Decision
}

async function operation(answer: 'dead' | 'uncertain'): Promise<string> {
  hooks.decide = sending
  crm.next(
    answer === 'uncertain'
      ? unknown
      : { kind: 'refused', error: 'HTTP 422', status: 422, settlesEarlier: true },
  )
  await bench.deliver(probe('pay', { order: 'o1' }))
  await bench.work()
  const [row] = await bench.rows<{ operation_id: string; state: string }>(
    'select operation_id, state from outbox_operations',
  )
  expect(row?.state).toBe(answer)
  return row?.operation_id ?? ''
}

async function finding(): Promise<string> {
  const [row] = await bench.rows<{ finding_id: string }>(
    `insert into findings (finding_id, kind, class, severity, owner, evidence, due_at)
     values (gen_random_uuid(), 'paid_twice', 'contradiction', 'high', 'operations', '{}', now()) returning finding_id`,
  )
  return row?.finding_id ?? ''
}

async function deadEvent(id: string): Promise<string> {
  hooks.decide = () => {
    throw new PermanentError('no such price')
  }
  await bench.deliver(probe('pay', { id, order: id }))
  await bench.work()
  delete hooks.decide
  return `/events/${encodeURIComponent('stripe:probe:test')}/${id}`
}

describe('replaying an event', () => {
  it('puts a dead one back under the name of whoever asked, and twice it is done once', async () => {
    const path = await deadEvent('evt_dead')
    const [first, second] = await Promise.all([
      api.post(`${path}/replay`, { reason }),
      api.post(`${path}/replay`, { reason }),
    ])
    const outcomes = [first, second].map((each) => (each as { outcome: string }).outcome)
    expect(outcomes.sort()).toEqual(['pending', 'replayed'])
    expect(await acts()).toEqual([
      { act: 'replay', target: expect.stringMatching(/^event:\d+$/), reason, actor },
    ])
    await bench.work()
    expect(await api.post(`${path}/replay`, { reason })).toMatchObject({
      outcome: 'recorded',
      decision: { kind: 'fulfilled', order_id: 'evt_dead', to_state: 'paid' },
    })
  })

  it('says that an event is unknown, whichever part of its address is', async () => {
    await deadEvent('evt_dead')
    for (const path of ['/events/stripe%3Aprobe%3Atest/evt_x', '/events/nobody/evt_dead'])
      expect(await api.ask('POST', `${path}/replay`, { body: { reason } })).toMatchObject({
        status: 404,
        code: 'HKL_INBOX_EVENT_UNKNOWN',
      })
  })
})

describe('acts on operations', () => {
  it('sends a dead one again once, however often it is asked for', async () => {
    const id = await operation('dead')
    const answers = await Promise.all(
      [1, 2, 3].map(() => api.ask('POST', `/operations/${id}/retry`, { body: { reason } })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    expect(await acts()).toEqual([
      { act: 'outbox retry', target: `operation:${id}`, reason, actor },
    ])
  })

  it('tries an uncertain one again once, and answers the second with what is so', async () => {
    const id = await operation('uncertain')
    const answers = await Promise.all(
      [1, 2, 3].map(() => api.post<{ outcome: string }>(`/operations/${id}/retry`, { reason })),
    )
    expect(answers.map(({ outcome }) => outcome).sort()).toEqual(['done', 'unchanged', 'unchanged'])
    expect(await acts()).toHaveLength(1)
  })

  it('resolves and discards only what was typed', async () => {
    const id = await operation('uncertain')
    for (const act of ['resolve', 'discard']) {
      const body = { reason, confirm: 'o2', ...(act === 'resolve' && { as: 'sent' }) }
      expect(await api.ask('POST', `/operations/${id}/${act}`, { body })).toMatchObject({
        status: 409,
        code: 'HKL_API_CONFIRM',
      })
    }
    expect(await acts()).toEqual([])
    const body = { as: 'sent', reason, confirm: 'o1' }
    expect(await api.post(`/operations/${id}/resolve`, body)).toMatchObject({
      outcome: 'done',
      from: 'uncertain',
      to: 'sent',
      order_id: 'o1',
    })
    expect(await api.ask('POST', `/operations/${id}/resolve`, { body })).toMatchObject({
      status: 409,
      code: 'HKL_OUTBOX_NOT_OPEN',
    })
    expect(await acts()).toHaveLength(1)
  })

  it('discards a dead one for good', async () => {
    const id = await operation('dead')
    expect(await api.post(`/operations/${id}/discard`, { reason, confirm: 'o1' })).toMatchObject({
      to: 'discarded',
    })
    expect(await acts()).toMatchObject([{ act: 'outbox discard', actor }])
  })
})

describe('acts on findings', () => {
  it('gives one to somebody once, and answers the second with what is so', async () => {
    const id = await finding()
    const body = { owner: 'ada', reason }
    const answers = await Promise.all(
      [1, 2].map(() => api.post<{ outcome: string }>(`/findings/${id}/assign`, body)),
    )
    expect(answers.map(({ outcome }) => outcome).sort()).toEqual(['done', 'unchanged'])
    expect(answers[0]).toMatchObject({ owner: 'ada', state: 'open' })
    expect(await acts()).toEqual([
      { act: 'findings assign', target: `finding:${id}`, reason, actor },
    ])
  })

  it('dismisses one once until a day, and no day that is past', async () => {
    const id = await finding()
    const until = new Date(Date.now() + 86_400_000).toISOString()
    const answers = await Promise.all(
      [1, 2].map(() => api.post<{ outcome: string }>(`/findings/${id}/dismiss`, { until, reason })),
    )
    expect(answers.map(({ outcome }) => outcome).sort()).toEqual(['done', 'unchanged'])
    expect(answers[0]).toMatchObject({ state: 'dismissed', dismissed_until: until })
    const past = { until: '2020-01-01T00:00:00Z', reason }
    expect((await api.ask('POST', `/findings/${id}/dismiss`, { body: past })).status).toBe(400)
    expect(await acts()).toHaveLength(1)
  })
})

describe('what is said of subjects', () => {
  const grant = {
    id: 'grant_from_the_page',
    subject: 'user:7',
    entitlements: [{ entitlement: 'pro' }, { entitlement: 'seats', quantity: 3 }],
    reason,
    confirm: 'user:7',
  }

  it('gives away once under one id, from two tabs at once, and ends it', async () => {
    const given = await Promise.all([api.post('/grants', grant), api.post('/grants', grant)])
    expect(given).toEqual([
      { order_id: 'grant_from_the_page', subject: 'user:7' },
      { order_id: 'grant_from_the_page', subject: 'user:7' },
    ])
    expect(
      await bench.rows(
        `select entitlement, quantity from current_entitlements where subject = 'user:7' order by 1`,
      ),
    ).toEqual([
      { entitlement: 'pro', quantity: '1' },
      { entitlement: 'seats', quantity: '3' },
    ])
    const end = { reason, confirm: 'grant_from_the_page' }
    expect(await api.post('/grants/grant_from_the_page/end', end)).toMatchObject({
      outcome: 'ended',
    })
    expect(await api.post('/grants/grant_from_the_page/end', end)).toMatchObject({
      outcome: 'already_ended',
    })
    expect((await acts()).map((each) => (each as { act: string }).act)).toEqual([
      'grant',
      'grant end',
    ])
  })

  it('gives nothing away where another subject was typed', async () => {
    expect(
      await api.ask('POST', '/grants', { body: { ...grant, confirm: 'user:8' } }),
    ).toMatchObject({ status: 409, code: 'HKL_API_CONFIRM' })
    expect(await acts()).toEqual([])
  })

  it('links a customer and merges a subject, each once', async () => {
    const link = {
      source: 'probe',
      customer: 'cus_1',
      subject: 'user:old',
      reason,
      confirm: 'user:old',
    }
    expect(await api.post('/customers/link', link)).toEqual({ outcome: 'linked' })
    expect(await api.post('/customers/link', link)).toEqual({ outcome: 'existed' })
    const merge = { into: 'user:new', reason, confirm: 'user:old' }
    expect(await api.post('/subjects/user%3Aold/merge', merge)).toEqual({ outcome: 'merged' })
    expect(await api.post('/subjects/user%3Aold/merge', merge)).toEqual({ outcome: 'existed' })
    expect(await acts()).toMatchObject([
      { act: 'customer link', actor },
      { act: 'subject merge', actor },
    ])
  })
})

describe('deciding anew', () => {
  it('shows a plan, does exactly that, and answers the second with what was done', async () => {
    hooks.decide = () => skip('no price is known') as Decision
    await bench.deliver(probe('pay', { id: 'evt_skip', order: 'o9' }))
    await bench.work()
    delete hooks.decide
    const path = '/events/stripe%3Aprobe%3Atest/evt_skip/redecide'
    const planned = await api.post<{ plan: { plan_id: string }; confirm: string }>(`${path}/plan`, {
      reason,
    })
    expect(planned).toMatchObject({
      outcome: 'plan',
      confirm: 'o9',
      plan: { kind: 'fulfilled', payment: { amount: '4900' }, order: { to: 'paid' } },
    })
    const act = { plan_id: planned.plan.plan_id, reason, confirm: 'o9' }
    const other = { ...act, plan_id: '0'.repeat(64) }
    expect(await api.ask('POST', path, { body: other })).toMatchObject({
      status: 409,
      code: 'HKL_REPAIR_CHANGED',
    })
    expect(await acts()).toEqual([])
    const answers = await Promise.all([1, 2].map(() => api.ask('POST', path, { body: act })))
    const outcomes = answers.map(({ data }) => (data as { outcome?: string }).outcome)
    expect(outcomes.sort()).toEqual(['recorded', 'redecided'])
    expect(await acts()).toMatchObject([{ act: 'redecide', reason, actor }])
    expect(await api.post(`${path}/plan`, { reason })).toMatchObject({
      outcome: 'recorded',
      plan: null,
    })
  })
})

describe('an act without a reason', () => {
  it('is refused everywhere, and leaves no record', async () => {
    const id = await finding()
    const operationId = await operation('dead')
    const event = '/events/stripe%3Aprobe%3Atest/evt_1'
    const asked: [path: string, body: object][] = [
      [`${event}/replay`, {}],
      [`${event}/redecide/plan`, {}],
      [`${event}/redecide`, { plan_id: '0'.repeat(64), confirm: 'o1' }],
      [`/operations/${operationId}/retry`, {}],
      [`/operations/${operationId}/resolve`, { as: 'sent', confirm: 'o1' }],
      [`/operations/${operationId}/discard`, { confirm: 'o1' }],
      [`/findings/${id}/assign`, { owner: 'ada' }],
      [`/findings/${id}/dismiss`, { until: '2030-01-01T00:00:00Z' }],
      [`/findings/${id}/apply`, { plan_id: null, choice: 'keep', confirm: 'paid_twice' }],
      [
        '/grants',
        { id: 'grant_12345', subject: 'a', entitlements: [{ entitlement: 'x' }], confirm: 'a' },
      ],
      ['/grants/g1/end', { confirm: 'g1' }],
      ['/subjects/a/merge', { into: 'b', confirm: 'a' }],
      ['/customers/link', { source: 'probe', customer: 'c', subject: 's', confirm: 's' }],
    ]
    for (const [path, body] of asked) {
      for (const given of [body, { ...body, reason: '   ' }])
        expect([path, await api.ask('POST', path, { body: given })]).toMatchObject([
          path,
          { status: 400, code: 'HKL_API_INPUT_INVALID' },
        ])
    }
    expect(await acts()).toEqual([])
  })

  it('takes nobody else for its actor than whoever is signed in', async () => {
    const id = await finding()
    const body = { owner: 'ada', reason, actor: 'somebody else' }
    expect((await api.ask('POST', `/findings/${id}/assign`, { body })).status).toBe(400)
    expect(await acts()).toEqual([])
  })
})
