/** Hookledger's dispatcher, as `start` runs it: leases by batches, calls, and writes how they ended. */
import { http } from '../../src/index.ts'
import { partsOf } from '../../src/hookledger.ts'
import { migrateInbox } from './inbox.ts'
import type { Contestant } from './contestant.ts'
import { expectCalled, mailPath, operationOf, type BenchDestination } from './dispatch-call.ts'

/** Hookledger with so many calls under way at once, which is the one thing that a destination declares here. */
export function dispatchHookledger(destination: BenchDestination, concurrency: number): Contestant {
  return {
    name: 'hookledger',
    settings: `defaults; the destination takes ${concurrency} calls at once`,
    prepare: async ({ pool, schema, events }) => {
      const mail = http({
        url: `${destination.origin}${mailPath}`,
        allow: [new URL(destination.origin).host],
        contract: { concurrency },
      })
      const hookledger = await migrateInbox({ pool, schema }, { destinations: { mail } })
      for (let from = 0; from < events.length; from += 1000) {
        const client = await pool.connect()
        try {
          await client.query('begin')
          for (const event of events.slice(from, from + 1000)) {
            const { id, body } = operationOf(event)
            await hookledger.outbox.add(client, { to: 'mail', key: id, body })
          }
          await client.query('commit')
        } finally {
          client.release()
        }
      }
      return {
        run: async () => {
          const { signals } = partsOf(hookledger)
          let left = events.length
          const finished = new Promise<void>((resolve) => {
            signals.on('outbox.operation.ended', () => {
              if (--left === 0) resolve()
            })
          })
          await hookledger.start()
          await finished
        },
        finish: async () => {
          await hookledger.stop()
          const { rows } = await pool.query<{ n: string }>(
            `select count(*) as n from ${schema}.outbox where state = 'sent' and receipt is not null and finished_at is not null and attempts = 1`,
          )
          await expectCalled(destination, events.length, Number(rows[0]?.n))
        },
      }
    },
  }
}
