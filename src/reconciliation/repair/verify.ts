/**
 * After a repair the provider is asked again; only then does the finding end. What does not agree yet stays
 * `repairing`, and the next pass asks again.
 */
import type { PaymentFact } from '../../workflow/records.ts'
import { HookledgerError } from '../../core/errors.ts'
import { fetchRecord } from './ask.ts'
import { readFinding, type FindingRow } from './finding.ts'
import { freshPlan } from './fresh-plan.ts'
import { createPatience } from './patience.ts'
import { readChoice } from './plan.ts'
import type { RepairContext } from './ports.ts'
import { endFinding } from './record.ts'

/** A repair that waits. */
export interface UnverifiedRepair {
  readonly findingId: string
  readonly choice: string
  readonly actor: string
}

/** How a finding stands after it was looked at again. */
export type Verified = 'closed' | 'dismissed' | 'waiting'

/** Repairs nobody verified yet, the oldest first. */
export async function unverifiedRepairs(
  { db }: RepairContext,
  limit: number,
): Promise<UnverifiedRepair[]> {
  const rows = await db.query<{ finding_id: string; choice: string | null; actor: string }>({
    text: `select finding_id::text as finding_id, plan ->> 'choice' as choice, actor from ${db.schema}repairs
      where verified_at is null order by applied_at limit $1::integer`,
    values: [limit],
  })
  return rows.map((row) => ({
    findingId: row.finding_id,
    choice: row.choice ?? '',
    actor: row.actor,
  }))
}

/**
 * Looks at a repaired finding again.
 *
 * @throws HookledgerError HKL_RECONCILE_UNAVAILABLE when the provider does not answer
 */
export async function verifyRepair(
  context: RepairContext,
  { findingId, choice, actor }: UnverifiedRepair,
): Promise<Verified> {
  const { db } = context
  const finding = await readFinding(db.schema, db, findingId, false)
  if (finding.state === 'closed' || finding.state === 'dismissed') {
    // a pass saw by itself that both sides agree
    await db.query({
      text: `update ${db.schema}repairs set verified_at = now() where finding_id = $1::uuid and verified_at is null`,
      values: [findingId],
    })
    return finding.state
  }
  const { name, about } = readChoice(choice)
  const isOver =
    name === 'refund'
      ? await isGivenBack(context, finding, about ?? '')
      : await isAgreed(context, finding)
  const isAccepted = accepting.has(name)
  if (!isOver && !isAccepted) return 'waiting'
  // what a person says is right stays so as long as the figures do, whatever is compared
  const as = isOver && !lasting.has(name) ? 'closed' : 'dismissed'
  const because =
    as === 'closed' ? `repaired by ${actor}, and both sides agree` : `accepted by ${actor}`
  await endFinding(db.schema, db, { findingId, because, as })
  return as
}

/** Choices by which a person says how it is to be, whether the other side agrees or not. */
const accepting: ReadonlySet<string> = new Set(['target', 'accept', 'compensate', 'keep'])
/** Of those, the ones that leave what differed as it is. */
const lasting: ReadonlySet<string> = new Set(['compensate', 'keep'])

async function isAgreed(context: RepairContext, finding: FindingRow): Promise<boolean> {
  const isFound = await context.holds(finding)
  if (isFound !== null || finding.kind !== 'event_missing') return isFound === false
  try {
    return (await freshPlan(context, finding, {})).plan === null
  } catch (error) {
    if (error instanceof HookledgerError && error.code.startsWith('HKL_REPAIR_')) return false
    throw error
  }
}

/** Whether the provider says that all of a payment was given back. */
async function isGivenBack(
  context: RepairContext,
  finding: FindingRow,
  payment: string,
): Promise<boolean> {
  const source = finding.source === null ? null : context.source(finding.source)
  const records = source?.records ?? null
  if (source === null || records === null) return false
  const reference = records.referenceOf('payment', payment, finding.source?.account ?? '')
  if (reference === null) return false
  const record = await fetchRecord(context, source, reference)
  const fact = (record === null ? [] : records.factsOf(record)).find(
    (each): each is PaymentFact => each.fact === 'payment' && each.id === payment,
  )
  return fact !== undefined && fact.refunded >= fact.amount
}

/** What verifying came to. */
export interface VerifyReport {
  readonly verified: number
  readonly waiting: number
}

/** Repairs that one pass verifies at most. */
const atOnce = 200

/** Looks again at everything that was repaired and not verified. */
export async function verifyAll(
  context: RepairContext,
  signal?: AbortSignal,
): Promise<VerifyReport> {
  let verified = 0
  let waiting = 0
  const patience = createPatience()
  for (const repair of await unverifiedRepairs(context, atOnce)) {
    signal?.throwIfAborted()
    if (patience.isOver()) break
    try {
      if ((await verifyRepair(context, repair)) === 'waiting') waiting++
      else verified++
      patience.answered()
    } catch (error) {
      patience.failed(error)
      waiting++
    }
  }
  return { verified, waiting }
}
