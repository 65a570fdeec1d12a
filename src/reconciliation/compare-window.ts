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
import { mirrorDiffers } from './mirror-differs.ts'
import type {
  CompareInput,
  CompareReport,
  ConfiguredSourceLike,
  Discrepancy,
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
  return judged.map(({ record, previews, mended, isYoung, isHeldUp, discrepancies, confirmed }) => {
    for (const id of confirmed) seen.confirm(account, id)
    const inject = previews.filter(
      (each) =>
        each.eventKey === null &&
        (each.look === null
          ? wouldTell(each) ||
            (each.needsFacts && !each.known) ||
            (mended.has(each.made.eventId) && isDecided(each)) ||
            (each.outcome?.kind === 'deferred' && each.orderExists && !each.known)
          : isToBeLookedAt(each)),
    )
    if (discrepancies.length > 0 || inject.length > 0) seen.suspect(record)
    const differs = new Map(
      inject.flatMap((each): [string, Discrepancy][] => {
        const found = mirrorDiffers(at, record, each)
        return found === null ? [] : [[each.made.eventId, found]]
      }),
    )
    return { record, previews, inject, differs, isYoung, isHeldUp }
  })
}

/** A record of a mirrored type is only a hint: where it fits the order, or led to a look already, nobody looks. */
function isToBeLookedAt(each: PreviewOutcome): boolean {
  const { outcome, look, known, orderExists } = each
  if (known || look === null) return false
  if (!look.isSeen || wouldTell(each)) return true
  // who waits for a customer's link will be woken by it, if only the event is here
  return outcome?.kind === 'deferred' && (orderExists || (outcome.wait?.customers ?? []).length > 0)
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
