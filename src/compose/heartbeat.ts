/**
 * Tells that this process is at work, and in which roles, every few seconds: for `status`, metrics and the
 * person who asks whether anybody is there. A process that is gone is one that was not heard of for a while.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Signals } from '../core/signals.ts'
import type { Database } from '../postgres/executor.ts'
import { createLoop } from '../worker/loop.ts'
import { version } from './version.ts'

const beatMs = 5000

/** Says so until it is stopped. */
export interface Heartbeat {
  start(): void
  /** Takes the row away. */
  stop(): Promise<void>
}

/** Creates the heartbeat of a process in these roles; nothing is told before `start`. */
export function createHeartbeat(
  db: Database,
  signals: Signals,
  roles: readonly string[],
): Heartbeat {
  const id = randomUUID()
  const s = db.schema
  const loop = createLoop({
    name: 'heartbeat',
    minIdleMs: beatMs,
    maxIdleMs: beatMs,
    signals,
    turn: async () => {
      await db.query({
        text: `with gone as (
            delete from ${s}processes where seen_at < clock_timestamp() - interval '1 day')
          insert into ${s}processes as p (process_id, host, pid, roles, version)
          values ($1::uuid, $2, $3::integer, $4::text[], $5)
          on conflict (process_id) do update set seen_at = clock_timestamp()`,
        repeated: true,
        values: [id, hostname(), process.pid, [...roles].sort(), version],
      })
      return false
    },
  })
  return {
    start: () => loop.start(),
    async stop() {
      await loop.stop()
      try {
        await db.query({
          text: `delete from ${s}processes where process_id = $1::uuid`,
          values: [id],
        })
      } catch {
        // it is not heard of any more, which says the same a little later
      }
    },
  }
}
