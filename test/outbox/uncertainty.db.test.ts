import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createOutboxBench, type OutboxBench } from '../support/dispatch-bench.ts'
import { busy, done, scripted, unknown } from '../support/scripted-destination.ts'

const hour = 3_600_000
const windowMs = 23 * hour
const plain = scripted({ maxAttempts: 4 })
const looked = scripted({ maxAttempts: 4 }, { lookup: true })
const replaying = scripted({ maxAttempts: 4, replaysFailures: true }, { lookup: true })
const forgetful = scripted({ maxAttempts: 4, idempotency: 'none', retentionMs: 0, marginMs: 0 })
const destinations = { plain, looked, replaying, forgetful }
let bench: OutboxBench

beforeAll(async () => {
  bench = await createOutboxBench(destinations)
})
afterAll(() => bench.close())
beforeEach(async () => {
  for (const each of Object.values(destinations)) each.reset()
  await bench.clear()
})

/** What is due, and what would be due later, is done. */
async function again(): Promise<void> {
  await bench.due()
  await bench.run()
}

describe('an operation of which nobody knows', () => {
  it('is sent again under the same key with the same bytes while its key is remembered', async () => {
    plain.next(unknown)
    const id = await bench.add('plain', 'inside')
    await bench.run()
    const before = await bench.operation(id)
    expect(before).toMatchObject({ state: 'uncertain', key_generation: 1 })
    expect(before.uncertain_since).not.toBeNull()
    await bench.age(id, windowMs - 60_000)
    await again()
    expect(plain.arrived.map((call) => [call.key, call.body])).toEqual([
      [id, '{"key":"inside"}'],
      [id, '{"key":"inside"}'],
    ])
    expect(await bench.operation(id)).toMatchObject({ state: 'sent', uncertain_since: null })
  })

  it('stays uncertain after a definite answer that it was not done this time', async () => {
    plain.next(unknown, busy)
    const id = await bench.add('plain', 'then busy')
    await bench.run()
    const { uncertain_since: since } = await bench.operation(id)
    await again()
    expect(await bench.operation(id)).toMatchObject({ state: 'uncertain', uncertain_since: since })
  })

  it('is not dead because a door was shut, and is when the destination speaks of it', async () => {
    plain.next(unknown, { kind: 'refused', error: 'HTTP 401', status: 401, settlesEarlier: false })
    const id = await bench.add('plain', 'door')
    await bench.run()
    await again()
    expect(await bench.operation(id)).toMatchObject({ state: 'uncertain' })
    expect(await bench.findings(id)).toEqual([{ kind: 'operation_uncertain', state: 'open' }])
    plain.next({ kind: 'refused', error: 'HTTP 422', status: 422, settlesEarlier: true })
    await again()
    expect(await bench.operation(id)).toMatchObject({ state: 'dead' })
    expect(await bench.findings(id)).toEqual([
      { kind: 'operation_dead', state: 'open' },
      { kind: 'operation_uncertain', state: 'closed' },
    ])
  })

  it('is a finding when its key is forgotten and nothing can be looked up', async () => {
    plain.next(unknown)
    const id = await bench.add('plain', 'forgotten')
    await bench.run()
    await bench.age(id, windowMs)
    await again()
    expect(plain.arrived).toHaveLength(1)
    expect(await bench.operation(id)).toMatchObject({
      state: 'uncertain',
      next_attempt_at: null,
      attempts: 1,
    })
    expect(await bench.findings(id)).toEqual([{ kind: 'operation_uncertain', state: 'open' }])
    await again()
    expect(plain.arrived).toHaveLength(1)
  })

  it('is looked up when its key is forgotten: present ends it with the receipt of the lookup', async () => {
    looked.next(unknown)
    looked.nextLookup({ kind: 'present', receipt: { id: 'found' } })
    const id = await bench.add('looked', 'present')
    await bench.run()
    await bench.age(id, windowMs)
    await again()
    expect(looked.arrived.map((call) => call.kind)).toEqual(['call', 'lookup'])
    expect(await bench.operation(id)).toMatchObject({ state: 'sent', receipt: { id: 'found' } })
    expect(await bench.attempts(id)).toMatchObject([
      { number: 1, kind: 'call', outcome: 'uncertain' },
      { number: 2, kind: 'lookup', outcome: 'present' },
    ])
  })

  it('is sent again after proof of absence, under the same key with a new window', async () => {
    looked.next(unknown)
    looked.nextLookup({ kind: 'absent' })
    const id = await bench.add('looked', 'absent')
    await bench.run()
    await bench.age(id, windowMs)
    await again()
    expect(looked.arrived.map((call) => [call.kind, call.key])).toEqual([
      ['call', id],
      ['lookup', id],
      ['call', id],
    ])
    const after = await bench.operation(id)
    expect(after).toMatchObject({ state: 'sent', key_generation: 1 })
    expect(Date.now() - Number(after.first_attempt_at)).toBeLessThan(hour)
  })

  it('takes a new key after proof of absence where the old one would be answered with a stored failure', async () => {
    replaying.next(unknown)
    replaying.nextLookup({ kind: 'absent' })
    const id = await bench.add('replaying', 'generations')
    await bench.run()
    await bench.age(id, windowMs)
    await again()
    // a call from just before the end may still be worked on
    expect(replaying.arrived.map((call) => call.kind)).toEqual(['call'])
    await bench.age(id, 600_000)
    await again()
    expect(replaying.arrived.map((call) => [call.kind, call.key])).toEqual([
      ['call', id],
      ['lookup', id],
      ['call', `${id}:2`],
    ])
    expect(await bench.operation(id)).toMatchObject({ state: 'sent', key_generation: 2 })
    expect((await bench.attempts(id)).map((each) => each.key_generation)).toEqual([1, 1, 2])
  })

  it('is a finding when lookups have no answer, and closes it when one has', async () => {
    looked.next(unknown)
    const id = await bench.add('looked', 'silent')
    await bench.run()
    await bench.age(id, windowMs)
    for (let round = 0; round < 5; round++) await again()
    expect(looked.arrived.filter((call) => call.kind === 'lookup')).toHaveLength(4)
    expect(await bench.operation(id)).toMatchObject({ state: 'uncertain', next_attempt_at: null })
    expect(await bench.findings(id)).toEqual([{ kind: 'operation_uncertain', state: 'open' }])
    looked.nextLookup({ kind: 'present', receipt: {} })
    const acts = await bench.parts.outboxActs()
    await acts.retry(id, { reason: 'it answers again', actor: 'ada' })
    await again()
    expect(await bench.operation(id)).toMatchObject({ state: 'sent' })
    expect(await bench.findings(id)).toEqual([{ kind: 'operation_uncertain', state: 'closed' }])
  })

  it('goes on inside the window past its attempts, and tells a person meanwhile', async () => {
    looked.otherwise(unknown)
    const id = await bench.add('looked', 'used up')
    for (let round = 0; round < 6; round++) {
      await bench.rows(
        `update outbox_operations set next_attempt_at = now() where operation_id = $1 and next_attempt_at is not null`,
        [id],
      )
      await bench.run()
    }
    expect(looked.arrived.length).toBeGreaterThan(4)
    expect(new Set(looked.arrived.map((call) => `${call.kind} ${call.key}`))).toEqual(
      new Set([`call ${id}`]),
    )
    const waiting = await bench.operation(id)
    expect(waiting.state).toBe('uncertain')
    expect(waiting.next_attempt_at).not.toBeNull()
    expect(await bench.findings(id)).toEqual([{ kind: 'operation_uncertain', state: 'open' }])
  })

  it('is done at least once where no id is honored, with every attempt to be seen', async () => {
    forgetful.next(unknown, unknown)
    const id = await bench.add('forgetful', 'at least once')
    await bench.run()
    await again()
    await again()
    const [row] = await bench.rows(
      'select promise, state, attempts from outbox_operations where operation_id = $1',
      [id],
    )
    expect(row).toEqual({ promise: 'at_least_once', state: 'sent', attempts: 3 })
    expect((await bench.attempts(id)).map((each) => each.outcome)).toEqual([
      'uncertain',
      'uncertain',
      'sent',
    ])
  })
})

