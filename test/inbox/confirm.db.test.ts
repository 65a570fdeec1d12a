import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createConfirm, type Confirm, type ConfirmRequest } from '../../src/compose/confirm.ts'
import { partsOf } from '../../src/hookledger.ts'
import {
  RecordsError,
  type MadeEvent,
  type ProviderRecord,
  type Records,
} from '../../src/workflow/records.ts'
import { audit } from '../../src/report/audit.ts'
import {
  clearHooks,
  createProbe,
  deliverTo,
  probe,
  probeOptions,
  probeWorkflow,
  workOff,
  type Probe,
  type ProbeBody,
  type ProbeHooks,
} from '../support/probe.ts'

/** What the provider has, by id: the order that each is of, and the events that led to it. */
let atProvider: Map<string, readonly ProbeBody[]>
let asked: string[]
let onFetch: (signal: AbortSignal) => Promise<void>

const records: Records = {
  kinds: [{ kind: 'session', holds: 'objects', reachMs: null }],
  accounts: async (own) => [own],
  list: async () => ({ records: [], next: null }),
  fetch: async ({ kind, id, account }, signal) => {
    asked.push(`${kind} ${id}`)
    await onFetch(signal)
    const events = atProvider.get(id)
    if (events === undefined) return null
    return { kind, id, account, createdAt: new Date(0), object: { id, events } }
  },
  eventsOf: (record: ProviderRecord): MadeEvent[] =>
    (record.object['events'] as ProbeBody[]).map((body) => ({
      eventId: `object:${body.type}:${record.id}`,
      eventType: body.type,
      occurredAt: new Date(1_767_225_600_000),
      apiVersion: null,
      body: { created: 1_767_225_600, livemode: false, ...body },
    })),
  factsOf: () => [],
  referenceOf: () => null,
  namedBy: () => null,
}

const hooks: ProbeHooks = {}
const base = probeOptions([]).sources['probe']
const sources = { probe: { ...(base as NonNullable<typeof base>), records } }
let bench: Probe
let confirm: Confirm
let told: string[]

beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow(hooks)], sources })
  const parts = partsOf(bench.hookledger)
  parts.signals.on('worker.loop.failed', ({ message }) => told.push(message))
  confirm = createConfirm(parts)
})
afterAll(() => bench.close())
beforeEach(async () => {
  clearHooks(hooks)
  await bench.reset()
  atProvider = new Map()
  asked = []
  told = []
  onFetch = async () => {}
})
afterEach(async () => {
  const broken = (await audit(bench.db)).checks.filter((each) => !each.holds)
  expect(broken.map((each) => each.check)).toEqual([])
})

function question(fields: Partial<ConfirmRequest> = {}): ConfirmRequest {
  return {
    source: 'probe',
    reference: { kind: 'session', id: 'cs_1' },
    order: 'a',
    subject: 'user:a',
    ...fields,
  }
}

const paid = {
  outcome: 'decided',
  state: 'paid',
  entitlements: [{ entitlement: 'pro', quantity: 1, validUntil: null }],
}

const stored = (): Promise<unknown> =>
  bench.rows('select event_id, via, state from webhook_inbox order by event_key')

