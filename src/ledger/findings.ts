/**
 * Findings made in the commit that found them. The id is computed from what is compared, so that the
 * same discrepancy seen again is the same row: it counts up, reopens when it was closed, and keeps its
 * owner and its due date.
 */
import { toJson } from '../core/json.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import { permanentId } from '../postgres/permanent-id.ts'
import type { FindingDraft } from '../workflow/outcome.ts'
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

/** The write of a batch's findings; rows are sorted by id, since other batches may write the same. */
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
    sql: `found as (
      insert into ${schema}findings as f
        (finding_id, kind, class, severity, owner, order_id, event_key, evidence, due_at)
      select finding_id, kind, class, severity, owner, order_id, event_key, evidence::jsonb,
        now() + due_ms * interval '1 millisecond'
      from unnest(:1::uuid[], :2::text[], :3::text[], :4::text[], :5::text[], :6::text[], :7::bigint[], :8::text[], :9::bigint[])
        as n(finding_id, kind, class, severity, owner, order_id, event_key, evidence, due_ms)
      order by finding_id
      on conflict (finding_id) do update set
        last_seen_at = now(), times_seen = f.times_seen + 1, evidence = excluded.evidence,
        state = case
          when f.state = 'closed' then 'open'
          when f.state = 'dismissed' and f.evidence <> excluded.evidence then 'open'
          else f.state end,
        due_at = case when f.state = 'closed' then excluded.due_at else f.due_at end,
        closed_at = case when f.state = 'closed' then null else f.closed_at end
      returning 1)`,
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
    ],
  }
}

/** Closes findings that the batch resolved by itself (a wait that ended). */
export function closedPart(schema: string, ids: readonly string[]): WritePart | null {
  if (ids.length === 0) return null
  return {
    name: 'closed_findings',
    sql: `closed_findings as (
      update ${schema}findings set state = 'closed', closed_at = now()
      where finding_id in (select finding_id from ${schema}findings where finding_id = any (:1::uuid[]) order by finding_id for update)
        and state in ('open', 'repairing')
      returning 1)`,
    values: [[...ids].sort()],
  }
}
