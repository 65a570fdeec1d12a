import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openJournal } from '../../../src/testing/stripe-double/journal.ts'
import { ObjectState } from '../../../src/testing/stripe-double/object-state.ts'
import { createCustomer, updateCustomer } from '../../../src/testing/stripe-double/catalog-verbs.ts'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../../src/testing/stripe-double/stripe-double.ts'
import { manualClock, paidSession, serveWithClient } from './stripe-client.ts'

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'stripe-double-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

function open(): StripeDouble {
  return createStripeDouble({ signingSecret: 'whsec_test', seed: 'storage', dataDir })
}

function everything(double: StripeDouble): unknown {
  const kinds = [
    'checkout.session',
    'payment_intent',
    'charge',
    'refund',
    'customer',
    'event',
  ] as const
  return JSON.parse(JSON.stringify(kinds.map((kind) => double.all(kind)))) as unknown
}

describe('the data directory', () => {
  test('a second start has the same objects in the same order, and gives new ids', () => {
    const first = open()
    const { intent } = paidSession(first)
    first.refund({ paymentIntent: intent, amount: 900 })
    first.forAccount('acct_2').createCustomer({ email: 'theirs@example.com' })
    const before = everything(first)
    const entries = first.log.entries().length
    first.close()

    const second = open()
    expect(everything(second)).toEqual(before)
    expect(second.forAccount('acct_2').all('customer')).toHaveLength(1)
    expect(second.log.entries()).toHaveLength(entries)
    const known = second.all('event').map((event) => event.id)
    second.refund({ paymentIntent: intent, amount: 100 })
    const now = second.all('event').map((event) => event.id)
    expect(new Set(now).size).toBe(known.length + 2)
    second.close()
  })

  test('what an open session will do is not forgotten', () => {
    const first = open()
    const { id } = first.createSession({ paymentIntentMetadata: { order_id: '9' } })
    first.close()
    const second = open()
    const done = second.completeSession(id)
    expect(second.find('payment_intent', done.payment_intent as string)?.metadata).toEqual({
      order_id: '9',
    })
    second.close()
  })

  test('a torn last line counts for nothing and is cut off', () => {
    const first = open()
    paidSession(first)
    const before = everything(first)
    first.close()
    const file = join(dataDir, 'stripe-objects.jsonl')
    const { size } = statSync(file)
    appendFileSync(file, '{"at":1,"account":"acct_simulated","counter":99,"put":[{"id":"re_half"')
    appendFileSync(join(dataDir, 'stripe-log.jsonl'), '{"kind":"ev')

    const second = open()
    expect(statSync(file).size).toBe(size)
    expect(everything(second)).toEqual(before)
    second.createCustomer({ email: 'after@example.com' })
    second.close()
    const third = open()
    expect(third.all('customer')).toHaveLength(1)
    third.close()
  })

  test('damage in the middle stops the start with the place', () => {
    const first = open()
    paidSession(first)
    first.close()
    const file = join(dataDir, 'stripe-objects.jsonl')
    writeFileSync(file, `nonsense\n${readFileSync(file, 'utf8')}`)
    expect(() => open()).toThrow(/stripe-objects\.jsonl is damaged at byte 0/)
  })

  test('a second process that writes to the same file is noticed', () => {
    const one = open()
    const other = open()
    one.createCustomer()
    expect(() => other.createCustomer()).toThrow('another process writes')
    one.close()
    other.close()
  })

  test('an answer stored under an idempotency key survives the restart', async () => {
    const first = await serveWithClient({ dataDir })
    const { intent } = paidSession(first.double)
    const refund = await first.stripe.refunds.create(
      { payment_intent: intent },
      { idempotencyKey: 'k' },
    )
    await first[Symbol.asyncDispose]()

    await using second = await serveWithClient({ dataDir })
    const again = await second.stripe.refunds.create(
      { payment_intent: intent },
      { idempotencyKey: 'k' },
    )
    expect(again).toEqual(refund)
    expect(again.lastResponse.requestId).not.toBe(refund.lastResponse.requestId)
    expect(second.double.all('refund')).toHaveLength(1)
  })

  test('events without an acknowledgment are known after the restart', () => {
    const first = open()
    const [one, two, three] = first.hold(() => paidSession(first)).events
    const delivered = {
      kind: 'delivery',
      at: 1,
      copy: 0,
      attempt: 1,
      error: null,
      durationMs: 1,
    } as const
    first.log.append({ ...delivered, eventId: one!.id, status: 204 })
    first.log.append({ ...delivered, eventId: two!.id, status: 302 })
    first.log.append({ kind: 'dropped', at: 1, eventId: three!.id, reason: 'lost' })
    first.close()
    const second = open()
    const left = second.unacknowledged().map((event) => event.id)
    expect(left).toHaveLength(3)
    expect(left[0]).toBe(two!.id)
    expect(left).not.toContain(three!.id)
    second.close()
  })

  test('a kill between the two files leaves a log that is completed at the next start', () => {
    const first = open()
    paidSession(first)
    const types = first.log.entries('event').map((entry) => entry.type)
    first.close()
    rmSync(join(dataDir, 'stripe-log.jsonl'))
    const second = open()
    expect(second.log.entries('event').map((entry) => entry.type)).toEqual(types)
    second.close()
  })
})

