/** What the decisions of orders say, read for those that are looked at closely. */
import type { Executor } from '../../postgres/executor.ts'
import type { DecidedMove } from '../repair/decided.ts'

/** How much of an entitlement a decision stated, and until when. */
export interface StatedFigures {
  readonly quantity: number
  readonly valid_until: string | null
}

/** A decision of an order. */
export interface OrderDecision extends DecidedMove {
  readonly kind: string
  readonly stated: Readonly<Record<string, StatedFigures>>
  /** What the app opened the order with. */
  readonly opening: { readonly subject: string | null; readonly expected: string | null } | null
}

interface DecisionRow {
  readonly order_id: string
  readonly decision_id: string
  readonly kind: string
  readonly from_state: string | null
  readonly to_state: string | null
  readonly entitles: boolean | null
  readonly evidence: Readonly<Record<string, unknown>> | null
}

/** The decisions of these orders, by order. */
export async function decisionsOf(
  s: string,
  tx: Pick<Executor, 'query'>,
  orderIds: readonly string[],
): Promise<ReadonlyMap<string, readonly OrderDecision[]>> {
  const found = new Map<string, OrderDecision[]>()
  if (orderIds.length === 0) return found
  const rows = await tx.query<DecisionRow>({
    text: `select d.order_id, d.decision_id, d.kind, d.from_state, d.to_state, d.entitles, d.evidence
      from unnest($1::text[]) as k(id)
      cross join lateral (select * from ${s}ledger_decisions d where d.order_id = k.id collate "C" offset 0) d
      order by d.order_id, d.decision_id`,
    values: [orderIds],
  })
  for (const row of rows) {
    const decisions = found.get(row.order_id) ?? []
    decisions.push(decisionOf(row))
    found.set(row.order_id, decisions)
  }
  return found
}

function decisionOf(row: DecisionRow): OrderDecision {
  const evidence = row.evidence ?? {}
  const { subject, expected } = evidence
  return {
    decisionId: BigInt(row.decision_id),
    kind: row.kind,
    from: row.from_state,
    to: row.to_state,
    entitles: row.entitles === true,
    granted: textsOf(evidence['granted']),
    revoked: textsOf(evidence['revoked']),
    stated: figuresOf(evidence['stated']),
    opening:
      row.kind === 'opened' ? { subject: textOf(subject), expected: textOf(expected) } : null,
  }
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function figuresOf(value: unknown): Readonly<Record<string, StatedFigures>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, StatedFigures>)
    : {}
}
