import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { handle, notOurs } from 'hookledger'
import { fulfill, reverse, type Decision } from '../../src/workflow/decision.ts'
import type { PlainHandler } from '../../src/workflow/registry.ts'
import type { UserExecutor } from '../../src/workflow/workflow.ts'
import {
  clearHooks,
  createProbe,
  probe,
  probeWorkflow,
  type Probe,
  type ProbeHooks,
} from '../support/probe.ts'

const hooks: ProbeHooks = {}
let runPlain: PlainHandler['run']
let bench: Probe

beforeAll(async () => {
  bench = await createProbe({
    workflows: [probeWorkflow(hooks)],
    handlers: [handle('probe', 'plain', (input) => runPlain(input as never) as Promise<void>)],
    limits: { firstRetryMs: 600_000, watchdogMs: 400 },
  })
})

afterAll(() => bench.close())

beforeEach(async () => {
  clearHooks(hooks)
  runPlain = () => Promise.resolve()
  await bench.reset()
})

const credit = (db: UserExecutor, account: string): Promise<unknown> =>
  db.query(
    `insert into shop.accounts as a values ($1, 1) on conflict (account_id) do update set credits = a.credits + 1`,
    [account],
  )

async function credits(account: string): Promise<number> {
  const [row] = await bench.rows<{ credits: string }>(
    `select credits from shop.accounts where account_id = $1`,
    [account],
  )
  return Number(row?.credits ?? 0)
}

async function stateOf(id: string): Promise<unknown> {
  const [row] = await bench.rows(
    `select state, last_error from webhook_inbox where event_id = $1`,
    [id],
  )
  return row
}

