import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { notOurs, PermanentError, RetryAfter } from 'hookledger'
import { contradict, fulfill, type Decision } from '../../src/workflow/decision.ts'
import { signStripe } from '../../src/testing/sign.ts'
import {
  clearHooks,
  createProbe,
  probe,
  probeSecret,
  probeWorkflow,
  type Probe,
  type ProbeBody,
  type ProbeHooks,
} from '../support/probe.ts'

const hooks: ProbeHooks = {}
let bench: Probe

beforeAll(async () => {
  bench = await createProbe({
    workflows: [probeWorkflow(hooks)],
    limits: { firstRetryMs: 60_000, maxRetryMs: 600_000 },
  })
})

afterAll(() => bench.close())

beforeEach(async () => {
  clearHooks(hooks)
  await bench.reset()
})

const bad = 'the-bad-one'
const hostile = Buffer.from(
  `{"id":"evt_x","type":"pay","order":"1","a":${'['.repeat(80)}${']'.repeat(80)}}`,
)

/** 499 good payments with a bad event in their midst. */
function batchAround(event: ProbeBody): ProbeBody[] {
  const bodies = Array.from({ length: 499 }, (_, at) => probe('pay', { order: `order-${at}` }))
  bodies.splice(250, 0, event)
  return bodies
}

async function inboxOf(id: string): Promise<Record<string, unknown> | undefined> {
  const [row] = await bench.rows(
    `select state, attempts, last_error, next_attempt_at > now() as later from webhook_inbox where event_id = $1`,
    [id],
  )
  return row
}

async function processed(): Promise<number> {
  const [row] = await bench.rows<{ n: number }>(
    `select count(*)::int as n from ledger_decisions where final`,
  )
  return row?.n ?? 0
}

