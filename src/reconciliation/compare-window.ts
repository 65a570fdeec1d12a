/**
 * Compares a window both ways once everything that was put into the inbox is decided. Nothing is called a
 * discrepancy on the word of a page: whatever still disagrees is asked for once more, by reference.
 */
import type { ProviderRecord } from '../workflow/records.ts'
import { accountSource, type CompareContext } from './compare-context.ts'
import { endpointDiscrepancies } from './endpoints.ts'
import { writeFindings, type Rechecked } from './findings.ts'
import { Judge } from './judge.ts'
import { wouldTell } from './judge-facts.ts'
import { judgeRecords } from './judge-records.ts'
import type {
  CompareInput,
  CompareReport,
  ConfiguredSourceLike,
  LookedAt,
  PreviewOutcome,
} from './ports.ts'
import { recheckSource } from './recheck-source.ts'
import type { SeenWindow } from './window-seen.ts'

/** Looks at a page of objects before anything is put into the inbox. */
export async function lookAt(
  ctx: CompareContext,
  source: ConfiguredSourceLike,
  account: string,
  records: readonly ProviderRecord[],
  { seen, settledBefore }: { readonly seen: SeenWindow; readonly settledBefore: Date },
): Promise<readonly LookedAt[]> {
  const at = await accountSource(ctx, source, account)
  const judged = await judgeRecords(ctx, at, records, settledBefore)
  return judged.map(({ record, previews, mended, isYoung, discrepancies, confirmed }) => {
    for (const id of confirmed) seen.confirm(account, id)
    const inject = previews.filter(
      (each) =>
        each.eventKey === null &&
        (wouldTell(each) ||
          (mended.has(each.made.eventId) && isDecided(each)) ||
          (each.outcome?.kind === 'deferred' && each.orderExists && !each.known)),
    )
    if (discrepancies.length > 0 || inject.length > 0) seen.suspect(record)
    return { record, previews, inject, isYoung }
  })
}

/** It would end with a decision, if only that it is known already: what is dead of it is over then. */
function isDecided({ outcome, known }: PreviewOutcome): boolean {
  return outcome !== null && !known && outcome.kind !== 'dead' && outcome.kind !== 'deferred'
}

/**
 * Records against the ledger, the ledger against records, and what is open already. Where the provider stops
 * answering on the way, what was found until then is written all the same.
 */
export async function compareWindow(
  ctx: CompareContext,
  input: CompareInput & { readonly seen: SeenWindow },
): Promise<CompareReport> {
  const judge = new Judge(ctx, input.source, input.fetch, input.settledBefore)
  let rechecked: Rechecked = { agreed: [], differing: [] }
  try {
    for (const account of input.seen.accounts()) await judge.suspects(account, input)
    await judge.unconfirmed(input)
    const unfit = await endpointDiscrepancies(ctx, input)
    judge.keep(unfit ?? [])
    rechecked = await recheckSource(ctx, judge, { endpoints: unfit !== null })
  } catch (error) {
    await writeFindings(ctx, [...judge.found.values()], rechecked)
    throw error
  }
  const counts = await writeFindings(ctx, [...judge.found.values()], rechecked)
  return { compared: judge.judged, ...counts }
}
