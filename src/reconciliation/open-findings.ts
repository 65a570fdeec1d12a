/** Findings that are open, as reconciliation looks at them again. */
import type { Database } from '../postgres/executor.ts'
import type { RecordReference } from '../workflow/records.ts'

/** An open finding. */
export interface OpenFinding {
  readonly id: string
  readonly kind: string
  readonly orderId: string | null
  readonly eventKey: bigint | null
  /** The source of its record, or of its event. */
  readonly sourceId: number | null
  readonly reference: RecordReference | null
  readonly evidence: Readonly<Record<string, unknown>>
}

interface FindingRow {
  readonly finding_id: string
  readonly kind: string
  readonly order_id: string | null
  readonly event_key: string | null
  readonly source_id: number | null
  readonly reference: RecordReference | null
  readonly evidence: Readonly<Record<string, unknown>>
}

const columns = (s: string): string => `f.finding_id::text as finding_id, f.kind, f.order_id,
  f.event_key::text as event_key, f.reference, f.evidence, coalesce(f.source_id,
    (select e.source_id from ${s}inbox_events e where e.event_key = f.event_key)) as source_id`

/** What is read at once. */
const pageSize = 500

/** Open findings of these kinds, page by page, by id. */
export async function* openFindings(
  db: Pick<Database, 'query' | 'schema'>,
  kinds: readonly string[],
): AsyncGenerator<readonly OpenFinding[]> {
  for (let after = '00000000-0000-0000-0000-000000000000'; ;) {
    const rows = await db.query<FindingRow>({
      text: `select ${columns(db.schema)} from ${db.schema}findings f
        where f.kind = any ($1::text[]) and f.state in ('open', 'repairing') and f.finding_id > $2::uuid
        order by f.finding_id limit ${pageSize}`,
      values: [kinds, after],
    })
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows.map(openFinding)
    if (rows.length < pageSize) return
    after = last.finding_id
  }
}

/** One finding, whatever its state; null: there is none. */
export async function findingOf(
  db: Pick<Database, 'query' | 'schema'>,
  id: string,
): Promise<OpenFinding | null> {
  const [row] = await db.query<FindingRow>({
    text: `select ${columns(db.schema)} from ${db.schema}findings f where f.finding_id = $1::uuid`,
    values: [id],
  })
  return row === undefined ? null : openFinding(row)
}

function openFinding(row: FindingRow): OpenFinding {
  return {
    id: row.finding_id,
    kind: row.kind,
    orderId: row.order_id,
    eventKey: row.event_key === null ? null : BigInt(row.event_key),
    sourceId: row.source_id,
    reference: row.reference,
    evidence: row.evidence,
  }
}
