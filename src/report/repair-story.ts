/** Repairs in words: from what to what, by whom and why, and whether both sides were seen to agree. Pure. */
import type { RepairView } from './reconciliation.ts'
import type { TimelineEntry } from './timeline-entry.ts'

/** The entries of a repair: that it was applied, and that it was verified. */
export function repairEntries(repair: RepairView): TimelineEntry[] {
  const base = {
    event_id: null,
    decision_id: repair.decision_id,
    links: [{ kind: 'finding', id: repair.finding_id }] as const,
    figures: [],
  }
  const applied: TimelineEntry = {
    ...base,
    at: repair.applied_at,
    what: 'repaired',
    text: `${repair.actor} repaired ${repair.finding_kind}${choiceOf(repair)}${movementOf(repair)}`,
    details: [
      `because ${repair.reason}`,
      `repair ${repair.repair_id} of finding ${repair.finding_id}${repair.decision_id === null ? '' : `, decision ${repair.decision_id}`}`,
      ...(repair.verified_at === null ? ['not verified yet: the next pass asks again'] : []),
    ],
  }
  if (repair.verified_at === null) return [applied]
  const verified: TimelineEntry = {
    ...base,
    at: repair.verified_at,
    what: 'verified',
    text: `repair of ${repair.finding_kind} verified: both sides agree`,
    details: [repair.repair_id],
  }
  return [applied, verified]
}

/** `, refunded → paid`: the states of the order, where it has one before and after. */
function movementOf({ previous_state: before, new_state: after }: RepairView): string {
  const from = stateIn(before)
  const to = stateIn(after)
  if (to === null) return ''
  if (from === null) return `, ${to}`
  return from === to ? `, stays ${to}` : `, ${from} → ${to}`
}

function choiceOf({ plan }: RepairView): string {
  const choice = textIn(plan, 'choice')
  return choice === null ? '' : ` by ${choice}`
}

function stateIn(value: unknown): string | null {
  return textIn(value, 'state')
}

function textIn(value: unknown, key: string): string | null {
  if (typeof value !== 'object' || value === null || !(key in value)) return null
  const found = (value as Record<string, unknown>)[key]
  return typeof found === 'string' ? found : null
}
