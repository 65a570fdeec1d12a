import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { handle, PermanentError, type Destination } from 'hookledger'
import { defaultContract } from '../../src/outbox/destination.ts'
import { effectOperationId } from '../../src/outbox/operation-id.ts'
import { appOperationId } from '../../src/postgres/permanent-id.ts'
import { defer, fulfill, operation, type Decision } from '../../src/workflow/decision.ts'
import type { PlainHandler } from '../../src/workflow/registry.ts'
import type { DecideInput } from '../../src/workflow/workflow.ts'
import {
  clearHooks,
  createProbe,
  decideProbe,
  probe,
  probeWorkflow,
  type Probe,
  type ProbeBody,
  type ProbeHooks,
} from '../support/probe.ts'

/** Takes what it is given, and remembers it; a body that says so cannot be encoded. */
function remembering(calls: string[]): Destination {
  return {
    kind: 'function',
    contract: { ...defaultContract, firstRetryMs: 3_600_000 },
    encode: ({ body }) => {
      if (body === 'broken') throw new PermanentError('body is broken')
      return new TextEncoder().encode(JSON.stringify(body))
    },
    call: async ({ operationId }) => {
      if (isDown) return { kind: 'retry', error: 'down' }
      calls.push(operationId)
      return { kind: 'sent', receipt: { message: `msg_${calls.length}` } }
    },
  }
}

const hooks: ProbeHooks = {}
const calls: string[] = []
let isDown = false
let runPlain: PlainHandler['run']
let bench: Probe
let installationId: string

beforeAll(async () => {
  bench = await createProbe({
    workflows: [probeWorkflow(hooks)],
    handlers: [handle('probe', 'plain', (input) => runPlain(input as never) as Promise<void>)],
    destinations: { email: remembering(calls) },
    limits: { firstRetryMs: 600_000, watchdogMs: 8000 },
  })
  const [row] = await bench.rows<{ id: string }>(
    `select installation_id::text as id from installation`,
  )
  installationId = row?.id ?? ''
})
afterAll(() => bench.close())
beforeEach(async () => {
  clearHooks(hooks)
  calls.length = 0
  isDown = false
  runPlain = () => Promise.resolve()
  await bench.reset()
})

/** The probe's own decision, with something sent along with each of its effects. */
const sending =
  (send: (body: ProbeBody) => unknown): NonNullable<ProbeHooks['decide']> =>
  (input: DecideInput): Decision => {
    const decided = decideProbe(input)
    if (!('effects' in decided) || decided.effects === undefined) return decided
    const effects = decided.effects.map((each) => ({
      ...each,
      send: send(input.event as unknown as ProbeBody) as never,
    }))
    return { ...decided, effects }
  }
/** Without `while`: a dispatcher need not lock the order before it sends. */
const always = (body: ProbeBody): unknown => [{ to: 'email', body: { event: body.id } }]
const receipt = (body: ProbeBody): unknown => [
  { to: 'email', name: 'receipt', body: { event: body.id }, while: ['paid'] },
]

/** Two moments that a test and the code under it tell one another. */
function gate() {
  let begun = (): void => {}
  let end = (): void => {}
  const begin = new Promise<void>((resolve) => (begun = resolve))
  const until = new Promise<void>((resolve) => (end = resolve))
  return { begin, until, begun, end }
}

const operations = (): Promise<Record<string, unknown>[]> =>
  bench.rows(
    `select operation_id::text as id, order_id, effect_type, effect_reference, destination, name, state,
       convert_from(request, 'UTF8') as request from outbox order by order_id, effect_type, effect_reference`,
  )
const stateOf = async (id: string): Promise<unknown> =>
  (await bench.rows(`select state, last_error from webhook_inbox where event_id = $1`, [id]))[0]