describe('one bad event among 500', () => {
  it('leaves the other 499 processed when its apply violates a constraint, and shows why', async () => {
    hooks.apply = async ({ db, order }) => {
      if (order.id === bad) await db.query(`insert into shop.accounts (account_id) values (null)`)
    }
    await bench.deliver(...batchAround(probe('pay', { id: 'evt_bad', order: bad })))
    await bench.work()
    expect(await processed()).toBe(499)
    expect(await inboxOf('evt_bad')).toMatchObject({
      state: 'dead',
      attempts: 1,
      last_error: expect.stringContaining('23502') as unknown,
    })
    expect(await bench.rows(`select 1 from orders where order_id = $1`, [bad])).toEqual([])
  })

  it('leaves the other 499 processed when its decide throws, and tries it again later', async () => {
    hooks.decide = (input): Decision | undefined => {
      if (input.order.id === bad) throw new Error('no price for this today')
      return undefined
    }
    await bench.deliver(...batchAround(probe('pay', { id: 'evt_bad', order: bad })))
    await bench.work()
    expect(await processed()).toBe(499)
    expect(await inboxOf('evt_bad')).toMatchObject({
      state: 'pending',
      attempts: 1,
      last_error: 'no price for this today',
      later: true,
    })
    delete hooks.decide
    await bench.rows(`update inbox_delayed set due_at = now()`)
    await bench.work()
    expect(await processed()).toBe(500)
  })

  it('leaves the other 499 processed when what it decides cannot be stored', async () => {
    hooks.decide = (input): Decision | undefined => {
      if (input.order.id !== bad) return undefined
      // more digits than the database can hold
      return fulfill({
        effects: [{ type: 'note' }],
        evidence: { figure: 10n ** 140_000n },
      }) as Decision
    }
    await bench.deliver(...batchAround(probe('pay', { id: 'evt_bad', order: bad })))
    await bench.work()
    expect(await processed()).toBe(499)
    expect(await inboxOf('evt_bad')).toMatchObject({
      state: 'dead',
      attempts: 1,
      last_error: expect.stringContaining('22003') as unknown,
    })
  })

  it('processes all 500 when one of them decides what can only just be stored', async () => {
    hooks.decide = (input): Decision | undefined => {
      if (input.order.id !== bad) return undefined
      return fulfill({
        to: 'paid',
        payment: { id: 'p', money: { amount: 2n ** 62n, currency: 'USD' } },
        entitle: [
          {
            subject: 's',
            entitlement: 'pro',
            validUntil: new Date('9999-12-31T00:00:00Z'),
            quantity: 1e15,
          },
        ],
        evidence: { nul: 'x\u0000y', lone: '\ud800', exact: 2n ** 80n },
      }) as Decision
    }
    await bench.deliver(...batchAround(probe('pay', { id: 'evt_bad', order: bad })))
    await bench.work()
    expect(await processed()).toBe(500)
  })

  it('leaves the other 499 processed when its apply swallows the error of its own SQL', async () => {
    hooks.apply = async ({ db, order }) => {
      if (order.id === bad) await db.query('select * from no_such_table').catch(() => {})
    }
    await bench.deliver(...batchAround(probe('pay', { id: 'evt_bad', order: bad })))
    await bench.work()
    expect(await processed()).toBe(499)
    expect(await inboxOf('evt_bad')).toMatchObject({
      state: 'pending',
      attempts: 1,
      last_error: expect.stringContaining('42P01') as unknown,
    })
  })

  it.each([
    [
      'a message that is no text',
      Object.assign(new Error('x'), { message: Object.create(null) as string }),
    ],
    [
      'a message that throws',
      Object.defineProperty(new Error('x'), 'message', {
        get: () => {
          throw new Error('unreadable')
        },
      }),
    ],
    ['nothing', undefined],
  ])('leaves the others processed when what it throws has %s', async (_, thrown: unknown) => {
    hooks.decide = ({ order }): Decision | undefined => {
      if (order.id === bad) throw thrown
      return undefined
    }
    await bench.deliver(probe('pay', { order: '1' }), probe('pay', { id: 'evt_bad', order: bad }))
    await bench.work()
    expect(await processed()).toBe(1)
    expect(await inboxOf('evt_bad')).toMatchObject({ state: 'pending', attempts: 1, later: true })
  })

  it('leaves the others processed when a trigger of the app refuses it at COMMIT, and tries it again later', async () => {
    await bench.rows(
      `create function shop.refuse() returns trigger language plpgsql as $$ begin raise exception 'not this one'; end $$`,
    )
    await bench.rows(`create constraint trigger refuse after insert on shop.accounts deferrable initially deferred
      for each row when (new.account_id = '${bad}') execute function shop.refuse()`)
    hooks.apply = async ({ db, order }) =>
      void (await db.query(`insert into shop.accounts (account_id) values ($1)`, [order.id]))
    await bench.deliver(
      probe('pay', { order: '1' }),
      probe('pay', { id: 'evt_bad', order: bad }),
      probe('pay', { order: '3' }),
    )
    await bench.work()
    await bench.rows(`drop function shop.refuse cascade`)
    expect(await processed()).toBe(2)
    expect(await inboxOf('evt_bad')).toMatchObject({
      state: 'pending',
      attempts: 1,
      later: true,
      last_error: expect.stringContaining('P0001') as unknown,
    })
  })

  it.each([
    [
      'flags',
      (text: string) =>
        fulfill({
          to: 'paid',
          effects: [{ type: 'grant' }],
          flag: { kind: 'odd', figures: { text } },
        }),
      'fulfilled',
    ],
    ['contradicts', (text: string) => contradict(text, { text }), 'contradicted'],
  ] as const)(
    'is decided when the figures that it %s with hold what no text of a database can',
    async (_, decide, kind) => {
      const text = 'NUL \u0000, half \ud800, written out \\u0000'
      hooks.decide = (): Decision => decide(text) as Decision
      await bench.deliver(probe('pay', { order: '1' }))
      await bench.work()
      expect(await bench.rows(`select kind from ledger_decisions`)).toEqual([{ kind }])
      const [found] = await bench.rows<{ evidence: { text: string } }>(
        `select evidence from findings`,
      )
      expect(found?.evidence.text).toBe('NUL \ufffd, half \ufffd, written out \\u0000')
    },
  )

  it('is ignored for a reason that no text of a database can hold', async () => {
    hooks.order = () => notOurs('NUL \u0000, half \ud800')
    await bench.deliver(probe('pay', { id: 'evt_1', order: '1' }))
    await bench.work()
    expect(await inboxOf('evt_1')).toMatchObject({ state: 'ignored' })
  })

  it('leaves the others processed when many of them fail', async () => {
    hooks.apply = async ({ db, order }) => {
      if (order.id.startsWith('order-1') && order.id.length === 8)
        await db.query('select * from no_such_table')
    }
    await bench.deliver(
      ...Array.from({ length: 120 }, (_, at) => probe('pay', { order: `order-${at}` })),
    )
    await bench.work()
    expect(await processed()).toBe(110)
    expect(
      await bench.rows(
        `select count(*)::int as n, min(attempts)::int as least, max(attempts)::int as most from inbox_delayed`,
      ),
    ).toEqual([{ n: 10, least: 1, most: 1 }])
  })
})