describe('a lease', () => {
  it('that ran out leaves the operation uncertain, and the late answer of its holder ends it', async () => {
    let answer: () => void = () => {}
    plain.next(() => new Promise((resolve) => (answer = () => resolve(done))))
    const id = await bench.add('plain', 'zombie')
    const zombie = await bench.parts.dispatcher()
    zombie.start()
    await expect.poll(() => plain.arrived.length).toBe(1)
    // another dispatcher finds the lease run out; the destination cannot say yet what came of it
    await bench.age(id, 3_600_000)
    plain.next(unknown)
    await bench.another({ plain }).runOnce({ budgetMs: 5000 })
    await expect
      .poll(async () => [(await bench.operation(id)).state, plain.arrived.length])
      .toEqual(['uncertain', 2])
    expect(plain.arrived.map((call) => call.key)).toEqual([id, id])
    answer()
    await expect.poll(async () => (await bench.operation(id)).state).toBe('sent')
    await zombie.stop(5000)
    expect(await bench.attempts(id)).toMatchObject([
      { number: 1, outcome: 'sent', late: true },
      { number: 2, outcome: 'uncertain', late: false },
    ])
    expect(await bench.operation(id)).toMatchObject({ receipt: { id: 'receipt_1' }, lease: null })
  })

  it('that is lost writes nothing over what its successor knows', async () => {
    let answer: () => void = () => {}
    plain.next(
      () =>
        new Promise(
          (resolve) =>
            (answer = () => resolve({ kind: 'refused', error: 'no', settlesEarlier: true })),
        ),
    )
    const id = await bench.add('plain', 'overtaken')
    const zombie = await bench.parts.dispatcher()
    zombie.start()
    await expect.poll(() => plain.arrived.length).toBe(1)
    await bench.age(id, 3_600_000)
    plain.next({ kind: 'sent', receipt: { by: 'successor' } })
    await bench.another({ plain }).runOnce({ budgetMs: 5000 })
    await expect.poll(async () => (await bench.operation(id)).state).toBe('sent')
    answer()
    await expect.poll(async () => (await bench.attempts(id))[0]?.outcome).toBe('refused')
    await zombie.stop(5000)
    expect(await bench.operation(id)).toMatchObject({
      state: 'sent',
      receipt: { by: 'successor' },
    })
    expect(await bench.attempts(id)).toMatchObject([
      { late: true },
      { outcome: 'sent', late: false },
    ])
    expect(await bench.findings(id)).toEqual([])
  })

  it('whose late answer came while another attempt was under way ends that attempt when it says nothing', async () => {
    let first: () => void = () => {}
    let second: () => void = () => {}
    plain.next(
      () =>
        new Promise(
          (resolve) => (first = () => resolve({ kind: 'sent', receipt: { by: 'first' } })),
        ),
      () => new Promise((resolve) => (second = () => resolve(unknown))),
    )
    const id = await bench.add('plain', 'crossed')
    const zombie = await bench.parts.dispatcher()
    zombie.start()
    await expect.poll(() => plain.arrived.length).toBe(1)
    await bench.age(id, 3_600_000)
    const other = bench.another({ plain }).runOnce({ budgetMs: 5000 })
    await expect.poll(() => plain.arrived.length).toBe(2)
    first()
    await expect.poll(async () => (await bench.attempts(id))[0]?.late).toBe(true)
    expect(await bench.operation(id)).toMatchObject({ state: 'sending' })
    second()
    await other
    await zombie.stop(5000)
    expect(await bench.operation(id)).toMatchObject({ state: 'sent', receipt: { by: 'first' } })
  })

  it('never leads two dispatchers to the same operation, however many look', async () => {
    plain.otherwise(async () => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      return done
    })
    const ids = new Set<string>()
    for (let n = 0; n < 60; n++) ids.add(await bench.add('plain', `many:${n}`))
    const others = [1, 2, 3].map(() => bench.another({ plain }))
    await Promise.all(
      [bench.hookledger, ...others].map((each) => each.runOnce({ budgetMs: 20_000 })),
    )
    expect(plain.arrived.map((call) => call.operationId).sort()).toEqual([...ids].sort())
    const [left] = await bench.rows<{ n: number }>(
      `select count(*)::integer as n from outbox_operations where state <> 'sent' and finished_at is null`,
    )
    expect(left?.n).toBe(0)
    const [row] = await bench.rows<{ under_way: number }>(
      `select under_way from outbox_destinations where destination = 'plain'`,
    )
    expect(row?.under_way).toBe(0)
  })
})