describe('an operation of an effect', () => {
  it('is committed with its effect, its decision and the exact bytes', async () => {
    hooks.decide = sending(receipt)
    await bench.deliver(probe('pay', { id: 'evt_1', order: '1' }))
    await bench.work()
    const id = effectOperationId(installationId, {
      orderId: '1',
      effectType: 'grant',
      effectReference: '',
      destination: 'email',
      name: 'receipt',
    })
    expect(
      await bench.rows(
        `select o.operation_id::text as id, o.destination, o.name, o.while_states, o.decision_id = d.decision_id as by_it,
           o.decision_id = f.decision_id as with_its_effect,
           mod(o.xid::text::numeric, 4294967296) = d.xmin::text::numeric as in_one_commit, d.evidence->'operations' as listed, o.promise
         from outbox_operations o
         join ledger_decisions d on d.decision_id = o.decision_id
         join fulfillment_effects f on f.order_id = o.order_id and f.effect_type = o.effect_type`,
      ),
    ).toEqual([
      {
        id,
        destination: 'email',
        name: 'receipt',
        while_states: ['paid'],
        by_it: true,
        with_its_effect: true,
        in_one_commit: true,
        listed: [id],
        promise: 'once',
      },
    ])
    expect(await operations()).toMatchObject([{ id, request: '{"event":"evt_1"}' }])
  })

  it('is not there when the commit of its effect fails', async () => {
    hooks.decide = sending(receipt)
    hooks.apply = () => Promise.reject(new Error('after the insert'))
    await bench.deliver(probe('pay', { id: 'evt_1', order: '1' }))
    await bench.work()
    expect(await stateOf('evt_1')).toMatchObject({ state: 'pending' })
    expect(await operations()).toEqual([])
    expect(await bench.rows(`select 1 from outbox_requests`)).toEqual([])
    clearHooks(hooks)
    hooks.decide = sending(receipt)
    await bench.rows(`update inbox_delayed set due_at = now()`)
    await bench.work()
    expect(await operations()).toHaveLength(1)
  })

  it('is not made again by an event whose effect exists', async () => {
    hooks.decide = sending(receipt)
    await bench.deliver(probe('pay', { id: 'evt_1', order: '1', payment: 'pi_1' }))
    await bench.work()
    await bench.deliver(
      probe('pay', { id: 'evt_2', order: '1', payment: 'pi_1' }),
      probe('pay', { id: 'evt_3', order: '1', payment: 'pi_3' }),
    )
    await bench.work()
    expect(await operations()).toMatchObject([{ request: '{"event":"evt_1"}' }])
    expect(calls).toHaveLength(1)
  })

  it('comes out of a batch with a bad neighbor exactly once', async () => {
    hooks.decide = sending(receipt)
    hooks.apply = ({ order, db }) =>
      order.id === '7'
        ? Promise.reject(new PermanentError('never'))
        : // refused by PostgreSQL itself at one of the others: the batch is split
          db.query(order.id === '3' ? 'select 1/0' : 'select 1').then(() => {})
    await bench.deliver(
      ...Array.from({ length: 12 }, (_, n) => probe('pay', { id: `evt_${n}`, order: `${n}` })),
    )
    await bench.work()
    const made = (await operations()).map((each) => each['order_id'])
    expect(made).toEqual(['0', '1', '10', '11', '2', '4', '5', '6', '8', '9'])
    expect(await bench.rows(`select order_id from fulfillment_effects order by 1`)).toEqual(
      made.map((order_id) => ({ order_id })),
    )
  })

  it('to nowhere ends its event dead with the nearest name, and its neighbors are unharmed', async () => {
    hooks.decide = sending((body) =>
      body.order === '2' ? [{ to: 'emial', body: 1 }] : receipt(body),
    )
    await bench.deliver(
      ...['1', '2', '3'].map((order) => probe('pay', { id: `evt_${order}`, order })),
    )
    await bench.work()
    expect(await stateOf('evt_2')).toEqual({
      state: 'dead',
      last_error:
        'PermanentError: workflow probe, pay: send of effect grant: no destination is named "emial", did it mean "email"?',
    })
    expect((await operations()).map((each) => each['order_id'])).toEqual(['1', '3'])
  })

  it('that cannot be encoded ends its event dead, and leaves nothing of its order', async () => {
    hooks.decide = sending((body) =>
      body.order === '2' ? [{ to: 'email', body: 'broken' }] : receipt(body),
    )
    await bench.deliver(
      ...['1', '2', '3'].map((order) => probe('pay', { id: `evt_${order}`, order })),
    )
    await bench.work()
    expect(await stateOf('evt_2')).toEqual({
      state: 'dead',
      last_error:
        'PermanentError: workflow probe, pay: send of effect grant to email: body is broken',
    })
    expect(await bench.rows(`select order_id from orders order by 1`)).toEqual([
      { order_id: '1' },
      { order_id: '3' },
    ])
    expect((await operations()).map((each) => each['order_id'])).toEqual(['1', '3'])
  })
})

