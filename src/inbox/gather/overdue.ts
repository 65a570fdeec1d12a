/** Requests that nobody has answered for too long: a person is told, once for each of them. */
import { runParts } from '../../postgres/write-parts.ts'
import type { GatherContext } from './gather-context.ts'
import { lookedAtOf, type LockedRow } from './due.ts'
import { gatherSetup } from './lease.ts'

/** So many are told of in one transaction. */
const atOnce = 200

interface OverdueRow extends LockedRow {
  readonly provider: string
  readonly provider_account: string
  readonly environment: string
  readonly attempts: number
  readonly asked_at: Date | string
  readonly last_error: string | null
}

/**
 * The statement that finds them, exported so that its plan can be asserted. With the lock of what is looked at,
 * an answer that comes meanwhile is written after this, and sees the finding that it closes.
 */
export function overdueStatement(s: string): string {
  return `select f.order_id, f.source_id, f.kind, f.object_id, f.attempts, f.asked_at, f.last_error,
      s.provider, s.provider_account, s.environment
    from ${s}fetches f join ${s}sources s on s.source_id = f.source_id
    join ${s}looked_at l on l.order_id = f.order_id and l.source_id = f.source_id and l.kind = f.kind
      and l.object_id = f.object_id
    where not f.told and f.asked_at <= statement_timestamp() - $1::double precision * interval '1 millisecond'
    order by f.asked_at limit ${atOnce} for update of f, l skip locked`
}

/** Tells of what is overdue. Answers how many there were. */
export async function tellOverdue(ctx: GatherContext): Promise<number> {
  const s = ctx.db.schema
  return ctx.db.transaction(
    async (tx) => {
      const rows = await tx.query<OverdueRow>({
        text: overdueStatement(s),
        repeated: true,
        values: [ctx.settings.overdueMs],
      })
      if (rows.length === 0) return 0
      const looked = rows.map(lookedAtOf)
      await runParts(tx, [
        {
          name: 'told_fetches',
          sql: `told_fetches as (
            update ${s}fetches f set told = true from unnest(:1::text[], :2::integer[], :3::text[], :4::text[]) as n(order_id, source_id, kind, object_id)
            where f.order_id = n.order_id and f.source_id = n.source_id and f.kind = n.kind and f.object_id = n.object_id returning 1)`,
          values: [
            looked.map((each) => each.orderId),
            looked.map((each) => each.sourceId),
            looked.map((each) => each.kind),
            looked.map((each) => each.objectId),
          ],
        },
        ...ctx.findings.parts(
          rows.map((row) => {
            const { provider, provider_account: account, environment } = row
            const found = ctx.reading.sources.identify({ provider, account, environment })
            return {
              about: lookedAtOf(row),
              source: found.identity,
              attempts: row.attempts,
              waitingSince: new Date(row.asked_at).toISOString(),
              error:
                row.last_error ??
                (row.attempts === 0
                  ? 'nothing was asked yet: is a gatherer running?'
                  : 'no answer'),
            }
          }),
          [],
        ),
      ])
      return rows.length
    },
    { setup: gatherSetup(ctx.lockTimeoutMs) },
  )
}
