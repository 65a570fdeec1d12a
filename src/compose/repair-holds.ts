/**
 * Whether a finding would still be found: both sides are compared again by the very comparison that finds, the
 * provider asked anew.
 */
import { fetchRecord } from '../reconciliation/repair/ask.ts'
import type { RepairContext } from '../reconciliation/repair/ports.ts'
import type { Comparison, FetchRecord } from '../reconciliation/ports.ts'
import { comparisonOf, type ComparisonParts } from './comparison.ts'

/** Wires it; what it compares by is made when it is first asked. */
export function repairHolds(
  parts: ComparisonParts,
  { callMs }: Pick<RepairContext, 'callMs'>,
): (finding: { readonly id: string }) => Promise<boolean | null> {
  let comparison: Comparison | undefined
  const fetch: FetchRecord = ({ name, account, source: { provider, records } }, reference) =>
    fetchRecord({ callMs }, { name, account, provider, records: records ?? null }, reference)
  return async ({ id }) => {
    comparison ??= comparisonOf(parts).comparison
    const agrees = await comparison.judgeFinding(id, fetch)
    return agrees === null ? null : !agrees
  }
}