describe('what decide is told of operations', () => {
  it('is where each stands, with its receipt, for the order and for its effect', async () => {
    const seen: unknown[] = []
    hooks.decide = (input) => {
      if ((input.event as { type?: unknown }).type !== 'custom') return sending(receipt)(input)
      seen.push(input.operations, input.effects[0]?.operations)
      return fulfill({ effects: [{ type: 'note', reference: 'looked' }] }) as Decision
    }
    await bench.deliver(probe('pay', { order: '1' }))
    await bench.work()
    await bench.rows(
      `update outbox_operations set state = 'sent', receipt = '{"transfer":"tr_1","amount":5}', finished_at = now(),
         next_attempt_at = null where state <> 'sent'`,
    )
    const [stored] = await bench.rows<{ receipt: unknown }>(`select receipt from outbox`)
    await bench.deliver(probe('custom', { order: '1' }))
    await bench.work()
    const sent = {
      name: 'receipt',
      destination: 'email',
      effect: { type: 'grant', reference: '' },
      state: 'sent',
      receipt: stored?.receipt,
    }
    expect(seen).toEqual([[sent], [sent]])
    expect(Object.isFrozen((seen[0] as { receipt: unknown }[])[0]?.receipt)).toBe(true)
  })

  it('is the same within the batch that makes them, where they are pending', async () => {
    const seen: unknown[] = []
    hooks.decide = (input) => {
      if ((input.event as { type?: unknown }).type !== 'custom') return sending(receipt)(input)
      seen.push(input.operations.map(({ name, state }) => [name, state]))
      return fulfill({ effects: [{ type: 'note', reference: 'looked' }] }) as Decision
    }
    await bench.deliver(probe('pay', { order: '1' }))
    await bench.deliver(probe('custom', { order: '1' }))
    await bench.work()
    expect(seen).toEqual([[['receipt', 'pending']]])
  })

  it('names the effect as it is called now, where it was renamed', async () => {
    hooks.decide = sending(receipt)
    await bench.deliver(probe('pay', { order: '1' }))
    await bench.work()
    const seen: unknown[] = []
    const renamed = probeWorkflow(
      {
        decide: ({ operations: all, effects }) => {
          seen.push(
            all.map((each) => each.effect),
            effects[0]?.operations.length,
          )
          return fulfill({ effects: [{ type: 'note', reference: 'looked' }] }) as Decision
        },
      },
      { effects: { access: { renamedFrom: 'grant' }, note: {}, after: {}, refund: {} } },
    )
    const newer = bench.another({ workflows: [renamed] })
    await bench.deliver(probe('custom', { order: '1' }))
    await newer.runOnce({ budgetMs: 10_000 })
    expect(seen).toEqual([[{ type: 'access', reference: '' }], 1])
  })
})

