import { describe, expect, test } from 'vitest'
import type { CustomPage } from '../../src/providers/custom-record-checks.ts'
import { customRecords, type CustomRecordsOptions } from '../../src/providers/custom-records.ts'
import { standardWebhooks } from '../../src/providers/standard-webhooks.ts'
import type { Fact, RecordQuery, RecordsError } from '../../src/workflow/records.ts'
import { RecordsError as TypedError } from '../../src/workflow/records.ts'

const going = new AbortController().signal
const noon = new Date('2026-11-30T12:00:00Z')
const later = (ms: number): Date => new Date(noon.getTime() + ms)
const query: RecordQuery = {
  kind: 'invoice',
  account: 'billing',
  from: noon,
  to: later(3_600_000),
  cursor: null,
  signal: going,
}

const invoice = (
  id: string,
  createdAt = noon,
  object: object = { status: 'paid', total: 4900 },
) => ({
  id,
  createdAt,
  object: object as Readonly<Record<string, unknown>>,
})

function records(options: Partial<CustomRecordsOptions> = {}) {
  return customRecords({
    kinds: [
      { kind: 'event', holds: 'events', reachMs: 86_400_000 },
      { kind: 'invoice', holds: 'objects' },
    ],
    list: () => ({ records: [invoice('inv_1')], next: null }),
    fetch: ({ id }) => invoice(id),
    ...options,
  })
}

async function troubleOf(asked: Promise<unknown>): Promise<RecordsError> {
  return asked.then(
    () => {
      throw new Error('it was answered')
    },
    (error: unknown) => error as RecordsError,
  )
}

