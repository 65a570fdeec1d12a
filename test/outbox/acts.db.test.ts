import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createOutboxBench, type OutboxBench } from '../support/dispatch-bench.ts'
import { done, scripted, unknown } from '../support/scripted-destination.ts'

const email = scripted()
const replaying = scripted({ replaysFailures: true })
const destinations = { email, replaying }
const by = { reason: 'asked the customer', actor: 'ada' }
const refused = { kind: 'refused', error: 'HTTP 422', status: 422, settlesEarlier: true } as const
let bench: OutboxBench

beforeAll(async () => {
  bench = await createOutboxBench(destinations)
})
afterAll(() => bench.close())
beforeEach(async () => {
  for (const each of Object.values(destinations)) each.reset()
  await bench.clear()
})

async function dead(to: 'email' | 'replaying', key: string): Promise<string> {
  destinations[to].next(refused)
  const id = await bench.add(to, key)
  await bench.run()
  expect(await bench.operation(id)).toMatchObject({ state: 'dead' })
  return id
}

async function uncertain(key: string): Promise<string> {
  email.next(unknown)
  const id = await bench.add('email', key)
  await bench.run()
  expect(await bench.operation(id)).toMatchObject({ state: 'uncertain' })
  return id
}

const recorded = (id: string): Promise<unknown[]> =>
  bench.rows(
    'select act, reason, actor, details from operator_acts where target = $1 order by act_id',
    [`operation:${id}`],
  )

describe('retry', () => {
  it('sends a dead operation again, with the act, its reason and its actor recorded', async () => {
    const id = await dead('email', 'retry dead')
    const acts = await bench.parts.outboxActs()
    expect(await acts.retry(id, by)).toMatchObject({
      from: 'dead',
      to: 'pending',
      keyGeneration: 1,
    })
    expect(await bench.findings(id)).toEqual([{ kind: 'operation_dead', state: 'closed' }])
    expect(await recorded(id)).toEqual([
      {
        act: 'outbox retry',
        ...by,
        details: { from: 'dead', to: 'pending', key_generation: 1 },
      },
    ])
    await bench.run()
    expect(await bench.operation(id)).toMatchObject({ state: 'sent', attempts: 2 })
  })

  it('takes a new key where the destination would only repeat the refusal that it stored', async () => {
    const id = await dead('replaying', 'retry replaying')
    await (await bench.parts.outboxActs()).retry(id, by)
    await bench.run()
    expect(replaying.arrived.map((call) => call.key)).toEqual([id, `${id}:2`])
  })

  it('repeats an uncertain operation at once, under its key', async () => {
    const id = await uncertain('retry uncertain')
    await (await bench.parts.outboxActs()).retry(id, by)
    await bench.run()
    expect(email.arrived.map((call) => call.key)).toEqual([id, id])
    expect(await bench.operation(id)).toMatchObject({ state: 'sent' })
  })

  it('refuses where the key is forgotten and nothing can be looked up', async () => {
    const id = await uncertain('undecided')
    await bench.age(id, 24 * 3_600_000)
    const acts = await bench.parts.outboxActs()
    await expect(acts.retry(id, by)).rejects.toMatchObject({ code: 'HKL_OUTBOX_UNDECIDED' })
    expect(await recorded(id)).toEqual([])
  })

  it('gives a destination all its attempts once more', async () => {
    email.otherwise({ kind: 'retry', error: 'busy' })
    const id = await bench.add('email', 'attempts')
    const spend = async (): Promise<void> => {
      for (let n = 0; n < 12; n++) {
        await bench.due()
        await bench.run()
      }
    }
    await spend()
    expect(await bench.operation(id)).toMatchObject({ state: 'dead', attempts: 10 })
    await (await bench.parts.outboxActs()).retry(id, by)
    await spend()
    expect(await bench.operation(id)).toMatchObject({ state: 'dead', attempts: 20 })
  })
})

describe('resolve', () => {
  it('as sent ends the operation, with what the person knows as its receipt', async () => {
    const id = await uncertain('resolve sent')
    const acts = await bench.parts.outboxActs()
    await acts.resolve(id, { as: 'sent', receipt: { message: 'msg_7' } }, by)
    expect(await bench.operation(id)).toMatchObject({
      state: 'sent',
      receipt: { message: 'msg_7' },
      uncertain_since: null,
      next_attempt_at: null,
    })
    expect(await recorded(id)).toMatchObject([{ act: 'outbox resolve', details: { as: 'sent' } }])
  })

  it('as not done sends it again in a new window', async () => {
    const id = await uncertain('resolve not done')
    await bench.age(id, 24 * 3_600_000)
    const acts = await bench.parts.outboxActs()
    await acts.resolve(id, { as: 'not_done' }, by)
    expect(await bench.operation(id)).toMatchObject({
      state: 'pending',
      uncertain_since: null,
      first_attempt_at: null,
    })
    await bench.run()
    expect(await bench.operation(id)).toMatchObject({ state: 'sent' })
  })
})

describe('discard', () => {
  it('ends it without sending it', async () => {
    const id = await dead('email', 'discard')
    await (await bench.parts.outboxActs()).discard(id, by)
    await bench.due()
    await bench.run()
    expect(await bench.operation(id)).toMatchObject({ state: 'discarded', attempts: 1 })
    expect(await bench.findings(id)).toEqual([{ kind: 'operation_dead', state: 'closed' }])
  })
})

describe('every act', () => {
  it('refuses what does not wait for a person, and what does not exist', async () => {
    const acts = await bench.parts.outboxActs()
    const id = await bench.add('email', 'pending')
    await expect(acts.discard(id, by)).rejects.toMatchObject({ code: 'HKL_OUTBOX_NOT_OPEN' })
    await bench.run()
    await expect(acts.retry(id, by)).rejects.toMatchObject({ code: 'HKL_OUTBOX_NOT_OPEN' })
    await expect(acts.retry('00000000-0000-5000-8000-000000000000', by)).rejects.toMatchObject({
      code: 'HKL_OUTBOX_OPERATION_UNKNOWN',
    })
  })

  it('never touches an operation that is being called', async () => {
    const id = await uncertain('being called')
    let finish: () => void = () => {}
    email.next(() => new Promise((resolve) => (finish = () => resolve(done))))
    await bench.due()
    const running = bench.run()
    await expect.poll(() => email.arrived.length).toBe(2)
    const acts = await bench.parts.outboxActs()
    await expect(acts.resolve(id, { as: 'sent' }, by)).rejects.toMatchObject({
      code: 'HKL_OUTBOX_NOT_OPEN',
    })
    finish()
    await running
    expect(await bench.operation(id)).toMatchObject({ state: 'sent', receipt: { id: 'receipt_1' } })
  })

  it('of two persons at once, one is done and the other is told', async () => {
    const id = await uncertain('two persons')
    const acts = await bench.parts.outboxActs()
    const results = await Promise.allSettled([
      acts.discard(id, by),
      acts.resolve(id, { as: 'sent' }, by),
    ])
    expect(results.map((each) => each.status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(await recorded(id)).toHaveLength(1)
  })
})