describe('an event that waits for an operation', () => {
  it('is woken by one that ends while the batch that defers it is still being written', async () => {
    hooks.decide = (input) => {
      if ((input.event as { type?: unknown }).type !== 'custom') return sending(always)(input)
      if (input.operations[0]?.state !== 'sent')
        return defer({ missing: operation('grant') }) as Decision
      return fulfill({ effects: [{ type: 'note', reference: 'told' }] }) as Decision
    }
    isDown = true
    await bench.deliver(probe('pay', { order: '1' }))
    await bench.work()
    await bench.rows(`update outbox_operations set next_attempt_at = now() + interval '1 hour'`)
    const writing = gate()
    hooks.apply = async ({ order }) => {
      if (order.id !== '2') return
      writing.begun()
      await writing.until
    }
    await bench.deliver(
      probe('custom', { id: 'evt_waits', order: '1' }),
      probe('pay', { order: '2' }),
    )
    const batch = bench.hookledger.runOnce({ budgetMs: 50 })
    await writing.begin
    isDown = false
    await bench.rows(`update outbox_operations set next_attempt_at = now()`)
    await bench.another({}).runOnce({ budgetMs: 1000 })
    const [sent] = await bench.rows(`select state from outbox where order_id = '1'`)
    const before = await stateOf('evt_waits')
    writing.end()
    await batch
    expect([sent, before]).toEqual([{ state: 'sent' }, { state: 'pending', last_error: null }])
    await bench.work()
    expect(await stateOf('evt_waits')).toMatchObject({ state: 'processed' })
  })

  it('is woken by the end of it, and decides with its receipt', async () => {
    hooks.decide = (input) => {
      if ((input.event as { type?: unknown }).type !== 'custom') return sending(receipt)(input)
      const [known] = input.operations
      if (known?.state !== 'sent')
        return defer({ missing: operation('grant', { name: 'receipt' }) }) as Decision
      const data = { message: known.receipt?.['message'] }
      return fulfill({ effects: [{ type: 'note', reference: 'told', data }] }) as Decision
    }
    await bench.deliver(probe('pay', { order: '1' }))
    await bench.deliver(probe('custom', { id: 'evt_waits', order: '1' }))
    await bench.work()
    expect(await stateOf('evt_waits')).toMatchObject({ state: 'processed' })
    expect(
      await bench.rows(`select data from fulfillment_effects where effect_type = 'note'`),
    ).toEqual([{ data: { message: 'msg_1' } }])
    expect(
      await bench.rows(
        `select reason from ledger_decisions where kind = 'deferred' order by decision_id`,
      ),
    ).toEqual([{ reason: 'waits for operation receipt of grant to be sent' }])
    expect(await bench.rows(`select 1 from inbox_waits`)).toEqual([])
  })
})

describe('an event that our own call caused', () => {
  it('makes its effect, and its decision names the operation', async () => {
    hooks.decide = sending(receipt)
    await bench.deliver(probe('pay', { order: '1' }))
    await bench.work()
    const [made] = await operations()
    const key = `${String(made?.['id'])}:2`
    await bench.deliver(
      probe('note', { id: 'evt_ours', order: '1', request: { id: 'req_1', idempotency_key: key } }),
      probe('note', {
        id: 'evt_other',
        order: '1',
        request: { id: 'req_2', idempotency_key: 'x' },
      }),
      probe('note', { id: 'evt_old', order: '1', request: 'req_3' }),
      probe('note', { id: 'evt_none', order: '1', request: null }),
    )
    await bench.work()
    expect(
      await bench.rows(
        `select w.event_id, d.kind, d.evidence->>'operation' as operation
         from webhook_inbox w join ledger_decisions d on d.decision_id = w.decision_id
         where w.event_type = 'note' order by w.event_id`,
      ),
    ).toEqual([
      { event_id: 'evt_none', kind: 'fulfilled', operation: null },
      { event_id: 'evt_old', kind: 'fulfilled', operation: null },
      { event_id: 'evt_other', kind: 'fulfilled', operation: null },
      { event_id: 'evt_ours', kind: 'fulfilled', operation: made?.['id'] },
    ])
  })
})

