/** What a provider's list does not reach: one finding for a source and kind, whatever times were asked for. */
import { finding } from '../workflow/finding-kinds.ts'
import type { Discrepancy } from './ports.ts'
import type { Window } from './slices.ts'

/** The finding, over all that was asked for in vain: `before` is what it said until now. */
export function beyondReach(
  of: { readonly source: string; readonly account: string; readonly kind: string },
  beyond: Window,
  before: Readonly<Record<string, unknown>> | undefined,
): Discrepancy {
  const from = furthest(beyond.from, before?.['from'], Math.min)
  const to = furthest(beyond.to, before?.['to'], Math.max)
  const figures = {
    account: of.account,
    record: of.kind,
    from: from.toISOString(),
    to: to.toISOString(),
  }
  return {
    draft: finding('beyond_reach', of.kind, figures),
    source: of.source,
    orderId: null,
    eventKey: null,
    sourceId: null,
    reference: null,
  }
}

function furthest(time: Date, before: unknown, choose: (a: number, b: number) => number): Date {
  const known = typeof before === 'string' ? Date.parse(before) : Number.NaN
  return Number.isNaN(known) ? time : new Date(choose(time.getTime(), known))
}
