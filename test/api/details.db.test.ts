import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PermanentError } from '../../src/core/errors.ts'
import { fulfill, type Decision } from '../../src/workflow/decision.ts'
import { money } from 'hookledger'
import { startApi, type TestApi } from '../support/console-api.ts'
import { createProbe, probe, probeWorkflow, type Probe, type ProbeHooks } from '../support/probe.ts'
import { scripted, unknown } from '../support/scripted-destination.ts'

const crm = scripted()
const hooks: ProbeHooks = {}
let bench: Probe
let api: TestApi

beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow(hooks)], destinations: { crm } })
  api = await startApi(bench.hookledger)
})
afterAll(() => bench.close())
beforeEach(async () => {
  crm.reset()
  delete hooks.decide
  await bench.reset()
})

const source = 'stripe:probe:test'
const at = (id: string): string => `/events/${encodeURIComponent(source)}/${encodeURIComponent(id)}`

function sending(): Decision {
  return fulfill({
    to: 'paid',
    payment: { id: 'pay_1', money: money('9007199254740993', 'usd') },
    effects: [{ type: 'grant', send: [{ to: 'crm', body: { hello: 1 } }] }],
  } as never) as Decision
}

interface EventAnswer {
  readonly event: { readonly state: string; readonly deliveries: number }
  readonly head: Readonly<Record<string, unknown>>
  readonly verdict: string
  readonly deliveries: readonly { readonly same_body: boolean }[]
  readonly decisions: readonly { readonly kind: string; readonly final: boolean }[]
  readonly effects: readonly object[]
  readonly operations: readonly { readonly operation_id: string }[]
  readonly timeline: readonly { readonly what: string; readonly figures: readonly object[] }[]
}

describe('the page of an event', () => {
  it('tells how often it came, what was decided, and all that it made, with exact amounts', async () => {
    hooks.decide = sending
    await bench.deliver(probe('pay', { id: 'evt_1', order: 'o1' }))
    await bench.deliver(probe('pay', { id: 'evt_1', order: 'o1' }))
    await bench.work()
    const told = await api.get<EventAnswer>(at('evt_1'))
    expect(told).toMatchObject({
      event: { state: 'processed', deliveries: 2 },
      head: { order_id: 'o1', has_body: true, in_work: false, rearmed_by: null },
      verdict: expect.stringMatching(/^fulfilled: /),
      decisions: [{ kind: 'fulfilled', final: true }],
      effects: [{ effect_type: 'grant', effect_reference: '' }],
      operations: [{ destination: 'crm', state: 'sent', next: { asks: false } }],
      caused_by: null,
    })
    expect(told.deliveries.map(({ same_body: same }) => same)).toEqual([true, true])
    expect(told.timeline.map(({ what }) => what)).toEqual(
      expect.arrayContaining(['arrived', 'decided', 'called', 'redelivered']),
    )
    const order = await api.get<{ payments: object[]; timeline: EventAnswer['timeline'] }>(
      '/orders/o1',
    )
    expect(order.payments).toMatchObject([{ amount: '9007199254740993', currency: 'USD' }])
    expect(order.timeline.flatMap(({ figures }) => figures)).toContainEqual(
      expect.objectContaining({ amount: '9007199254740993', currency: 'USD' }),
    )
  })

  it('does not take a state that somebody wrote into the row for one that an event led to', async () => {
    hooks.decide = sending
    await bench.deliver(probe('pay', { id: 'evt_1', order: 'o1' }))
    await bench.work()
    await bench.pool.query(`update orders set state = 'refunded' where order_id = 'o1'`)
    const told = await api.get<{ why: { text: string; since: string | null } }>('/orders/o1')
    expect(told.why).toMatchObject({
      text: expect.stringContaining('its row says refunded, its decisions lead to paid'),
      since: null,
    })
  })

  it('says why a dead one is dead and who may wake it', async () => {
    hooks.decide = () => {
      throw new PermanentError('no such price')
    }
    await bench.deliver(probe('pay', { id: 'evt_2', order: 'o2' }))
    await bench.work()
    const told = await api.get<EventAnswer>(at('evt_2'))
    expect(told.event.state).toBe('dead')
    expect(told.verdict).toContain('no such price')
    expect(['redelivery', 'operator']).toContain(told.head['rearmed_by'])
    expect(told.decisions).toMatchObject([{ kind: 'dead', final: false }])
  })

  it('finds an id with a slash, a percent sign and a question mark in it', async () => {
    const id = 'evt/1%2F?a=b#c'
    await bench.deliver(probe('pay', { id, order: 'o3' }))
    expect((await api.get<EventAnswer>(at(id))).event).toMatchObject({ event_id: id, source })
  })

  it('is not there for an event that never came, or came from another source', async () => {
    await bench.deliver(probe('pay', { id: 'evt_4', order: 'o4' }))
    for (const path of [at('evt_5'), `/events/other/evt_4`]) {
      expect(await api.ask('GET', path)).toMatchObject({
        status: 404,
        code: 'HKL_INBOX_EVENT_UNKNOWN',
      })
    }
  })
})

