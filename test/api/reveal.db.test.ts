import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { money } from 'hookledger'
import { fulfill, type Decision } from '../../src/workflow/decision.ts'
import { startApi, type TestApi } from '../support/console-api.ts'
import { createProbe, probe, probeWorkflow, type Probe } from '../support/probe.ts'
import { done, scripted } from '../support/scripted-destination.ts'

const crm = scripted()
const reason = 'the customer asks'
let bench: Probe
let api: TestApi

beforeAll(async () => {
  const decide = ({ order }: { readonly order: { readonly id: string } }): Decision =>
    fulfill({
      to: 'paid',
      payment: { id: `pay_${order.id}`, money: money(4900, 'usd') },
      effects: [{ type: 'grant', send: [{ to: 'crm', body: { hello: '<b>&' } }] }],
    } as never) as Decision
  bench = await createProbe({ workflows: [probeWorkflow({ decide })], destinations: { crm } })
  api = (await startApi(bench.hookledger)).as('privacy')
})
afterAll(() => bench.close())
beforeEach(async () => {
  crm.reset()
  await bench.reset()
})

interface Revealed {
  readonly base64: string
  readonly length: number
  readonly sha256: string
}

const textOf = ({ base64 }: Revealed): string => Buffer.from(base64, 'base64').toString()
const reads = (): Promise<object[]> =>
  bench.rows(
    'select reason, actor from payload_reads union all select reason, actor from operation_reads',
  )

describe('revealing', () => {
  it('answers the exact bytes of an event, big numbers too, after it recorded who and why', async () => {
    const big = '12345678901234567890'
    await bench.deliver(probe('pay', { id: 'evt_1', order: 'o1', html: '<script>', big }))
    const body = { source: 'stripe:probe:test', event_id: 'evt_1', reason }
    const revealed = await api.post<Revealed>('/reveal/event', body)
    expect(JSON.parse(textOf(revealed))).toMatchObject({ id: 'evt_1', html: '<script>', big })
    const bytes = Buffer.from(revealed.base64, 'base64')
    expect(revealed.length).toBe(bytes.length)
    expect(revealed.sha256).toBe(createHash('sha256').update(bytes).digest('hex'))
    expect(await reads()).toEqual([{ reason, actor: 'privacy@example.com' }])
  })

  it('answers the request and the answers of an operation', async () => {
    crm.next({ ...done, answer: Buffer.from('thanks') } as never)
    await bench.deliver(probe('pay', { order: 'o1' }))
    await bench.work()
    const [row] = await bench.rows<{ id: string }>(
      'select operation_id as id from outbox_operations',
    )
    const { parts } = await api.post<{ parts: (Revealed & { part: string; number: number })[] }>(
      '/reveal/operation',
      { operation_id: row?.id, reason },
    )
    expect(parts.map((each) => [each.part, each.number, textOf(each)])).toEqual([
      ['request', 0, '{"hello":"<b>&"}'],
      ['answer', 1, 'thanks'],
    ])
    expect(await reads()).toEqual([{ reason, actor: 'privacy@example.com' }])
  })

  it('answers what a provider said', async () => {
    await bench.deliver(probe('pay', { order: 'o1' }))
    const [row] = await bench.rows<{ id: string }>(
      `insert into evidence (order_id, source_id, kind, object_id, number, workflow, is_found, is_late, requested_at, fetched_at,
         body_sha256, body_bytes, body)
       select 'o1', min(source_id), 'customer', 'cus_1', 1, 'probe', true, true, now(), now(), sha256(b), length(b), b
       from sources, convert_to('{"email":"a@b.c"}', 'UTF8') b group by b returning evidence_id as id`,
    )
    const body = { evidence_id: row?.id, reason }
    expect(textOf(await api.post<Revealed>('/reveal/evidence', body))).toBe('{"email":"a@b.c"}')
    expect(await reads()).toHaveLength(1)
  })

  it('says that bytes are gone, and records that somebody asked', async () => {
    await bench.deliver(probe('pay', { id: 'evt_1', order: 'o1' }))
    await bench.rows('delete from payloads')
    const body = { source: 'stripe:probe:test', event_id: 'evt_1', reason }
    expect(await api.ask('POST', '/reveal/event', { body })).toMatchObject({
      status: 409,
      code: 'HKL_INBOX_PAYLOAD_EXPIRED',
    })
    expect(await reads()).toHaveLength(1)
  })

  it('is refused without a reason, for what there is not, and to whoever may not, unread', async () => {
    await bench.deliver(probe('pay', { id: 'evt_1', order: 'o1' }))
    const named = { source: 'stripe:probe:test', event_id: 'evt_1' }
    expect(await api.ask('POST', '/reveal/event', { body: named })).toMatchObject({ status: 400 })
    for (const [path, body] of [
      ['/reveal/event', { ...named, event_id: 'evt_2', reason }],
      ['/reveal/operation', { operation_id: '00000000-0000-4000-8000-000000000000', reason }],
      ['/reveal/evidence', { evidence_id: '987654', reason }],
    ] as const)
      expect(await api.ask('POST', path, { body })).toMatchObject({ status: 404 })
    for (const role of ['viewer', 'operator', 'approver'] as const)
      expect(
        await api.as(role).ask('POST', '/reveal/event', { body: { ...named, reason } }),
      ).toMatchObject({ status: 403, code: 'HKL_API_FORBIDDEN' })
    expect(await reads()).toEqual([])
  })
})