describe('customRecords', () => {
  test('pages and records pass as the functions return them', async () => {
    const asked: RecordQuery[] = []
    const made = records({
      list: (given) => {
        asked.push(given)
        return given.cursor === null
          ? { records: [invoice('inv_1'), invoice('inv_2', later(1))], next: '2' }
          : { records: [invoice('inv_3')] }
      },
    })
    const first = await made.list(query)
    const second = await made.list({ ...query, cursor: first.next })
    expect(first.records[1]).toEqual({
      kind: 'invoice',
      id: 'inv_2',
      createdAt: later(1),
      account: 'billing',
      object: { status: 'paid', total: 4900 },
    })
    expect([first.next, second.next]).toEqual(['2', null])
    expect(asked.map(({ cursor }) => cursor)).toEqual([null, '2'])
    const reference = { kind: 'invoice', id: 'inv_9', account: 'billing' }
    expect(await made.fetch(reference, going)).toMatchObject({ id: 'inv_9', kind: 'invoice' })
    expect(await records({ fetch: () => null }).fetch(reference, going)).toBeNull()
    expect(made.kinds).toEqual([
      { kind: 'event', holds: 'events', reachMs: 86_400_000 },
      { kind: 'invoice', holds: 'objects', reachMs: null },
    ])
  })

  const wrongPages: readonly (readonly [string, unknown])[] = [
    ['nothing', undefined],
    ['an array', [invoice('inv_1')]],
    ['a cursor that leads nowhere', { records: [], next: 'here' }],
    ['a cursor that is a number', { records: [], next: 2 }],
    ['a record before the window', { records: [invoice('inv_1', later(-1))] }],
    ['a record at the window’s end', { records: [invoice('inv_1', later(3_600_000))] }],
    ['a record twice', { records: [invoice('inv_1'), invoice('inv_1')] }],
    ['a record without id', { records: [{ ...invoice('inv_1'), id: '' }] }],
    ['an id with NUL', { records: [invoice('inv\0')] }],
    ['a time that is a text', { records: [{ ...invoice('inv_1'), createdAt: '2026' }] }],
    ['a record without JSON', { records: [{ ...invoice('inv_1'), object: null }] }],
    ['a bigint in the JSON', { records: [invoice('inv_1', noon, { total: 4900n })] }],
  ]
  test.each(wrongPages)('a page with %s is garbage', async (_, page) => {
    const made = records({ list: () => page as CustomPage })
    const trouble = await troubleOf(made.list({ ...query, cursor: 'here' }))
    expect(trouble).toMatchObject({ name: 'RecordsError', trouble: 'garbage' })
    expect(trouble.message).toContain('customRecords()')
  })

  test('another record than the one asked for is garbage', async () => {
    const made = records({ fetch: () => invoice('inv_2') })
    const asked = made.fetch({ kind: 'invoice', id: 'inv_1', account: 'billing' }, going)
    expect(await troubleOf(asked)).toMatchObject({ trouble: 'garbage' })
  })

  test('what a function throws means later, and its text stays out of the message', async () => {
    const made = records({
      list: () => {
        throw new TypeError('cannot read {"card":"4242"}')
      },
      fetch: () => Promise.reject(new Error('timeout')),
    })
    const trouble = await troubleOf(made.list(query))
    expect(trouble).toMatchObject({ trouble: 'unavailable' })
    expect(trouble.message).toBe(
      'customRecords(): list of invoice failed (TypeError); asked again later',
    )
    const asked = made.fetch({ kind: 'invoice', id: 'inv_1', account: 'billing' }, going)
    expect(await troubleOf(asked)).toMatchObject({ trouble: 'unavailable' })
  })

  test('a function can say itself what is wrong, and for how long', async () => {
    const said = new TypedError('unavailable', 'the sender is busy', { retryAfterMs: 9_000 })
    const made = records({ list: () => Promise.reject(said) })
    expect(await troubleOf(made.list(query))).toBe(said)
  })

  test('records cannot be changed by whoever made them', async () => {
    const object = { lines: [{ total: 1 }] }
    const made = records({ list: () => ({ records: [invoice('inv_1', noon, object)] }) })
    const page = await made.list(query)
    object.lines[0]!.total = 2
    expect(page.records[0]!.object).toEqual({ lines: [{ total: 1 }] })
  })

  test('a listed event is the body that would have been delivered, under its own id', async () => {
    const body = { type: 'invoice.paid', data: { id: 'inv_1' } }
    const made = records({ list: () => ({ records: [invoice('msg_1', noon, body)] }) })
    const page = await made.list({ ...query, kind: 'event' })
    expect(made.eventsOf(page.records[0]!)).toEqual([
      { eventId: 'msg_1', eventType: 'invoice.paid', occurredAt: noon, apiVersion: null, body },
    ])
  })

  test('events made of an object are named by type, object and fact', async () => {
    const made = records({
      eventsOf: ({ object }) => [
        { type: 'invoice.paid', body: { data: object } },
        { type: 'invoice.refunded', fact: '900', occurredAt: later(5), body: { data: object } },
      ],
    })
    const record = (await made.list(query)).records[0]!
    expect(made.eventsOf(record)).toMatchObject([
      { eventId: 'object:invoice.paid:inv_1', eventType: 'invoice.paid', occurredAt: noon },
      { eventId: 'object:invoice.refunded:inv_1:900', occurredAt: later(5) },
    ])
    expect(records().eventsOf(record)).toEqual([])
  })

  test.each([
    ['no array', () => ({ type: 'a', body: {} })],
    ['a failure', () => JSON.parse('{') as unknown],
    ['a body that is a text', () => [{ type: 'a', body: 'x' }]],
    ['no type', () => [{ type: '', body: {} }]],
    [
      'two that cannot be told apart',
      () => [
        { type: 'a', body: {} },
        { type: 'a', body: {} },
      ],
    ],
  ])('events that are %s are garbage', async (_, make) => {
    const made = records({
      eventsOf: make as unknown as NonNullable<CustomRecordsOptions['eventsOf']>,
    })
    const record = (await made.list(query)).records[0]!
    expect(() => made.eventsOf(record)).toThrow(
      expect.objectContaining({ name: 'RecordsError', trouble: 'garbage' }),
    )
  })

  test('facts pass with exact amounts and their currency in capitals', async () => {
    const paid: Fact = {
      fact: 'payment',
      id: 'pay_1',
      standing: 'paid',
      amount: 4900n,
      currency: 'usd',
      refunded: 0n,
    }
    const disputed: Fact = { fact: 'dispute', id: 'd_1', payment: 'pay_1', standing: 'open' }
    const made = records({ factsOf: () => [paid, disputed] })
    const record = (await made.list(query)).records[0]!
    expect(made.factsOf(record)).toEqual([{ ...paid, currency: 'USD' }, disputed])
    expect(records().factsOf(record)).toEqual([])
    for (const wrong of [
      { amount: 49 },
      { amount: -1n },
      { amount: 2n ** 63n },
      { refunded: '900' },
      { currency: 'US' },
      { standing: 'open' },
      { id: '' },
      { aliases: [5] },
      { judgedBy: { kind: 'invoice' } },
      { fact: 'refund', standing: 'pending', payment: { id: 'pay_1' } },
    ]) {
      const bad = records({ factsOf: () => [{ ...paid, ...wrong } as unknown as Fact] })
      expect(() => bad.factsOf(record)).toThrow(expect.objectContaining({ trouble: 'garbage' }))
    }
  })

  test('references lead to kinds that are asked for, and to no others', () => {
    const made = records()
    expect(made.referenceOf('payment', 'pay_1', 'billing')).toBeNull()
    expect(made.namedBy({ kind: 'invoice', value: 'inv_1' }, 'billing')).toEqual({
      kind: 'invoice',
      id: 'inv_1',
      account: 'billing',
    })
    expect(made.namedBy({ kind: 'event', value: 'msg_1' }, 'billing')).toBeNull()
    const told = records({
      referenceOf: (fact, id) => (fact === 'payment' ? { kind: 'invoice', id: `inv_${id}` } : null),
    })
    expect(told.referenceOf('payment', '7', 'billing')).toEqual({
      kind: 'invoice',
      id: 'inv_7',
      account: 'billing',
    })
    expect(told.referenceOf('refund', '7', 'billing')).toBeNull()
    const payments = records({ kinds: [{ kind: 'payment', holds: 'objects' }] })
    expect(payments.referenceOf('payment', '7', 'billing')).toMatchObject({ kind: 'payment' })
  })

  test('the own account comes first, once', async () => {
    expect(await records().accounts('billing', going)).toEqual(['billing'])
    const several = records({ accounts: () => ['eu', 'billing'] })
    expect(await several.accounts('billing', going)).toEqual(['billing', 'eu'])
  })

  test.each([
    ['kinds', { kinds: [] }],
    ['kinds[0].kind', { kinds: [{ kind: 'a b', holds: 'events' }] }],
    ['kinds[0].holds', { kinds: [{ kind: 'a', holds: 'things' }] }],
    ['kinds[0].reachMs', { kinds: [{ kind: 'a', holds: 'events', reachMs: 0 }] }],
    [
      'twice',
      {
        kinds: [
          { kind: 'a', holds: 'events' },
          { kind: 'a', holds: 'objects' },
        ],
      },
    ],
    ['list', { list: undefined }],
    ['fetch', { fetch: 'GET' }],
  ])('a wrong option (%s) stops the start of the source, and no import', async (named, wrong) => {
    const made = records(wrong as unknown as Partial<CustomRecordsOptions>)
    const source = standardWebhooks({
      secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
      records: made,
    })
    expect(source.problem).toMatchObject({ code: 'HKL_CONFIG_INVALID' })
    expect(source.problem?.message).toContain(named)
    expect(await troubleOf(made.list(query))).toMatchObject({ trouble: 'refused' })
  })

  test('a source of Standard Webhooks has the records that it is given', () => {
    const secrets = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw']
    const made = records()
    expect(standardWebhooks({ secrets, records: made }).records).toBe(made)
    expect(standardWebhooks({ secrets }).records).toBeUndefined()
  })
})