describe("an effect's apply", () => {
  it('runs once for each effect that was inserted, and never for one that was absorbed', async () => {
    hooks.apply = async ({ db, order, effect }) =>
      void (await credit(db, `${order.id} ${effect.type}`))
    await bench.deliver(
      probe('pay', { order: '1' }),
      probe('pay', { order: '1', payment: 'another' }),
      probe('note', { order: '1', id: 'evt_n' }),
      probe('note', { order: '1', id: 'evt_n' }),
    )
    await bench.work()
    await bench.deliver(probe('pay', { order: '1', payment: 'a third' }))
    await bench.work()
    expect(await credits('1 grant')).toBe(1)
    expect(await credits('1 note')).toBe(1)
    expect(await bench.rows(`select 1 from ledger_payments`)).toHaveLength(3)
  })

  it('is written together with its effect or not at all', async () => {
    let fail = true
    hooks.apply = async ({ db, order }) => {
      await credit(db, order.id)
      if (fail) throw new Error('after its own write')
    }
    await bench.deliver(probe('pay', { id: 'evt_1', order: '1' }))
    await bench.work()
    expect(await credits('1')).toBe(0)
    expect(await bench.rows(`select 1 from fulfillment_effects`)).toEqual([])
    fail = false
    await bench.rows(`update inbox_delayed set due_at = now()`)
    await bench.work()
    expect(await credits('1')).toBe(1)
    expect(await bench.rows(`select effect_type from fulfillment_effects`)).toEqual([
      { effect_type: 'grant' },
    ])
  })

  it('has a counterpart that runs once for the reversal, whichever of the two came first', async () => {
    hooks.apply = async ({ db }) => void (await credit(db, 'made'))
    hooks.reverse = async ({ db, effect }) => {
      expect(effect).toMatchObject({ type: 'refund', reference: 're_1', reversed: true })
      await credit(db, 'reversed')
    }
    hooks.decide = ({ event }): Decision | undefined =>
      (event as { undo?: boolean }).undo === true
        ? (reverse({ of: { type: 'refund', reference: 're_1' } }) as Decision)
        : (fulfill({ effects: [{ type: 'refund', reference: 're_1' }] }) as Decision)
    for (const [order, first, second] of [
      ['1', true, false],
      ['2', false, true],
    ] as const) {
      await bench.deliver(probe('custom', { order, undo: first }))
      await bench.work()
      await bench.deliver(
        probe('custom', { order, undo: second }),
        probe('custom', { order, undo: second }),
      )
      await bench.work()
    }
    expect([await credits('made'), await credits('reversed')]).toEqual([2, 2])
  })

  it.each([
    'commit',
    '  -- a comment\n COMMIT',
    '/* one */ /* /* nested */ */ commit',
    ';;rollback',
    'savepoint a',
    'begin',
    "prepare transaction 'x'",
    'end',
    'abort',
    'release a',
    'start transaction',
    'set transaction isolation level serializable',
    'SET LOCAL synchronous_commit = off',
    'set session characteristics as transaction read only',
    'set local transaction_read_only = on',
    'set role pg_monitor',
    'set local role pg_monitor',
    'reset role',
    'set session authorization default',
  ])('may not end the transaction that it is in (%s)', async (text) => {
    hooks.apply = async ({ db, order }) => {
      await credit(db, order.id)
      await db.query(text).catch(() => {})
      throw new Error('and nothing of it may stand')
    }
    await bench.deliver(probe('pay', { id: 'evt_1', order: '1' }))
    await bench.work()
    expect(await credits('1')).toBe(0)
    expect(await stateOf('evt_1')).toMatchObject({ state: 'pending' })
  })

  it('is told so, and the event with it, when it tries', async () => {
    hooks.apply = async ({ db }) => void (await db.query('commit'))
    await bench.deliver(probe('pay', { id: 'evt_1', order: '1' }))
    await bench.work()
    expect(await stateOf('evt_1')).toMatchObject({
      state: 'dead',
      last_error: expect.stringContaining('commits everything or nothing') as unknown,
    })
  })

  it('cannot use the db that it was given once its transaction is over', async () => {
    let kept: UserExecutor | undefined
    hooks.apply = ({ db }) => {
      kept = db
      return Promise.resolve()
    }
    await bench.deliver(probe('pay', { order: '1' }))
    await bench.work()
    await expect(kept?.query('select 1')).rejects.toMatchObject({ code: 'HKL_TRANSACTION_CONTROL' })
  })

  it('fails alone for a query that it did not wait for, and neither the batch nor the next event does', async () => {
    hooks.apply = async ({ db, order }) => {
      if (order.id === '2') void db.query(`insert into shop.accounts values (null, 1)`)
      else await credit(db, order.id)
    }
    await bench.deliver(
      ...['1', '2', '3'].map((order) => probe('pay', { id: `evt_${order}`, order })),
    )
    await bench.work()
    expect(await bench.rows(`select event_id, state from webhook_inbox order by 1`)).toEqual([
      { event_id: 'evt_1', state: 'processed' },
      { event_id: 'evt_2', state: 'dead' },
      { event_id: 'evt_3', state: 'processed' },
    ])
    expect(await credits('1')).toBe(1)
    expect(await credits('3')).toBe(1)
  })

  it('is waited for by the commit where it did not wait for its own query', async () => {
    hooks.apply = ({ db }) => {
      void db.query(`select pg_sleep(0.05)`)
      void credit(db, 'late')
      return Promise.resolve()
    }
    await bench.deliver(probe('pay', { order: '1' }))
    await bench.work()
    expect(await credits('late')).toBe(1)
  })

  const raising = (sqlstate: string): string =>
    `do $$ begin raise exception 'planned' using errcode = '${sqlstate}'; end $$`

  it.each(['40001', '40P01', '55P03', '57014', '53300', '42P01', '23505', '23503'])(
    'is tried again when its SQL failed for what can pass (%s)',
    async (sqlstate) => {
      hooks.apply = async ({ db }) => void (await db.query(raising(sqlstate)))
      await bench.deliver(probe('pay', { id: 'evt_1', order: '1' }))
      await bench.work()
      expect(await stateOf('evt_1')).toMatchObject({
        state: 'pending',
        last_error: expect.stringContaining(`SQLSTATE ${sqlstate}`) as unknown,
      })
    },
  )

  it.each(['22P02', '22003', '23514', '23502', '54000'])(
    'ends its event dead when what it wrote can never be written (%s)',
    async (sqlstate) => {
      hooks.apply = async ({ db }) => void (await db.query(raising(sqlstate)))
      await bench.deliver(probe('pay', { id: 'evt_1', order: '1' }))
      await bench.work()
      expect(await stateOf('evt_1')).toMatchObject({
        state: 'dead',
        last_error: expect.stringContaining(`SQLSTATE ${sqlstate}`) as unknown,
      })
    },
  )

  it('shows no value of the row that was refused', async () => {
    hooks.apply = async ({ db }) => {
      await db.query(`insert into shop.accounts (account_id, credits) values ('canary-4711', null)`)
    }
    await bench.deliver(probe('pay', { id: 'evt_1', order: '1' }))
    await bench.work()
    expect(JSON.stringify(await stateOf('evt_1'))).toContain('23502')
    const traces = await bench.rows(
      `select reason::text as t from ledger_decisions union all select evidence::text from findings union all select reason from inbox_dead`,
    )
    expect(JSON.stringify(traces)).not.toContain('canary-4711')
  })

  it('takes one statement only', async () => {
    hooks.apply = async ({ db }) => void (await db.query('select 1; commit'))
    await bench.deliver(probe('pay', { id: 'evt_1', order: '1' }), probe('pay', { order: '2' }))
    await bench.work()
    expect(await stateOf('evt_1')).toMatchObject({
      state: 'pending',
      last_error: expect.stringContaining('42601') as unknown,
    })
    expect(await bench.rows(`select order_id from fulfillment_effects`)).toEqual([])
  })

  it('holds up nobody for long when it never returns', async () => {
    hooks.apply = async ({ db, order }) => {
      await credit(db, order.id)
      if (order.id === 'stuck') await new Promise(() => {})
    }
    await bench.deliver(
      probe('pay', { id: 'evt_stuck', order: 'stuck' }),
      ...Array.from({ length: 20 }, (_, at) => probe('pay', { order: `${at}` })),
    )
    await bench.work()
    expect(await stateOf('evt_stuck')).toMatchObject({
      state: 'pending',
      last_error: 'its function did not return within 400 ms',
    })
    expect(await credits('stuck')).toBe(0)
    expect(await bench.rows(`select 1 from ledger_decisions where final`)).toHaveLength(20)
  })
})

