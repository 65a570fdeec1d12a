/**
 * Sources that deliver nothing for much longer than they usually do. Only one with a history of at least a day
 * has a usual; what reconciliation put in is no delivery.
 */
import { finding } from '../../workflow/finding-kinds.ts'
import type { CompareContext } from '../compare-context.ts'
import type { ConfiguredSourceLike, Discrepancy } from '../ports.ts'
import { local } from './local-discrepancy.ts'

/** So many of the newest events are looked through, and so many of a source judged. */
const mostEvents = 20_000
const mostJudged = 200
const leastJudged = 100

const hourMs = 3_600_000
const leastHistoryMs = 24 * hourMs
const leastSilenceMs = 6 * hourMs
/** Silence is longer than the longest pause that there was, this many times over. */
const times = 3

/** The silent ones of the configured sources. */
export async function silentSources({
  db,
  sources,
}: Pick<CompareContext, 'db' | 'sources'>): Promise<Discrepancy[]> {
  const found: Discrepancy[] = []
  for (const source of sources) {
    const rows = await db.query<{ received_at: Date | string; now: Date | string }>({
      text: `select r.received_at, now() as now from (
          select e.source_id, e.via, e.received_at, e.event_key from ${db.schema}inbox_events e
          order by e.event_key desc limit ${mostEvents}) r
        join ${db.schema}sources n on n.source_id = r.source_id
        where n.provider = $1 and n.provider_account = $2 and n.environment = $3 and r.via = 'webhook'
        order by r.event_key desc limit ${mostJudged}`,
      values: [source.source.provider, source.account, source.environment],
    })
    const now = rows[0]?.now
    if (now === undefined) continue
    const received = rows.map((row) => new Date(row.received_at).getTime())
    const usualMs = longestPauseMs(received)
    const last = received[0] ?? 0
    if (usualMs !== null && new Date(now).getTime() - last > allowedMs(usualMs))
      found.push(silent(source, new Date(last), usualMs))
  }
  return found
}

/** Null: there is too little to call anything usual. Newest first. */
export function longestPauseMs(received: readonly number[]): number | null {
  const [newest] = received
  const oldest = received.at(-1)
  if (received.length < leastJudged || newest === undefined || oldest === undefined) return null
  if (newest - oldest < leastHistoryMs) return null
  return received.reduce(
    (longest, at, index) => Math.max(longest, (received[index - 1] ?? at) - at),
    0,
  )
}

/** How long a silence may last. */
export function allowedMs(usualMs: number): number {
  return Math.max(leastSilenceMs, usualMs * times)
}

function silent({ name }: ConfiguredSourceLike, last: Date, usualMs: number): Discrepancy {
  const longest = `${Math.ceil(usualMs / 60_000)} min`
  const figures = { source: name, last_delivery: last.toISOString(), longest_pause: longest }
  return local(finding('source_silent', `source:${name}`, figures), null)
}
