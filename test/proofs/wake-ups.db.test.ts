import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import { expireDeferrals, rescueWaits } from '../../src/inbox/sweep.ts'
import { partsOf } from '../../src/hookledger.ts'
import { defer, type Decision } from '../../src/workflow/decision.ts'
import type { Workflow } from '../../src/workflow/workflow.ts'
import {
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
import { steppedPool, type SteppedPool } from '../support/stepped-pool.ts'

/** Work of one side, over a pool whose statements can be held back. */
interface Side {
  readonly hookledger: Hookledger
  readonly pool: SteppedPool
  run(): Promise<unknown>
}

/** Two sides that must not miss each other, and what has to be true when both are done. */
interface Meeting {
  readonly name: string
  readonly workflows: readonly Workflow[]
  /** Before the sides meet. */
  readonly before?: readonly ProbeBody[]
  readonly waiting: ProbeBody
  /** The one that comes: an event, or the app that opens order `x`. */
  readonly coming: ProbeBody | 'openOrder'
  /** How the waiting event must end. */
  readonly ends: string
}

const byEvent = probeWorkflow()
const byApp = probeWorkflow({}, { opens: 'app' })
const elsewhere = probeWorkflow({}, { name: 'elsewhere', types: ['make'] })

const meetings: readonly Meeting[] = [
  {
    name: 'an event that waits for a name, and the event that teaches it',
    workflows: [byEvent],
    waiting: probe('refund', { waits: 'n', payment: 'pay_x' }),
    coming: probe('pay', { order: 'x', learns: 'n' }),
    ends: 'moved',
  },
  {
    name: 'an event that waits for a fact of an order, and the event that makes it',
    workflows: [byEvent],
    before: [probe('pay', { order: 'x' })],
    waiting: probe('after', { order: 'x', needs: 'evt_needed' }),
    coming: probe('note', { order: 'x', id: 'evt_needed' }),
    ends: 'fulfilled',
  },
  {
    name: 'an event that waits for an order, and the app that opens it',
    workflows: [byApp],
    waiting: probe('pay', { order: 'x' }),
    coming: 'openOrder',
    ends: 'fulfilled',
  },
  {
    name: 'an event that waits for an order, and an event of another workflow that opens it',
    workflows: [byApp, elsewhere],
    waiting: probe('pay', { order: 'x' }),
    coming: probe('make', { order: 'x' }),
    ends: 'contradicted',
  },
]

let bench: Probe
beforeAll(async () => {
  bench = await createProbe({ workflows: [byEvent] })
})
afterAll(() => bench.close())
beforeEach(() => bench.reset())

async function stepped(workflows: readonly Workflow[]): Promise<Omit<Side, 'run'>> {
  const pool = steppedPool(bench.pool)
  const hookledger = createHookledger(probeOptions(workflows, { database: pool }))
  await partsOf(hookledger).register()
  return { pool, hookledger }
}

/** A worker that works on exactly these events. */
function worker(side: Omit<Side, 'run'>, keys: readonly bigint[]): Side {
  return { ...side, run: () => partsOf(side.hookledger).workOff(keys) }
}

/** The app, which opens order `x` in a transaction of its own. */
function app(side: Omit<Side, 'run'>, isolation = 'read committed'): Side {
  const run = async (): Promise<void> => {
    const tx = await side.pool.connect()
    try {
      await tx.query(`begin isolation level ${isolation}`)
      await side.hookledger.openOrder(tx, { id: 'x', workflow: 'probe', subject: 'user:x' })
      await tx.query('commit')
    } catch (error) {
      await tx.query('rollback')
      throw error
    } finally {
      tx.release()
    }
  }
  return { ...side, run }
}

/** Delivers an event; its key. */
async function delivered({ hookledger }: Omit<Side, 'run'>, body: ProbeBody): Promise<bigint> {
  await deliverTo(hookledger, [body])
  const [row] = await bench.rows<{ event_key: string }>(
    `select event_key from inbox_events where event_id = $1`,
    [body.id],
  )
  return BigInt(row?.event_key ?? 0)
}

/** One side is stopped before its nth statement while the other one runs as far as it can. */
async function meet(stopped: Side, other: Side, nth: number): Promise<boolean> {
  const arrived = stopped.pool.holdAt(nth)
  const first = stopped.run()
  const reached = await Promise.race([arrived.then(() => true), first.then(() => false)])
  const second = other.run()
  // it may have to wait for a lock of the one that is stopped
  await Promise.race([second, sleep(reached ? 120 : 0)])
  stopped.pool.go()
  await Promise.all([first, second])
  return reached
}

/** Nothing waits for what is there, and the net has nothing to catch. */
async function expectNothingLost(meeting: Meeting, hookledger: Hookledger): Promise<void> {
  await workOff(hookledger)
  const [row] = await bench.rows<{ state: string; kind: string | null }>(
    `select i.state, d.kind from webhook_inbox i left join decisions d on d.decision_id = i.decision_id where i.event_id = $1`,
    [meeting.waiting.id],
  )
  expect(row).toEqual({ state: 'processed', kind: meeting.ends })
  await bench.rows(`update inbox_deferred set deferred_at = deferred_at - interval '1 minute'`)
  expect(await rescueWaits(bench.db)).toBe(0)
}

describe.each(meetings)('$name', (meeting) => {
  const { workflows, coming, waiting, before = [] } = meeting
  let first: Omit<Side, 'run'>
  let second: Omit<Side, 'run'>
  beforeAll(async () => {
    first = await stepped(workflows)
    second = await stepped(workflows)
  })

  async function sides(): Promise<{ waits: Side; comes: Side }> {
    await bench.reset()
    await deliverTo(first.hookledger, before)
    if (before.length > 0) await workOff(first.hookledger)
    const waits = worker(first, [await delivered(first, waiting)])
    return {
      waits,
      comes:
        coming === 'openOrder' ? app(second) : worker(second, [await delivered(second, coming)]),
    }
  }

  it.each(['the one that waits', 'the one that comes'] as const)(
    'meet, wherever %s is stopped',
    async (which) => {
      for (let nth = 1; ; nth++) {
        const { waits, comes } = await sides()
        const [stopped, other] = which === 'the one that waits' ? [waits, comes] : [comes, waits]
        const reached = await meet(stopped, other, nth)
        try {
          await expectNothingLost(meeting, first.hookledger)
        } catch (error) {
          throw new Error(
            `stopped before statement ${nth} of ${stopped.pool.texts.slice(-20).join('\n')}`,
            { cause: error },
          )
        }
        if (reached) continue
        expect(nth).toBeGreaterThan(5)
        return
      }
    },
  )
})

describe('an event whose wait ends ignored', () => {
  it.each(['the end of its wait', 'the one that comes'] as const)(
    'is woken by the name that comes at that very moment, wherever %s is stopped',
    async (which) => {
      const workflows = [probeWorkflow({}, { unclaimed: 'ignore' })]
      const waiting = probe('refund', { waits: 'n', payment: 'pay_x' })
      const coming = probe('pay', { order: 'x', learns: 'n' })
      const [first, second] = [await stepped(workflows), await stepped(workflows)]
      const { sweep } = await partsOf(first.hookledger).contexts()
      for (let nth = 1; ; nth++) {
        await bench.reset()
        await worker(second, [await delivered(second, waiting)]).run()
        await bench.rows(`update inbox_deferred set deadline_at = now() - interval '1 second'`)
        const comes = worker(second, [await delivered(second, coming)])
        const expires = { ...first, run: () => expireDeferrals(sweep) }
        const reached =
          which === 'the one that comes'
            ? await meet(comes, expires, nth)
            : await meet(expires, comes, nth)
        try {
          await expectNothingLost(
            { name: '', workflows, waiting, coming, ends: 'moved' },
            first.hookledger,
          )
        } catch (error) {
          throw new Error(`${which} stopped before statement ${nth}`, { cause: error })
        }
        if (!reached) return
      }
    },
  )
})

describe('an app that opens an order in a transaction with a snapshot of its own', () => {
  it('is told to try again rather than miss an event that began to wait meanwhile', async () => {
    const [first, second] = [await stepped([byApp]), await stepped([byApp])]
    const opens = app(first, 'repeatable read')
    // its snapshot is taken by its first statement, and only then does the event begin to wait
    const arrived = first.pool.holdAt(3)
    const opening = opens.run().then(
      () => 'opened',
      (error: { code?: string }) => error.code,
    )
    await arrived
    await worker(second, [
      await delivered(second, probe('pay', { order: 'x', id: 'evt_waits' })),
    ]).run()
    first.pool.go()
    const outcome = await opening
    if (outcome === 'opened') {
      await workOff(second.hookledger)
      expect(await bench.rows(`select state from webhook_inbox`)).toEqual([{ state: 'processed' }])
    } else expect(outcome).toBe('40001')
  })
})

describe('an event that says a name is missing which is there already', () => {
  it.each([false, true])(
    'waits for its order instead, and holds up nobody (in one batch: %s)',
    async (together) => {
      const hooks: ProbeHooks = {
        decide: ({ event }) =>
          event['type'] === 'custom'
            ? (defer({ missing: { kind: 'name', name: { kind: 'ref', value: 'n' } } }) as Decision)
            : undefined,
      }
      const side = await stepped([probeWorkflow(hooks)])
      await deliverTo(side.hookledger, [probe('pay', { order: 'y', learns: 'n' })])
      if (!together) await workOff(side.hookledger)
      await deliverTo(side.hookledger, [
        probe('custom', { order: 'x', id: 'evt_c' }),
        probe('pay', { order: 'z' }),
      ])
      await workOff(side.hookledger)
      expect(
        await bench.rows(`select event_id, state from webhook_inbox where state <> 'processed'`),
      ).toEqual([{ event_id: 'evt_c', state: 'deferred' }])
      expect(await bench.rows(`select kind, name from inbox_waits`)).toEqual([
        { kind: 'order', name: 'x' },
      ])
      delete hooks.decide
      await deliverTo(side.hookledger, [probe('pay', { order: 'x' })])
      await workOff(side.hookledger)
      expect(
        await bench.rows(`select event_id from webhook_inbox where state <> 'processed'`),
      ).toEqual([])
    },
  )
})

describe('an order that the app opens while a batch is between looking it up and locking it', () => {
  it('takes along whatever of the batch waits for a name that it learns', async () => {
    const [first, second] = [await stepped([byApp]), await stepped([byApp])]
    const keys = [
      await delivered(second, probe('refund', { id: 'evt_r', waits: 'n', payment: 'pay_x' })),
      await delivered(second, probe('pay', { id: 'evt_p', order: 'x', learns: 'n' })),
    ]
    const arrived = first.pool.holdAt(/locked_orders/)
    const working = worker(first, keys).run()
    await arrived
    await app(second).run()
    first.pool.go()
    await working
    await workOff(second.hookledger)
    expect(
      await bench.rows(`select event_id from webhook_inbox where state <> 'processed'`),
    ).toEqual([])
    expect(await bench.rows(`select state from orders`)).toEqual([{ state: 'refunded' }])
  })
})
