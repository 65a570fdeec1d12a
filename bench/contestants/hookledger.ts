/** Hookledger's worker, as `start` runs it: claim loops over one scan, with its sweeps beside them. */
import { partsOf, type Hookledger } from '../../src/hookledger.ts'
import type pg from 'pg'
import { countFulfilled, openOrders } from './business-writes.ts'
import { expectAll, type Contestant } from './contestant.ts'
import { fillInbox, migrateInbox } from './inbox.ts'

/** What differs between the ways of using it. */
export interface HookledgerContestant {
  readonly name?: string
  readonly settings?: string
  readonly options?: Parameters<typeof migrateInbox>[1]
  readonly setUp?: (pool: pg.Pool, schema: string, orders: readonly string[]) => Promise<void>
  /** @throws Error unless everything was written. */
  readonly check?: (pool: pg.Pool, schema: string, expected: number) => Promise<void>
}

/** Hookledger with its defaults. */
export function hookledger(given: HookledgerContestant = {}): Contestant {
  return {
    name: given.name ?? 'hookledger',
    settings: given.settings ?? 'defaults: 2 claim loops, batches of 500',
    prepare: async (round) => {
      const { pool, schema, events } = round
      const ledger = await migrateInbox(round, given.options)
      await given.setUp?.(
        pool,
        schema,
        events.map((event) => event.order),
      )
      await openOrders(pool, schema, events)
      await fillInbox(ledger, events)
      return {
        run: () => workOff(ledger, events.length),
        finish: async () => {
          if (given.check === undefined)
            expectAll(await countFulfilled(pool, schema), events.length)
          else await given.check(pool, schema, events.length)
          await ledger.stop()
        },
      }
    },
  }
}

/** Starts a worker and resolves when so many events are decided. */
export async function workOff(ledger: Hookledger, expected: number): Promise<void> {
  const { signals } = partsOf(ledger)
  let settled = 0
  const finished = new Promise<void>((resolve) => {
    signals.on('inbox.batch.finished', ({ events }) => {
      settled += events
      if (settled >= expected) resolve()
    })
  })
  await ledger.start()
  await finished
}