describe("a plain handler's outbox", () => {
  const plain = (id: string): ProbeBody => probe('plain', { id })
  const account = (db: Parameters<PlainHandler['run']>[0]['db']): Promise<unknown> =>
    db.query(`insert into shop.accounts values ('made', 1)`)

  it('adds in the transaction of what the handler writes', async () => {
    const answers: string[] = []
    runPlain = async ({ event, db, outbox }) => {
      await account(db)
      answers.push(await outbox.add({ to: 'email', key: 'k1', body: { event: event['id'] } }))
      answers.push(await outbox.add({ to: 'email', key: 'k1', body: { event: event['id'] } }))
    }
    await bench.deliver(plain('evt_1'))
    await bench.work()
    expect(answers).toEqual(['added', 'existed'])
    const id = appOperationId(installationId, 'email', 'k1')
    expect(await operations()).toMatchObject([
      { id, order_id: null, effect_type: null, name: 'k1', request: '{"event":"evt_1"}' },
    ])
    expect(calls).toEqual([id])
  })

  it('adds nothing when the handler fails, and it is tried again', async () => {
    runPlain = async ({ db, outbox }) => {
      await account(db)
      await outbox.add({ to: 'email', key: 'k1', body: 1 })
      throw new Error('after both')
    }
    await bench.deliver(plain('evt_1'))
    await bench.work()
    expect(await operations()).toEqual([])
    expect(await bench.rows(`select 1 from shop.accounts`)).toEqual([])
    expect(await stateOf('evt_1')).toMatchObject({ state: 'pending' })
  })

  it('refuses other bytes under a key that is recorded, and the event ends dead', async () => {
    runPlain = async ({ event, db, outbox }) => {
      if (event['id'] === 'evt_2') await account(db)
      await outbox.add({ to: 'email', key: 'k1', body: event['id'] })
    }
    await bench.deliver(plain('evt_1'))
    await bench.work()
    await bench.deliver(plain('evt_2'))
    await bench.work()
    expect(await stateOf('evt_2')).toMatchObject({
      state: 'dead',
      last_error: expect.stringContaining('was recorded with another body') as string,
    })
    expect(await operations()).toMatchObject([{ request: '"evt_1"' }])
    expect(await bench.rows(`select 1 from shop.accounts`)).toEqual([])
  })

  it('lets a handler go on that catches the refusal', async () => {
    runPlain = async ({ event, db, outbox }) => {
      try {
        await outbox.add({ to: 'email', key: 'k1', body: event['id'] })
      } catch {
        await account(db)
      }
    }
    await bench.deliver(plain('evt_1'))
    await bench.work()
    await bench.deliver(plain('evt_2'))
    await bench.work()
    expect(await stateOf('evt_2')).toMatchObject({ state: 'processed' })
    expect(await bench.rows(`select credits::text from shop.accounts`)).toEqual([{ credits: '1' }])
  })

  it('ends an event dead whose destination or body is no good', async () => {
    runPlain = ({ event, outbox }) =>
      outbox
        .add(
          event['id'] === 'evt_1'
            ? { to: 'emial', key: 'k', body: 1 }
            : { to: 'email', key: 'k', body: 'broken' },
        )
        .then(() => {})
    await bench.deliver(plain('evt_1'), plain('evt_2'))
    await bench.work()
    expect([await stateOf('evt_1'), await stateOf('evt_2')]).toEqual([
      { state: 'dead', last_error: expect.stringContaining('did you mean "email"') as string },
      { state: 'dead', last_error: expect.stringContaining('body is broken') as string },
    ])
    expect(await operations()).toEqual([])
  })

  it('waits for what the handler does not await', async () => {
    runPlain = async ({ outbox }) => void outbox.add({ to: 'email', key: 'k1', body: 1 })
    await bench.deliver(plain('evt_1'))
    await bench.work()
    expect(await operations()).toHaveLength(1)
    expect(await stateOf('evt_1')).toMatchObject({ state: 'processed' })
  })

  it('is of no use once the transaction has ended', async () => {
    let kept: Parameters<PlainHandler['run']>[0]['outbox'] | undefined
    runPlain = async ({ outbox }) => void (kept = outbox)
    await bench.deliver(plain('evt_1'))
    await bench.work()
    await expect(kept?.add({ to: 'email', key: 'late', body: 1 })).rejects.toThrow(
      /ended with its transaction/,
    )
    expect(await operations()).toEqual([])
  })
})