describe('compaction', () => {
  test('a large journal is rewritten smaller, with the same objects, order and ids to come', () => {
    const clock = manualClock()
    const options = { seed: 's', account: 'acct_1', clock: clock.now, livemode: false, dataDir }
    const cause = { requestId: null, idempotencyKey: null }
    const grown = new ObjectState(options)
    grown.connect('acct_2')
    const ids = ['acct_1', 'acct_2', 'acct_1'].map((account) =>
      grown.transact(account, cause, (tx) =>
        createCustomer(tx, { email: `${account}@example.com` }),
      ),
    )
    clock.move(29 * 24 * 3600_000)
    for (let turn = 0; turn < 20; turn++) {
      grown.transact('acct_1', cause, (tx) =>
        updateCustomer(tx, ids[0]!.id, { name: `Ada ${turn}` }),
      )
    }
    const read = (state: ObjectState) => ({
      own: state.records('acct_1', 'customer'),
      theirs: state.records('acct_2', 'customer'),
      events: state.records('acct_1', 'event').map((record) => record.object.id),
    })
    const before = read(grown)
    grown.close()
    const file = join(dataDir, 'stripe-objects.jsonl')
    const { size } = statSync(file)

    clock.move(2 * 24 * 3600_000)
    const compacted = new ObjectState({ ...options, compactBytes: 1024 })
    expect(statSync(file).size).toBeLessThan(size)
    expect(read(compacted)).toEqual({ ...before, events: before.events.slice(2) })
    const next = compacted.transact('acct_1', cause, (tx) => createCustomer(tx, {}))
    compacted.close()

    const reopened = new ObjectState(options)
    expect(reopened.records('acct_1', 'customer').map((record) => record.object.id)).toEqual([
      ids[0]!.id,
      ids[2]!.id,
      next.id,
    ])
    expect(before.events).not.toContain(next.id)
    expect(reopened.records('acct_1', 'customer').map((record) => record.sequence)).toEqual(
      [...reopened.records('acct_1', 'customer')]
        .map((record) => record.sequence)
        .sort((a, b) => a - b),
    )
    reopened.close()
  })

  test('a journal that is replaced takes further lines', () => {
    const path = join(dataDir, 'lines.jsonl')
    const journal = openJournal(path, () => {})
    journal.append({ a: 1 })
    journal.replace([{ b: 2 }])
    journal.append({ c: 'ü\n' })
    journal.close()
    const lines: unknown[] = []
    openJournal(path, (line) => lines.push(line)).close()
    expect(lines).toEqual([{ b: 2 }, { c: 'ü\n' }])
  })
})