describe('the page of an operation', () => {
  it('tells the attempts, what happens next and whether that asks for a person', async () => {
    hooks.decide = sending
    crm.next(unknown)
    await bench.deliver(probe('pay', { id: 'evt_1', order: 'o1' }))
    await bench.work()
    const { operations } = await api.get<EventAnswer>(at('evt_1'))
    const id = operations[0]?.operation_id ?? ''
    const told = await api.get(`/operations/${id}`)
    expect(told).toMatchObject({
      operation: {
        operation_id: id,
        state: 'uncertain',
        tries: [{ number: 1, kind: 'call', outcome: 'uncertain' }],
        promise_text: expect.any(String),
        next: { text: expect.any(String), asks: expect.any(Boolean) },
      },
      caused: [],
      timeline: expect.arrayContaining([expect.objectContaining({ what: 'called' })]),
    })
    // an id is no search: its beginning names nothing
    expect((await api.ask('GET', `/operations/${id.slice(0, 8)}`)).status).toBe(400)
    expect(await api.ask('GET', '/operations/00000000-0000-4000-8000-000000000009')).toMatchObject({
      status: 404,
      code: 'HKL_OUTBOX_OPERATION_UNKNOWN',
    })
  })
})

describe('the page of a finding', () => {
  it('tells what may be done in its state, and what people did, in its story', async () => {
    const [row] = await bench.rows<{ finding_id: string }>(
      `insert into findings (finding_id, kind, class, severity, owner, evidence, due_at)
       values (gen_random_uuid(), 'paid_twice', 'contradiction', 'high', 'operations', '{"key":9007199254740993}', now()) returning finding_id`,
    )
    const id = row?.finding_id ?? ''
    const asked = await api.ask('GET', `/findings/${id}`)
    expect(asked.data).toMatchObject({
      finding: { finding_id: id, state: 'open', overdue: true },
      event: null,
      repairs: [],
      acts: [],
      allowed: ['repair', 'assign', 'dismiss'],
    })
    // numbers past 2^53 stay exact on the wire
    expect(asked.text).toContain('"key":9007199254740993')
    const reason = 'she knows this customer'
    await api.post(`/findings/${id}/assign`, { owner: 'anna', reason })
    await api.post(`/findings/${id}/dismiss`, { until: '2099-01-01T00:00:00Z', reason })
    expect(await api.get(`/findings/${id}`)).toMatchObject({
      finding: { owner: 'anna', state: 'dismissed' },
      acts: [{ reason }, { reason }],
      allowed: ['repair', 'assign'],
      timeline: expect.arrayContaining([
        expect.objectContaining({ what: 'acted', details: [`because ${reason}`] }),
      ]),
    })
  })

  it('names the event that it is about', async () => {
    await bench.deliver(probe('pay', { id: 'evt_9', order: 'o9' }))
    const [row] = await bench.rows<{ finding_id: string }>(
      `insert into findings (finding_id, kind, class, severity, owner, evidence, due_at, event_key)
       select gen_random_uuid(), 'dead_event', 'lag', 'medium', 'operations', '{}', now(), event_key
       from inbox_events where event_id = 'evt_9' returning finding_id`,
    )
    expect(await api.get(`/findings/${row?.finding_id}`)).toMatchObject({
      event: { kind: 'event', id: `${source}/evt_9` },
    })
  })
})
