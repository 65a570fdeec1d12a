/**
 * What a dry run compares: what a decision recorded with what the present code decides. Reasons are
 * words, and words may change; what counts is what was done. Pure.
 */
import { differences } from '../workflow/difference.ts'
import type { LedgerEffect, LedgerEntitlement } from '../workflow/order.ts'
import type { Outcome } from '../workflow/outcome.ts'
import type { Resolved } from '../workflow/resolve-event.ts'

/** Something that the present code decides otherwise; the keys are what `--json` prints. */
export interface DryRunDifference {
  readonly order_id: string | null
  /** Null: the end of the order's history, not one event of it. */
  readonly event: { readonly id: string; readonly type: string; readonly source: string } | null
  readonly decision_id: string | null
  /** What is recorded, and what would be. */
  readonly recorded: string
  readonly now: string
  /** What differs in them, where both did something. */
  readonly details: readonly string[]
}

/** A decision as history has it. */
export interface RecordedStep {
  readonly decisionId: string
  /** What was decided of the event; of a new decision what that one said. */
  readonly kind: string
  readonly from: string | null
  readonly to: string | null
  readonly evidence: Readonly<Record<string, unknown>>
}

const changing: ReadonlySet<string> = new Set(['fulfilled', 'moved', 'reversed'])

/** What differs between a recorded decision and an outcome; null: nothing that counts. */
export function outcomeDifference(
  step: RecordedStep,
  effects: readonly LedgerEffect[],
  outcome: Outcome,
): Pick<DryRunDifference, 'recorded' | 'now' | 'details'> | null {
  const said = {
    recorded: stepText(step),
    now: `${outcome.kind}${movement(outcome.from, outcome.to)}: ${outcome.reason}`,
  }
  if (step.kind !== outcome.kind) {
    const isSilent = isSilentMove(step, effects) && isSilentMove(outcome, outcome.effects)
    return isSilent ? null : { ...said, details: [] }
  }
  if (!changing.has(step.kind)) return null
  const details = differences(
    figures(outcome.to, outcome.evidence, outcome.effects),
    figures(step.to, step.evidence, effects),
  )
  return details.length === 0 ? null : { ...said, details }
}

/**
 * Whether nothing was done but, at most, a set stated anew that was not in force: which set that was before is
 * not recorded, so that one that is the same and one that is not cannot be told apart.
 */
function isSilentMove(
  {
    kind,
    from,
    to,
    evidence,
  }: Pick<RecordedStep, 'from' | 'to' | 'evidence'> & { readonly kind: string },
  effects: readonly LedgerEffect[],
): boolean {
  if (kind === 'absorbed') return true
  const isSame = from === to && effects.length === 0
  return (
    kind === 'moved' &&
    isSame &&
    ['granted', 'revoked', 'stated', 'payment'].every((what) => evidence[what] === undefined)
  )
}

/** A recorded decision in a few words. */
export function stepText(step: Pick<RecordedStep, 'kind' | 'from' | 'to'>): string {
  return `${step.kind}${movement(step.from, step.to)}`
}

function movement(from: string | null, to: string | null): string {
  if (to === null) return ''
  return from === null || from === to ? `, ${to}` : `, ${from} → ${to}`
}

function figures(
  to: string | null,
  evidence: Readonly<Record<string, unknown>>,
  effects: readonly LedgerEffect[],
): Record<string, unknown> {
  return {
    to,
    payment: evidence['payment'],
    amount: evidence['amount'] === undefined ? undefined : String(evidence['amount']),
    currency: evidence['currency'],
    granted: sorted(evidence['granted']),
    revoked: sorted(evidence['revoked']),
    operations: sorted(evidence['operations']),
    effects: Object.fromEntries(
      effects.map(({ type, reference, amount, currency, payment, data }) => [
        reference === '' ? type : `${type} ${reference}`,
        { amount: amount?.toString(), currency, payment, data: jsonOf(data) },
      ]),
    ),
  }
}

function sorted(values: unknown): string {
  return Array.isArray(values) ? values.map(String).sort().join(', ') : ''
}

/** Data as the database gives it back: dates are texts, and what is undefined is not there. */
function jsonOf(data: Readonly<Record<string, unknown>>): unknown {
  return JSON.parse(
    JSON.stringify(data, (_, value: unknown) =>
      typeof value === 'bigint'
        ? value.toString()
        : typeof value === 'number'
          ? String(value)
          : value,
    ),
  )
}

/** How an order's history ends. */
export interface HistoryEnd {
  /** Null: there is no order. */
  readonly state: string | null
  readonly entitlements: readonly LedgerEntitlement[]
}

/** Subject and entitlement as one text, as evidence has them. */
export function pairOf({ subject, entitlement }: LedgerEntitlement): string {
  return `${subject} ${entitlement}`
}

/**
 * What differs at the end: the order's state, and what of these pairs it entitles to (null: of all of
 * them). Null: nothing.
 */
export function endDifference(
  recorded: HistoryEnd,
  decided: HistoryEnd,
  pairs: ReadonlySet<string> | null,
): Pick<DryRunDifference, 'recorded' | 'now' | 'details'> | null {
  const was = endOf(recorded, pairs)
  const would = endOf(decided, pairs)
  const details = differences(would, was)
  if (details.length === 0) return null
  return { recorded: endText(was), now: endText(would), details }
}

interface End {
  readonly state: string
  readonly entitled: Readonly<Record<string, string>>
}

function endOf({ state, entitlements }: HistoryEnd, pairs: ReadonlySet<string> | null): End {
  return {
    state: state ?? 'not there',
    entitled: Object.fromEntries(
      entitlements
        .filter((row) => row.active && (pairs === null || pairs.has(pairOf(row))))
        .map((row) => [
          pairOf(row),
          `${row.quantity}${row.validUntil === null ? '' : ` until ${row.validUntil.toISOString()}`}`,
        ]),
    ),
  }
}

function endText({ state, entitled }: End): string {
  const names = Object.keys(entitled).sort()
  return `${state}${names.length === 0 ? '' : `, entitles ${names.join(', ')}`}`
}

/** The kind of decision that an event without an order gets. */
export function resolvedKind(resolved: Resolved): string {
  switch (resolved.kind) {
    case 'waiting':
      return 'deferred'
    case 'plain':
      return 'handled'
    case 'left':
      return 'ignored'
    case 'failed':
      return 'dead'
    default:
      return resolved.kind
  }
}

/** What an event without an order is now, in words. */
export function resolvedText(resolved: Resolved): string {
  switch (resolved.kind) {
    case 'failed':
      return `fails: ${resolved.error instanceof Error ? resolved.error.message : 'an error that cannot be told'}`
    case 'ignored':
    case 'dead':
    case 'contradicted':
      return `${resolved.kind}: ${resolved.reason}`
    case 'waiting':
      return 'deferred: it waits for a name of an order'
    default:
      return resolvedKind(resolved)
  }
}
