import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createOutboxBench, type OutboxBench } from '../support/dispatch-bench.ts'
import { done, scripted, unknown } from '../support/scripted-destination.ts'

const parcel = scripted({ sequence: 'order', maxAttempts: 3 })
const email = scripted()
const destinations = { parcel, email }
let bench: OutboxBench

beforeAll(async () => {
  bench = await createOutboxBench(destinations)
})
afterAll(() => bench.close())
beforeEach(async () => {
  for (const each of Object.values(destinations)) each.reset()
  await bench.clear()
  await bench.rows('delete from orders')
})

async function order(id: string, state: string): Promise<void> {
  await bench.rows(
    `insert into orders (order_id, workflow, state) values ($1, 'license', $2)
     on conflict (order_id) do update set state = excluded.state`,
    [id, state],
  )
}

/** An operation as an effect records it, which makes sense only in some states. */
async function asked(orderId: string, whileStates: string[]): Promise<string> {
  const id = randomUUID()
  await bench.rows(
    `with o as (insert into outbox_operations (operation_id, destination, order_id, effect_type, effect_reference, name,
         request_sha256, request_bytes, while_states, promise, window_ms)
       values ($1, 'email', $2, 'license', '', 'receipt', sha256('{}'), 2, $3, 'once', 82800000))
     insert into outbox_requests (operation_id, request) values ($1, '{}')`,
    [id, orderId, whileStates],
  )
  return id
}

describe('an operation that makes sense only while its order is in some states', () => {
  it('is sent while it is', async () => {
    await order('o1', 'paid')
    const id = await asked('o1', ['paid', 'shipped'])
    await bench.run()
    expect(await bench.operation(id)).toMatchObject({ state: 'sent' })
  })

  it('is canceled with a decision when the order has left them', async () => {
    await order('o2', 'refunded')
    const id = await asked('o2', ['paid', 'shipped'])
    const ended: string[] = []
    const stop = bench.parts.signals.on('outbox.operation.ended', ({ outcome }) =>
      ended.push(outcome),
    )
    await bench.run()
    stop()
    expect(email.arrived).toEqual([])
    expect(await bench.operation(id)).toMatchObject({ state: 'canceled', attempts: 0 })
    expect(ended).toEqual(['canceled'])
    const decisions = await bench.rows(
      `select kind, final, event_key, from_state, to_state, reason, evidence, actor like 'dispatcher:%' as by_dispatcher
       from ledger_decisions where order_id = 'o2'`,
    )
    expect(decisions).toEqual([
      {
        kind: 'canceled',
        final: false,
        event_key: null,
        from_state: 'refunded',
        to_state: 'refunded',
        reason:
          'operation canceled: it makes sense only while the order is paid or shipped, and it is refunded',
        evidence: { operation: id },
        by_dispatcher: true,
      },
    ])
  })

  it('is never canceled once it may have been done', async () => {
    await order('o3', 'paid')
    email.next(unknown)
    const id = await asked('o3', ['paid'])
    await bench.run()
    await order('o3', 'refunded')
    await bench.due()
    await bench.run()
    expect(await bench.operation(id)).toMatchObject({ state: 'sent', attempts: 2 })
  })

  it('waits while somebody holds its order, and holds up nothing else', async () => {
    await order('o4', 'paid')
    const held = await asked('o4', ['paid'])
    const client = await bench.pool.connect()
    await client.query('begin')
    await client.query(`select from orders where order_id = 'o4' for update`)
    const other = await bench.add('email', 'beside')
    await bench.run()
    expect(await bench.operation(other)).toMatchObject({ state: 'sent' })
    expect(await bench.operation(held)).toMatchObject({ state: 'pending', attempts: 0 })
    await client.query(`update orders set state = 'refunded' where order_id = 'o4'`)
    await client.query('commit')
    client.release()
    await bench.due()
    await bench.run()
    expect(await bench.operation(held)).toMatchObject({ state: 'canceled' })
  })
})

describe('operations of one order on a destination that takes them in sequence', () => {
  it('go one after the other, and those of other orders beside them', async () => {
    let finish: () => void = () => {}
    parcel.next(() => new Promise((resolve) => (finish = () => resolve(done))))
    const [a1, a2, a3] = [
      await bench.add('parcel', 'a1', 1, 'A'),
      await bench.add('parcel', 'a2', 2, 'A'),
      await bench.add('parcel', 'a3', 3, 'A'),
    ]
    const b1 = await bench.add('parcel', 'b1', 1, 'B')
    const dispatcher = await bench.parts.dispatcher()
    dispatcher.start()
    await expect.poll(async () => (await bench.operation(b1)).state).toBe('sent')
    expect(parcel.arrived.map((call) => call.operationId).sort()).toEqual([a1, b1].sort())
    finish()
    // the next is due at once, not when the net would find it
    await expect.poll(async () => (await bench.operation(a3)).state, { timeout: 5000 }).toBe('sent')
    await dispatcher.stop(5000)
    expect(parcel.arrived.map((call) => call.operationId).filter((id) => id !== b1)).toEqual([
      a1,
      a2,
      a3,
    ])
  })

  it('wait behind one of which nobody knows, of their own order only', async () => {
    parcel.next(unknown)
    const a1 = await bench.add('parcel', 'u-a1', 1, 'UA')
    await bench.run()
    const a2 = await bench.add('parcel', 'u-a2', 2, 'UA')
    const b1 = await bench.add('parcel', 'u-b1', 1, 'UB')
    await bench.run()
    expect(await bench.operation(a1)).toMatchObject({ state: 'uncertain' })
    expect(await bench.operation(a2)).toMatchObject({ state: 'pending', attempts: 0 })
    expect(await bench.operation(b1)).toMatchObject({ state: 'sent' })
  })

  it('go on when a person has decided about the one before', async () => {
    parcel.next({ kind: 'refused', error: 'no', settlesEarlier: true })
    const first = await bench.add('parcel', 'd-1', 1, 'D')
    const second = await bench.add('parcel', 'd-2', 2, 'D')
    await bench.run()
    expect(await bench.operation(first)).toMatchObject({ state: 'dead' })
    expect(await bench.operation(second)).toMatchObject({ state: 'pending', attempts: 0 })
    const acts = await bench.parts.outboxActs()
    await acts.discard(first, { reason: 'not needed', actor: 'ada' })
    await bench.run()
    expect(await bench.operation(second)).toMatchObject({ state: 'sent' })
  })
})
