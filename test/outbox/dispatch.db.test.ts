import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createOutboxBench, type OutboxBench } from '../support/dispatch-bench.ts'
import { busy, done, scripted, unknown } from '../support/scripted-destination.ts'

const email = scripted({ maxAttempts: 3 })
let bench: OutboxBench

beforeAll(async () => {
  bench = await createOutboxBench({ email })
})
afterAll(() => bench.close())
beforeEach(async () => {
  email.reset()
  await bench.clear()
})

describe('adding an operation', () => {
  it('sends it once its transaction has committed, with the very bytes that were recorded', async () => {
    const id = await bench.add('email', 'welcome:1', { hello: 'wörld', n: 1 })
    expect(email.arrived).toEqual([])
    await bench.run()
    expect(email.arrived).toMatchObject([
      { operationId: id, key: id, body: '{"hello":"wörld","n":1}', kind: 'call' },
    ])
    expect(await bench.operation(id)).toMatchObject({
      state: 'sent',
      attempts: 1,
      receipt: { id: 'receipt_1' },
      lease: null,
      next_attempt_at: null,
    })
    expect(await bench.attempts(id)).toMatchObject([
      { number: 1, kind: 'call', outcome: 'sent', status: 200, late: false },
    ])
  })

  it('sends nothing of a transaction that was rolled back', async () => {
    const client = await bench.pool.connect()
    await client.query('begin')
    await bench.hookledger.outbox.add(client, { to: 'email', key: 'rolled back', body: 1 })
    await client.query('rollback')
    client.release()
    await bench.run()
    expect(email.arrived).toEqual([])
  })

  it('answers that the same is recorded, and refuses other bytes under its key', async () => {
    await bench.add('email', 'same', { a: 1 })
    const client = await bench.pool.connect()
    const add = (body: unknown): Promise<string> =>
      bench.hookledger.outbox.add(client, { to: 'email', key: 'same', body })
    expect(await add({ a: 1 })).toBe('existed')
    await expect(add({ a: 2 })).rejects.toMatchObject({ code: 'HKL_OUTBOX_CHANGED' })
    await expect(
      bench.hookledger.outbox.add(client, { to: 'emial', key: 'k', body: 1 }),
    ).rejects.toThrow('did you mean "email"?')
    client.release()
    await bench.run()
    expect(email.arrived).toHaveLength(1)
  })
})

describe('an outcome', () => {
  it('that is certainly nothing is tried again with the same key and bytes, until it is done', async () => {
    email.next(busy, busy)
    const id = await bench.add('email', 'again')
    await bench.run()
    await bench.due()
    await bench.run()
    await bench.due()
    await bench.run()
    expect(email.arrived.map(({ key, body }) => [key, body])).toEqual(
      Array.from({ length: 3 }, () => [id, '{"key":"again"}']),
    )
    expect(await bench.operation(id)).toMatchObject({ state: 'sent', attempts: 3 })
  })

  it('that is a refusal ends it dead, with a finding and what was answered', async () => {
    const answer = Buffer.from('no such mailbox')
    email.next({ kind: 'refused', error: 'HTTP 422', status: 422, settlesEarlier: true, answer })
    const id = await bench.add('email', 'refused')
    await bench.run()
    expect(await bench.operation(id)).toMatchObject({
      state: 'dead',
      last_error: 'HTTP 422',
      next_attempt_at: null,
    })
    expect(await bench.findings(id)).toEqual([{ kind: 'operation_dead', state: 'open' }])
    const [kept] = await bench.rows<{ answer: Buffer }>(
      'select answer from outbox_answers order by attempt_id desc limit 1',
    )
    expect(kept?.answer.toString()).toBe('no such mailbox')
  })

  it('that never comes right ends it dead after the attempts of its destination', async () => {
    email.otherwise(busy)
    const id = await bench.add('email', 'exhausted')
    for (let round = 0; round < 5; round++) {
      await bench.run()
      await bench.due()
    }
    expect(email.arrived).toHaveLength(3)
    expect(await bench.operation(id)).toMatchObject({ state: 'dead', attempts: 3 })
    expect(await bench.findings(id)).toEqual([{ kind: 'operation_dead', state: 'open' }])
  })

  it('of which nobody knows is never dead for running out of attempts: a person is asked', async () => {
    email.next(unknown)
    email.otherwise(busy)
    const id = await bench.add('email', 'uncertain to the end')
    for (let round = 0; round < 5; round++) {
      await bench.run()
      await bench.due()
    }
    // inside the window it goes on: the same call again is the only thing that can tell
    expect(email.arrived).toHaveLength(5)
    expect(await bench.operation(id)).toMatchObject({ state: 'uncertain', attempts: 5 })
    expect(await bench.findings(id)).toEqual([{ kind: 'operation_uncertain', state: 'open' }])
  })

  it('keeps at most four kilobytes of an answer, and survives texts that no database keeps', async () => {
    email.next({
      kind: 'sent',
      receipt: { text: 'a\u0000b\ud800', n: 1 },
      status: 200,
      answer: Buffer.alloc(10_000, 7),
    })
    const id = await bench.add('email', 'hostile')
    await bench.run()
    expect(await bench.operation(id)).toMatchObject({
      state: 'sent',
      receipt: { text: 'a\ufffdb\ufffd', n: 1 },
    })
    const [kept] = await bench.rows<{ bytes: number }>(
      'select octet_length(answer) as bytes from outbox_answers order by attempt_id desc limit 1',
    )
    expect(kept?.bytes).toBe(4096)
  })
})

describe('a call that does not end', () => {
  it('is ended by its deadline, and nobody knows what came of it', async () => {
    const slow = scripted({ callMs: 50, leaseMs: 5000, maxAttempts: 1 })
    const other = await createOutboxBench({ slow })
    try {
      slow.next(() => new Promise(() => {}))
      const id = await other.add('slow', 'drips')
      await other.run()
      expect(await other.operation(id)).toMatchObject({ state: 'uncertain' })
      expect(await other.attempts(id)).toMatchObject([
        { outcome: 'uncertain', error: 'no answer within 50 ms' },
      ])
    } finally {
      await other.close()
    }
  })

  it('holds up no other operation, and no other destination', async () => {
    const slow = scripted({ concurrency: 1 })
    const quick = scripted()
    const other = await createOutboxBench({ slow, quick })
    try {
      let finish: () => void = () => {}
      slow.next(() => new Promise((resolve) => (finish = () => resolve(done))))
      await other.add('slow', 'first')
      const dispatcher = await other.parts.dispatcher()
      dispatcher.start()
      await expect.poll(() => slow.arrived.length).toBe(1)
      const ids = await Promise.all([1, 2, 3].map((n) => other.add('quick', `q${n}`)))
      await expect
        .poll(async () => Promise.all(ids.map(async (id) => (await other.operation(id)).state)))
        .toEqual(['sent', 'sent', 'sent'])
      expect(slow.arrived).toHaveLength(1)
      finish()
      await dispatcher.stop(5000)
    } finally {
      await other.close()
    }
  })
})
