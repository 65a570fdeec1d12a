/**
 * Findings made in the commit that found them. The id is computed from what is compared, so that the
 * same discrepancy seen again is the same row: it counts up, reopens when it was closed, and keeps its
 * owner and its due date.
 */
import { toJson } from '../core/json.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import { permanentId } from '../postgres/permanent-id.ts'
import type { FindingDraft } from '../workflow/outcome.ts'
import type { RecordReference } from '../workflow/records.ts'
import { storable } from '../postgres/storable-text.ts'

/** Who answers for findings, and how long they may stay open, in milliseconds. */
export interface FindingPolicy {
  readonly owner: string
  readonly owners: Readonly<Record<string, string>>
  readonly dueMs: Readonly<Record<'lag' | 'contradiction', number>>
}

/** A finding with where it was seen. */
export interface FoundDiscrepancy {
  readonly draft: FindingDraft
  readonly source: string
  readonly orderId: string | null
  readonly eventKey: bigint | null
  /** Where the provider's record stands that it compares, so that it can be looked at again. */
  readonly sourceId?: number | null
  readonly reference?: RecordReference | null
}

/** The permanent id of a finding. */
export function findingId(
  installationId: string,
  kind: string,
  source: string,
  about: string,
): string {
  return permanentId(installationId, [kind, source, about])
}

/**
 * The write of a batch's findings; rows are sorted by id, since other batches may write the same. What was
 * closed is open again; what was dismissed is once it says something else, or once the day has come until
 * which it was dismissed.
 */
export function findingsPart(
  schema: string,
  installationId: string,
  policy: FindingPolicy,
  found: readonly FoundDiscrepancy[],
): WritePart | null {
  if (found.length === 0) return null
  const rows = new Map<string, FoundDiscrepancy>()
  for (const each of found)
    rows.set(findingId(installationId, each.draft.kind, each.source, each.draft.about), each)
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1))
  const column = <T>(of: (each: FoundDiscrepancy, id: string) => T): T[] =>
    sorted.map(([id, each]) => of(each, id))
  return {
    name: 'found',
    sql: foundSql(schema),
    values: [
      column((_, id) => id),
      column((each) => each.draft.kind),
      column((each) => each.draft.class),
      column((each) => each.draft.severity),
      column((each) => policy.owners[each.draft.kind] ?? policy.owner),
      column((each) => each.orderId),
      column((each) => each.eventKey?.toString() ?? null),
      column((each) => storable(toJson(each.draft.figures))),
      column((each) => policy.dueMs[each.draft.class]),
      column((each) => each.sourceId ?? null),
      column((each) => (each.reference == null ? null : storable(toJson(each.reference)))),
    ],
  }
}

/** Whether a row that is found again opens: `f` is what is there, `excluded` what was found. */
const opens = `(f.state = 'closed' or (f.state = 'dismissed'
          and (f.dismissed_until <= now() or f.dismissed_evidence is distinct from excluded.evidence)))`

function foundSql(schema: string): string {
  return `found as (
      insert into ${schema}findings as f
        (finding_id, kind, class, severity, owner, order_id, event_key, evidence, due_at, source_id, reference)
      select finding_id, kind, class, severity, owner, order_id, event_key, evidence::jsonb,
        now() + due_ms * interval '1 millisecond', source_id, reference::jsonb
      from unnest(:1::uuid[], :2::text[], :3::text[], :4::text[], :5::text[], :6::text[], :7::bigint[], :8::text[], :9::bigint[],
          :10::integer[], :11::text[])
        as n(finding_id, kind, class, severity, owner, order_id, event_key, evidence, due_ms, source_id, reference)
      order by finding_id
      on conflict (finding_id) do update set
        last_seen_at = now(), times_seen = f.times_seen + 1, evidence = excluded.evidence,
        order_id = coalesce(f.order_id, excluded.order_id), event_key = coalesce(f.event_key, excluded.event_key),
        source_id = coalesce(excluded.source_id, f.source_id), reference = coalesce(excluded.reference, f.reference),
        state = case when ${opens} then 'open' else f.state end,
        due_at = case when ${opens} then excluded.due_at else f.due_at end,
        escalations = case when ${opens} then 0 else f.escalations end,
        closed_at = case when ${opens} then null else f.closed_at end,
        closed_because = case when ${opens} then null else f.closed_because end
      returning f.finding_id, f.state, f.times_seen = 1 as is_new)`
}

/** Closes findings that are over, and says why. */
export function closedPart(
  schema: string,
  ids: readonly string[],
  because = 'what it was about is over',
): WritePart | null {
  if (ids.length === 0) return null
  return {
    name: 'closed_findings',
    sql: `closed_findings as (
      update ${schema}findings set state = 'closed', closed_at = now(), closed_because = :2
      where finding_id in (select finding_id from ${schema}findings where finding_id = any (:1::uuid[]) order by finding_id for update)
        and state in ('open', 'repairing')
      returning finding_id)`,
    values: [[...ids].sort(), because],
  }
}
