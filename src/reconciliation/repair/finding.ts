/** The finding that is to be repaired, read with everything that says how: nothing is interpreted here. */
import { HookledgerError } from '../../core/errors.ts'
import type { Executor } from '../../postgres/executor.ts'
import type { RecordReference } from '../../workflow/records.ts'

/** The provider, account and environment of a row of `sources`. */
export interface SourceRow {
  readonly sourceId: number
  readonly provider: string
  readonly account: string
  readonly environment: string
}

/** A finding as repairs need it. */
export interface FindingRow {
  readonly id: string
  readonly kind: string
  readonly class: string
  readonly state: string
  readonly orderId: string | null
  readonly evidence: Readonly<Record<string, unknown>>
  /** What is compared; null: what only this database can tell, or what an event told. */
  readonly reference: RecordReference | null
  /** The provider's account that it is about: its own, else its event's, else its order's. */
  readonly source: SourceRow | null
  readonly closedBecause: string | null
}

/** What was done about a finding. */
export interface EarlierRepair {
  readonly repairId: string
  readonly choice: string
  readonly actor: string
  readonly appliedAt: Date
  readonly verifiedAt: Date | null
}

interface Row {
  readonly finding_id: string
  readonly kind: string
  readonly class: string
  readonly state: string
  readonly order_id: string | null
  readonly evidence: string
  readonly reference: string | null
  readonly closed_because: string | null
  readonly source_id: number | null
  readonly provider: string | null
  readonly provider_account: string | null
  readonly environment: string | null
}

/**
 * Reads a finding; `lock` holds its row until the transaction ends.
 *
 * @throws HookledgerError HKL_FINDING_UNKNOWN
 */
export async function readFinding(
  schema: string,
  tx: Pick<Executor, 'query'>,
  id: string,
  lock: boolean,
): Promise<FindingRow> {
  if (lock) {
    // locked first and read in a second statement: what it waited for is seen then
    await tx.query({
      text: `select 1 from ${schema}findings where finding_id = $1::uuid for update`,
      values: [id],
    })
  }
  const [row] = await tx.query<Row>({
    text: `select f.finding_id::text as finding_id, f.kind, f.class, f.state, f.order_id, f.evidence::text as evidence,
        f.reference::text as reference, f.closed_because, s.source_id, s.provider, s.provider_account, s.environment
      from ${schema}findings f
      left join ${schema}sources s on s.source_id = coalesce(f.source_id,
        (select e.source_id from ${schema}inbox_events e join ${schema}sources p on p.source_id = e.source_id
          where e.event_key = f.event_key and p.provider <> 'hookledger'),
        (select o.source_id from ${schema}orders o where o.order_id = f.order_id))
      where f.finding_id = $1::uuid`,
    values: [id],
  })
  if (row === undefined) {
    throw new HookledgerError(
      'HKL_FINDING_UNKNOWN',
      `there is no finding ${id}: see "hookledger findings list --state all"`,
    )
  }
  return findingOf(row)
}

function findingOf(row: Row): FindingRow {
  const evidence = JSON.parse(row.evidence) as unknown
  return {
    id: row.finding_id,
    kind: row.kind,
    class: row.class,
    state: row.state,
    orderId: row.order_id,
    evidence: isRecord(evidence) ? evidence : {},
    reference: referenceOf(row),
    source:
      row.source_id === null
        ? null
        : {
            sourceId: row.source_id,
            provider: row.provider ?? '',
            account: row.provider_account ?? '',
            environment: row.environment ?? '',
          },
    closedBecause: row.closed_because,
  }
}

function referenceOf(row: Row): RecordReference | null {
  if (row.reference === null) return null
  const read = JSON.parse(row.reference) as unknown
  if (!isRecord(read)) return null
  const { kind, id, account } = read
  if (typeof kind !== 'string' || typeof id !== 'string') return null
  return { kind, id, account: typeof account === 'string' ? account : (row.provider_account ?? '') }
}

/** What was done about a finding before, the newest first. */
export async function earlierRepairs(
  schema: string,
  tx: Pick<Executor, 'query'>,
  findingId: string,
): Promise<EarlierRepair[]> {
  const rows = await tx.query<{
    repair_id: string
    choice: string | null
    actor: string
    applied_at: Date | string
    verified_at: Date | string | null
  }>({
    text: `select repair_id::text as repair_id, plan ->> 'choice' as choice, actor, applied_at, verified_at
      from ${schema}repairs where finding_id = $1::uuid order by applied_at desc, repair_id`,
    values: [findingId],
  })
  return rows.map((row) => ({
    repairId: row.repair_id,
    choice: row.choice ?? '',
    actor: row.actor,
    appliedAt: new Date(row.applied_at),
    verifiedAt: row.verified_at === null ? null : new Date(row.verified_at),
  }))
}

/** What a person, or a rule, did last that could end the finding; null where nobody did. */
export async function endingAct(
  schema: string,
  tx: Pick<Executor, 'query'>,
  findingId: string,
): Promise<{ readonly act: string; readonly actor: string; readonly at: string } | null> {
  const [row] = await tx.query<{ act: string; actor: string; at: Date | string }>({
    text: `select act, actor, acted_at as at from ${schema}operator_acts
      where target = 'finding:' || $1::text and act in ('repair apply', 'findings dismiss')
      order by act_id desc limit 1`,
    values: [findingId],
  })
  return row === undefined ? null : { ...row, at: new Date(row.at).toISOString() }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The ids of payments that a finding's figures name (`payment`, `payments: 'pi_1, pi_2'`). */
export function paymentsNamed({ evidence }: FindingRow): string[] {
  const named = ['payment', 'payments'].flatMap((key) => {
    const value = evidence[key]
    return typeof value === 'string' ? value.split(',') : []
  })
  return [...new Set(named.map((each) => each.trim()).filter((each) => each !== ''))]
}
