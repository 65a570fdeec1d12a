/**
 * The discrepancies that deciding can find, each with its class and weight. Kinds of a workflow's own
 * (`flag`, `contradict`) take the defaults at the end.
 */
import type { Figures } from './decision.ts'
import type { FindingDraft } from './outcome.ts'

const kinds: Readonly<Record<FindingKind, Pick<FindingDraft, 'class' | 'severity'>>> = {
  paid_twice: { class: 'contradiction', severity: 'high' },
  underpaid: { class: 'contradiction', severity: 'high' },
  overpaid: { class: 'contradiction', severity: 'low' },
  currency_differs: { class: 'contradiction', severity: 'high' },
  not_accepted: { class: 'contradiction', severity: 'high' },
  foreign_account: { class: 'contradiction', severity: 'high' },
  transition_refused: { class: 'contradiction', severity: 'medium' },
  over_refunded: { class: 'contradiction', severity: 'high' },
  fulfilled_twice: { class: 'contradiction', severity: 'high' },
  amount_differs: { class: 'contradiction', severity: 'medium' },
  name_of_other_order: { class: 'contradiction', severity: 'high' },
  workflow_differs: { class: 'contradiction', severity: 'high' },
  two_claims: { class: 'contradiction', severity: 'high' },
  order_differs: { class: 'contradiction', severity: 'medium' },
  contradicted: { class: 'contradiction', severity: 'medium' },
  wait_overdue: { class: 'lag', severity: 'medium' },
  dead_event: { class: 'lag', severity: 'high' },
  operation_dead: { class: 'contradiction', severity: 'high' },
  operation_uncertain: { class: 'lag', severity: 'high' },
  event_missing: { class: 'lag', severity: 'medium' },
  paid_there: { class: 'contradiction', severity: 'high' },
  paid_here: { class: 'contradiction', severity: 'high' },
  refunded_there: { class: 'contradiction', severity: 'high' },
  payment_without_order: { class: 'contradiction', severity: 'high' },
  order_stuck: { class: 'lag', severity: 'low' },
  entitlement_without_state: { class: 'contradiction', severity: 'high' },
  dispute_unseen: { class: 'contradiction', severity: 'high' },
  tampered: { class: 'contradiction', severity: 'high' },
  beyond_reach: { class: 'contradiction', severity: 'high' },
  effect_without_event: { class: 'contradiction', severity: 'medium' },
  source_silent: { class: 'lag', severity: 'medium' },
  endpoint_unfit: { class: 'contradiction', severity: 'high' },
  fetch_overdue: { class: 'lag', severity: 'high' },
  mirror_differs: { class: 'lag', severity: 'medium' },
  api_version_differs: { class: 'contradiction', severity: 'low' },
  unknown_status: { class: 'contradiction', severity: 'medium' },
  unknown_price: { class: 'contradiction', severity: 'medium' },
}

/** A kind of finding that the engine makes by itself. */
export type FindingKind =
  | 'paid_twice'
  | 'underpaid'
  | 'overpaid'
  | 'currency_differs'
  | 'not_accepted'
  | 'foreign_account'
  | 'transition_refused'
  | 'over_refunded'
  | 'fulfilled_twice'
  | 'amount_differs'
  | 'name_of_other_order'
  | 'workflow_differs'
  | 'two_claims'
  | 'order_differs'
  | 'contradicted'
  | 'wait_overdue'
  | 'dead_event'
  | 'operation_dead'
  | 'operation_uncertain'
  | 'event_missing'
  | 'paid_there'
  | 'paid_here'
  | 'refunded_there'
  | 'payment_without_order'
  | 'order_stuck'
  | 'entitlement_without_state'
  | 'dispute_unseen'
  | 'tampered'
  | 'beyond_reach'
  | 'effect_without_event'
  | 'source_silent'
  | 'endpoint_unfit'
  | 'fetch_overdue'
  | 'mirror_differs'
  | 'api_version_differs'
  | 'unknown_status'
  | 'unknown_price'

/** The kinds that the engine makes by itself, for documentation. */
export const findingKinds: readonly FindingKind[] = Object.keys(kinds) as FindingKind[]

/** A finding of one of the engine's own kinds. */
export function finding(kind: FindingKind, about: string, figures: Figures): FindingDraft {
  return { kind, ...kinds[kind], about, figures }
}

/** A finding of a kind that a workflow names itself. */
export function flaggedFinding(kind: string, about: string, figures: Figures): FindingDraft {
  const known = Object.hasOwn(kinds, kind)
    ? kinds[kind as FindingKind]
    : { class: 'contradiction', severity: 'medium' }
  return {
    kind,
    class: known.class as FindingDraft['class'],
    severity: known.severity as FindingDraft['severity'],
    about,
    figures,
  }
}