describe('a plain handler', () => {
  it('runs once, in the transaction that makes its event processed', async () => {
    let fail = true
    runPlain = async ({ event, db }) => {
      await credit(db, String(event['id']))
      if (fail) throw new Error('after its write')
    }
    await bench.deliver(probe('plain', { id: 'evt_1' }), probe('plain', { id: 'evt_1' }))
    await bench.work()
    expect(await credits('evt_1')).toBe(0)
    fail = false
    await bench.rows(`update inbox_delayed set due_at = now()`)
    await bench.work()
    await bench.deliver(probe('plain', { id: 'evt_1' }))
    await bench.work()
    expect(await credits('evt_1')).toBe(1)
    expect(await bench.rows(`select kind, final from ledger_decisions`)).toEqual([
      { kind: 'handled', final: true },
    ])
  })

  it('can say that an event is not its own, which ignores it', async () => {
    runPlain = () => Promise.resolve(notOurs('of the other shop'))
    await bench.deliver(probe('plain', { id: 'evt_1' }))
    await bench.work()
    expect(await bench.rows(`select state from webhook_inbox`)).toEqual([{ state: 'ignored' }])
    expect(await bench.rows(`select kind, final, reason from ledger_decisions`)).toEqual([
      { kind: 'ignored', final: false, reason: 'of the other shop' },
    ])
  })

  it('may not take from the batch the right to write what it decided', async () => {
    runPlain = async ({ db }) => void (await db.query('set local role pg_monitor').catch(() => {}))
    await bench.deliver(probe('plain', { id: 'evt_1' }), probe('pay', { id: 'evt_2', order: '1' }))
    await bench.work()
    expect(await stateOf('evt_1')).toMatchObject({ state: 'dead' })
    expect(await stateOf('evt_2')).toMatchObject({ state: 'processed' })
  })

  it('fails alone, and so does one that swallows the error of its SQL', async () => {
    runPlain = async ({ event, db }) => {
      if (event['id'] === 'evt_bad') throw new Error('no')
      if (event['id'] === 'evt_worse') await db.query('select 1 / 0').catch(() => {})
      else await credit(db, 'plain')
    }
    await bench.deliver(
      ...Array.from({ length: 10 }, () => probe('plain')),
      probe('plain', { id: 'evt_bad' }),
      probe('plain', { id: 'evt_worse' }),
      probe('pay', { order: '1' }),
    )
    await bench.work()
    expect(await credits('plain')).toBe(10)
    expect(await bench.rows(`select 1 from ledger_decisions where final`)).toHaveLength(11)
    expect(await stateOf('evt_worse')).toMatchObject({ last_error: 'SQLSTATE 22012' })
  })
})