describe('an event that fails', () => {
  it('is dead at once when its code says that trying again is useless', async () => {
    hooks.apply = () => Promise.reject(new PermanentError('the product was withdrawn'))
    await bench.deliver(probe('pay', { id: 'evt_bad', order: '1' }))
    await bench.work()
    expect(await inboxOf('evt_bad')).toMatchObject({
      state: 'dead',
      attempts: 1,
      last_error: 'PermanentError: the product was withdrawn',
    })
    expect(await bench.rows(`select kind, state, owner from findings`)).toEqual([
      { kind: 'dead_event', state: 'open', owner: 'operations' },
    ])
  })

  it('is tried again when it asked to be', async () => {
    hooks.decide = () => {
      throw new RetryAfter(150_000)
    }
    await bench.deliver(probe('pay', { id: 'evt_later', order: '1' }))
    await bench.work()
    const [row] = await bench.rows<{ seconds: number }>(
      `select extract(epoch from due_at - now())::int as seconds from inbox_delayed`,
    )
    // the usual backoff would be a minute at most
    expect(row?.seconds).toBeGreaterThan(60)
    expect(row?.seconds).toBeLessThanOrEqual(150)
  })

  it('backs off when what it asked for is no time at all', async () => {
    hooks.decide = () => {
      throw new RetryAfter('10m' as unknown as number)
    }
    await bench.deliver(probe('pay', { id: 'evt_later', order: '1' }))
    await bench.work()
    expect(await inboxOf('evt_later')).toMatchObject({
      state: 'pending',
      attempts: 1,
      last_error: expect.stringContaining('later') as unknown,
    })
  })

  it('is dead after as many attempts as are allowed, each counted', async () => {
    hooks.apply = () => Promise.reject(new Error('the shop is closed'))
    await bench.deliver(probe('pay', { id: 'evt_bad', order: '1' }))
    for (let attempt = 1; attempt <= 10; attempt++) {
      await bench.work()
      expect(await inboxOf('evt_bad')).toMatchObject({
        state: attempt === 10 ? 'dead' : 'pending',
        attempts: attempt,
      })
      await bench.rows(`update inbox_delayed set due_at = now()`)
    }
    expect(await inboxOf('evt_bad')).toMatchObject({
      last_error: 'failed 10 times, last: the shop is closed',
    })
    expect(await bench.rows(`select kind, final, attempts::int from ledger_decisions`)).toEqual([
      { kind: 'dead', final: false, attempts: 10 },
    ])
  })

  it('is dead at once when its body cannot be read', async () => {
    const answer = await bench.hookledger.ingest({
      source: 'probe',
      headers: signStripe(hostile, probeSecret),
      rawBody: hostile,
    })
    expect(answer.status).toBe(200)
    await bench.deliver(probe('pay', { order: '2' }))
    await bench.work()
    expect(
      await bench.rows(`select state, last_error from webhook_inbox order by event_key`),
    ).toEqual([
      { state: 'dead', last_error: 'unreadable: the body is nested too deep' },
      { state: 'processed', last_error: null },
    ])
  })
})