describe('confirm', () => {
  it('decides at once what the provider says, before any webhook came', async () => {
    atProvider.set('cs_1', [probe('pay', { id: 'evt_1', order: 'a' })])
    expect(await confirm(question())).toEqual(paid)
    expect(await stored()).toEqual([
      { event_id: 'object:pay:cs_1', via: 'confirm', state: 'processed' },
    ])
    expect(asked).toEqual(['session cs_1'])
  })

  it('is on the object that users hold', async () => {
    atProvider.set('cs_1', [probe('pay', { order: 'a' })])
    expect(await bench.hookledger.confirm(question())).toEqual(paid)
  })

  it('makes one effect of the page and the webhook, whichever is first', async () => {
    const body = probe('pay', { id: 'evt_1', order: 'a' })
    atProvider.set('cs_1', [body])
    await confirm(question())
    await deliverTo(bench.hookledger, [body])
    await workOff(bench.hookledger)
    expect(await bench.rows('select kind from decisions order by decision_id')).toEqual([
      { kind: 'fulfilled' },
      { kind: 'absorbed' },
    ])
    await bench.reset()
    await deliverTo(bench.hookledger, [body])
    await workOff(bench.hookledger)
    expect(await confirm(question())).toEqual(paid)
    expect(await bench.rows('select kind from decisions order by decision_id')).toEqual([
      { kind: 'fulfilled' },
      { kind: 'absorbed' },
    ])
    expect(await bench.rows('select 1 from fulfillment_effects')).toHaveLength(1)
  })

  it('can be asked many times at once, by several processes, beside the webhook', async () => {
    const body = probe('pay', { id: 'evt_1', order: 'a' })
    atProvider.set('cs_1', [body])
    const other = bench.another({ sources })
    await partsOf(other).register()
    const answers = await Promise.all([
      ...Array.from({ length: 10 }, () => confirm(question())),
      ...Array.from({ length: 10 }, () => other.confirm(question())),
      deliverTo(bench.hookledger, [body]).then(() => workOff(bench.hookledger)),
    ])
    expect(answers.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => paid))
    expect(asked).toEqual(['session cs_1', 'session cs_1']) // pages of one process share an answer
    await workOff(bench.hookledger)
    expect(await bench.rows('select 1 from fulfillment_effects')).toHaveLength(1)
    expect(await bench.rows('select 1 from payments')).toHaveLength(1)
    expect(await bench.rows('select 1 from findings')).toEqual([])
  })

  it('gives no hint of what belongs to another order or another subject', async () => {
    atProvider.set('cs_1', [probe('pay', { order: 'a' })])
    const unknown = { outcome: 'unknown' }
    expect(await confirm(question({ order: 'b', subject: 'user:b' }))).toEqual(unknown)
    expect(await confirm(question({ reference: { kind: 'session', id: 'cs_9' } }))).toEqual(unknown)
    expect(await stored()).toEqual([])
    await confirm(question())
    expect(await confirm(question({ subject: 'user:b' }))).toEqual(unknown)
    expect(await confirm(question({ order: 'b' }))).toEqual(unknown)
  })

  it('does not even ask the provider about an order of somebody else', async () => {
    const shop = bench.another({
      workflows: [probeWorkflow(hooks, { name: 'shop', opens: 'app' })],
      sources,
    })
    await partsOf(shop).register()
    const client = await bench.pool.connect()
    await client.query('begin')
    await shop.openOrder(client, { id: 'a', workflow: 'shop', subject: 'user:a' })
    await client.query('commit')
    client.release()
    atProvider.set('cs_1', [probe('pay', { order: 'a' })])
    expect(await shop.confirm(question({ subject: 'user:b' }))).toEqual({ outcome: 'unknown' })
    expect(await shop.confirm(question({ order: 'never' }))).toEqual({ outcome: 'unknown' })
    expect(asked).toEqual([])
    expect(await shop.confirm(question())).toEqual(paid)
  })

  it('leaves out events of a record that nothing of the order handles', async () => {
    atProvider.set('cs_1', [
      probe('pay', { order: 'a' }),
      probe('unheard_of', { order: 'a' }),
      probe('note', { order: 'b' }),
    ])
    expect(await confirm(question())).toEqual(paid)
    expect(await stored()).toHaveLength(1)
  })

  it('answers pending when the provider does not answer in time, listens or not', async () => {
    atProvider.set('cs_1', [probe('pay', { order: 'a' })])
    onFetch = () => new Promise(() => {})
    expect(await confirm(question({ timeoutMs: 50 }))).toEqual({ outcome: 'pending' })
    onFetch = (signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new RecordsError('unavailable', 'stopped')))
      })
    expect(await confirm(question({ timeoutMs: 60 }))).toEqual({ outcome: 'pending' })
    expect(await stored()).toEqual([])
  })

  it('answers pending when the provider refuses, and says so to whoever watches', async () => {
    onFetch = async () => {
      throw new RecordsError('refused', 'the key lacks a right')
    }
    expect(await confirm(question())).toEqual({ outcome: 'pending' })
    expect(told).toEqual(['the provider was not asked: the key lacks a right'])
  })

  it('says once to the process what a person must mend, where nothing else listens', async () => {
    onFetch = async () => {
      throw new RecordsError('refused', 'is the key still valid?')
    }
    const warnings: string[] = []
    const hear = (warning: Error): void => void warnings.push(`${warning.name}: ${warning.message}`)
    process.on('warning', hear)
    const unheard = bench.another({ sources })
    for (const order of ['a', 'b'])
      expect(await unheard.confirm(question({ order }))).toEqual({ outcome: 'pending' })
    await bench.hookledger.confirm(question())
    await new Promise(setImmediate)
    process.off('warning', hear)
    expect(warnings).toEqual([
      'HookledgerWarning: confirm answers pending, as the provider was not asked: is the key still valid?',
    ])
  })

  it('answers pending while somebody holds the order, and a worker decides it later', async () => {
    await deliverTo(bench.hookledger, [probe('note', { order: 'a' })])
    await workOff(bench.hookledger)
    atProvider.set('cs_1', [probe('pay', { order: 'a' })])
    const client = await bench.pool.connect()
    await client.query('begin')
    await client.query(`select 1 from orders where order_id = 'a' for update`)
    expect(await confirm(question({ timeoutMs: 300 }))).toEqual({ outcome: 'pending' })
    await client.query('rollback')
    client.release()
    await workOff(bench.hookledger)
    expect(await confirm(question())).toEqual(paid)
  })

  it('answers pending while what happened waits for something else', async () => {
    atProvider.set('cs_1', [probe('after', { order: 'a', needs: 'evt_n' })])
    await deliverTo(bench.hookledger, [probe('pay', { order: 'a' })])
    await workOff(bench.hookledger)
    expect(await confirm(question({ timeoutMs: 200 }))).toEqual({ outcome: 'pending' })
  })

  it('answers pending to nobody but the subject that an order without one of its own entitles', async () => {
    atProvider.set('cs_1', [probe('after', { order: 'a', needs: 'evt_n' })])
    const other = { subject: 'user:b', timeoutMs: 200 }
    const pending = { outcome: 'pending' }
    // nobody is entitled yet: whose it will be, the event itself has to say
    expect(await confirm(question(other))).toEqual(pending)
    await deliverTo(bench.hookledger, [probe('pay', { order: 'a' })])
    await workOff(bench.hookledger)
    expect(await bench.rows('select subject from orders')).toEqual([{ subject: null }])
    expect(await confirm(question(other))).toEqual({ outcome: 'unknown' })
    expect(await confirm(question({ timeoutMs: 200 }))).toEqual(pending)
    onFetch = async () => {
      throw new RecordsError('unavailable', 'later')
    }
    expect(await confirm(question(other))).toEqual({ outcome: 'unknown' })
    expect(await confirm(question())).toEqual(pending)
  })

  it.each([
    ['an unknown source', { source: 'prob' }, 'HKL_CONFIRM_INVALID', 'did you mean "probe"'],
    ['no order', { order: '' }, 'HKL_CONFIRM_INVALID', 'order is empty'],
    ['no subject', { subject: '' }, 'HKL_CONFIRM_INVALID', 'subject is empty'],
    [
      'an account that is not allowed',
      { reference: { kind: 'session', id: 'cs_1', account: 'acct_9' } },
      'HKL_CONFIRM_INVALID',
      'does not allow this account',
    ],
    [
      'a reference that is none',
      { reference: 'cs_1' as never },
      'HKL_CONFIRM_INVALID',
      'reference',
    ],
    [
      'a kind of record that the source does not have',
      { reference: { kind: 'nonsense', id: 'cs_1' } },
      'HKL_CONFIRM_INVALID',
      'no records of kind "nonsense"; it has session',
    ],
    ['no time at all', { timeoutMs: 0 }, 'HKL_CONFIRM_INVALID', 'timeoutMs'],
  ])('refuses %s', async (_, fields, code, message) => {
    await expect(confirm(question(fields))).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    })
    expect(asked).toEqual([])
  })

  it('says what a source lacks that cannot be asked', async () => {
    const other = bench.another({ sources: { probe: base as NonNullable<typeof base> } })
    await expect(other.confirm(question())).rejects.toMatchObject({
      code: 'HKL_RECONCILE_NO_RECORDS',
    })
  })
})
