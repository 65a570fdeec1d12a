/**
 * What reconciliation made of a simulation: of what was lost on the way and of what was tampered with, found
 * or not, by what the database says now. It is compared with the record of what was done on purpose.
 */
import type { Database } from '../postgres/executor.ts'
import type { SimulationResult } from '../testing/simulation/simulation-report.ts'
import type { Tampering } from '../testing/simulation/tampering.ts'

/** The record of what was done on purpose. */
export interface Seeded {
  readonly lost: SimulationResult['lost']
  readonly tampered: readonly Tampering[]
}

/** What became of it; the keys are what `--json` prints. */
export interface ReconciliationReport {
  /** Events that no delivery ever brought. */
  readonly lost: number
  /** Of them, those that a pass took from the provider's records. */
  readonly recovered: number
  /** Ids of those that are not here. */
  readonly missing: readonly string[]
  readonly tampered: readonly TamperedOrder[]
  /** Passes that came to their end, and what all of them did. */
  readonly passes: number
  readonly calls: number
  readonly records: number
  readonly repaired: number
  /** Whether a pass came to its end that began after the simulation's end plus the lag. */
  readonly complete: boolean
}

/** An order that was tampered with, and the finding that says so. */
export interface TamperedOrder {
  readonly order_id: string
  readonly trick: string
  readonly finding_id: string | null
}

/** The database's own time, so many milliseconds from now. */
export async function timeIn(db: Database, ms: number): Promise<string> {
  const [row] = await db.query<{ at: string }>({
    text: `select (clock_timestamp() + $1::double precision * interval '1 millisecond')::text as at`,
    values: [ms],
  })
  return row?.at ?? ''
}

/** Whether a pass over a checkpoint's windows came to its end that began after this. */
export async function isReconciledPast(db: Database, at: string): Promise<boolean> {
  const [row] = await db.query<{ passed: boolean }>({
    text: `select exists (select 1 from ${db.schema}reconciliation_runs
      where started_at >= $1::timestamptz and state = 'complete' and how <> 'range') as passed`,
    values: [at],
  })
  return row?.passed === true
}

/** Reports on what was done on purpose; `past` is what {@link isReconciledPast} was asked. */
export async function reportReconciliation(
  db: Database,
  seeded: Seeded,
  past: string,
): Promise<ReconciliationReport> {
  const s = db.schema
  const ids = seeded.lost.map((event) => event.eventId)
  const here = await db.query<{ event_id: string; via: string }>({
    text: `select e.event_id, e.via from ${s}sources n
      join ${s}inbox_events e on e.source_id = n.source_id and e.event_id = any ($1::text[])`,
    values: [ids],
  })
  const found = await db.query<{ order_id: string; finding_id: string }>({
    text: `select distinct on (order_id) order_id, finding_id::text as finding_id from ${s}findings
      where order_id = any ($1::text[]) and kind in ('tampered', 'entitlement_without_state')
        and state in ('open', 'repairing')
      order by order_id, (kind <> 'tampered'), finding_id`,
    values: [seeded.tampered.map((each) => each.orderId)],
  })
  const findings = new Map(found.map((row) => [row.order_id, row.finding_id]))
  const known = new Set(here.map((row) => row.event_id))
  return {
    lost: ids.length,
    recovered: here.filter((row) => row.via === 'reconciliation').length,
    missing: ids.filter((id) => !known.has(id)),
    tampered: seeded.tampered.map(({ orderId, trick }) => ({
      order_id: orderId,
      trick,
      finding_id: findings.get(orderId) ?? null,
    })),
    ...(await passFigures(db)),
    complete: await isReconciledPast(db, past),
  }
}

async function passFigures(
  db: Database,
): Promise<Pick<ReconciliationReport, 'passes' | 'calls' | 'records' | 'repaired'>> {
  const s = db.schema
  const [row] = await db.query<Record<'passes' | 'calls' | 'records' | 'repaired', string>>({
    text: `select count(*) as passes, coalesce(sum(calls), 0) as calls, coalesce(sum(repaired), 0) as repaired,
        coalesce(sum((select sum((k.value ->> 'records')::bigint) from jsonb_each(r.coverage) k)), 0) as records
      from ${s}reconciliation_runs r where state = 'complete'`,
  })
  return {
    passes: Number(row?.passes ?? 0),
    calls: Number(row?.calls ?? 0),
    records: Number(row?.records ?? 0),
    repaired: Number(row?.repaired ?? 0),
  }
}