describe('a dead event that is delivered again', () => {
  async function kill(id: string): Promise<void> {
    hooks.apply = () => Promise.reject(new PermanentError('broken'))
    await bench.deliver(probe('pay', { id, order: id }))
    await bench.work()
    expect(await inboxOf(id)).toMatchObject({ state: 'dead' })
  }

  it('is tried again, and its finding closes when it succeeds', async () => {
    await kill('evt_1')
    hooks.apply = () => Promise.resolve()
    await bench.deliver({ id: 'evt_1', type: 'pay', order: 'evt_1' })
    await bench.work()
    expect(await inboxOf('evt_1')).toMatchObject({ state: 'processed' })
    expect(await bench.rows(`select kind, state from findings`)).toEqual([
      { kind: 'dead_event', state: 'closed' },
    ])
  })

  it('gets new attempts at most once an hour, and one more try in between', async () => {
    hooks.apply = () => Promise.reject(new Error('closed'))
    await bench.deliver(probe('pay', { id: 'evt_1', order: '1' }))
    const exhaust = async (): Promise<void> => {
      for (let n = 0; n < 12; n++) {
        await bench.work()
        await bench.rows(`update inbox_delayed set due_at = now()`)
      }
    }
    await exhaust()
    expect(await inboxOf('evt_1')).toMatchObject({ state: 'dead', attempts: 10 })
    const again = { id: 'evt_1', type: 'pay', order: '1' }
    await bench.deliver(again)
    await bench.work()
    expect(await inboxOf('evt_1')).toMatchObject({ state: 'pending', attempts: 1 })
    await exhaust()
    expect(await inboxOf('evt_1')).toMatchObject({ state: 'dead', attempts: 10 })
    await bench.deliver(again)
    await bench.work()
    // one try, and no new set of them
    expect(await inboxOf('evt_1')).toMatchObject({ state: 'dead', attempts: 11 })
    hooks.apply = () => Promise.resolve()
    await bench.deliver(again)
    await bench.work()
    expect(await inboxOf('evt_1')).toMatchObject({ state: 'processed' })
  })

  it('stays dead when its body cannot be read', async () => {
    const once = async (): Promise<void> => {
      expect(
        (
          await bench.hookledger.ingest({
            source: 'probe',
            headers: signStripe(hostile, probeSecret),
            rawBody: hostile,
          })
        ).status,
      ).toBe(200)
      await bench.work()
    }
    await once()
    await once()
    expect(await bench.rows(`select kind from ledger_decisions`)).toEqual([{ kind: 'dead' }])
    expect(await bench.rows(`select state, deliveries::int from webhook_inbox`)).toEqual([
      { state: 'dead', deliveries: 2 },
    ])
  })

  it('waits with a new deadline when it is deferred now, and is overdue past it', async () => {
    hooks.decide = () => {
      throw new PermanentError('broken')
    }
    await bench.deliver({ id: 'evt_1', type: 'after', order: '1', needs: 'n' })
    await bench.work()
    delete hooks.decide
    await bench.deliver({ id: 'evt_1', type: 'after', order: '1', needs: 'n' })
    await bench.work()
    expect(await inboxOf('evt_1')).toMatchObject({ state: 'deferred' })
    expect(await bench.rows(`select kind, state from findings`)).toEqual([
      { kind: 'dead_event', state: 'closed' },
    ])
    expect(await bench.rows(`select overdue from inbox_deferred`)).toEqual([{ overdue: false }])
  })
})
