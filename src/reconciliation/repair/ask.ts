/**
 * Asks the provider about what a finding compares, before any transaction begins: the record that it
 * names, the payments that its figures name, and whatever the order's names stand for.
 */
import { HookledgerError } from '../../core/errors.ts'
import { formatMoney } from '../../core/money.ts'
import type { Executor } from '../../postgres/executor.ts'
import type { Name } from '../../workflow/order.ts'
import {
  RecordsError,
  type Fact,
  type MadeEvent,
  type ProviderRecord,
  type RecordReference,
} from '../../workflow/records.ts'
import { paymentsNamed, type FindingRow } from './finding.ts'
import type { AskedSource, RepairContext } from './ports.ts'

/** What the provider says now. */
export interface Answers {
  /** The source that was asked; null: none is configured that can be. */
  readonly source: AskedSource | null
  readonly records: readonly ProviderRecord[]
  readonly facts: readonly Fact[]
  readonly events: readonly MadeEvent[]
  /** What was asked for, with what it says; `gone`: the provider says that there is none. */
  readonly asked: readonly { readonly reference: RecordReference; readonly says: string }[]
}

/** More names of one order are not asked about. */
const mostNames = 20

/**
 * Asks. Without a source that can be asked the answer is empty.
 *
 * @throws HookledgerError HKL_RECONCILE_UNAVAILABLE when the provider does not answer
 */
export async function askAbout(context: RepairContext, finding: FindingRow): Promise<Answers> {
  const source = finding.source === null ? null : context.source(finding.source)
  const records = source?.records ?? null
  if (source === null || records === null || finding.source === null)
    return { source, records: [], facts: [], events: [], asked: [] }
  const found: ProviderRecord[] = []
  const asked: { reference: RecordReference; says: string }[] = []
  for (const reference of await referencesOf(context, finding, records)) {
    const record = await fetchRecord(context, source, reference)
    const facts = record === null ? [] : records.factsOf(record)
    asked.push({ reference, says: record === null ? 'gone' : factsText(facts) })
    if (record !== null) found.push(record)
  }
  return {
    source,
    records: found,
    facts: found.flatMap((each) => records.factsOf(each)),
    events: madeOnce(found.flatMap((each) => records.eventsOf(each))),
    asked,
  }
}

/** The same event can be made from two records. */
function madeOnce(events: readonly MadeEvent[]): MadeEvent[] {
  return [...new Map(events.map((event) => [event.eventId, event])).values()]
}

/** @throws HookledgerError HKL_RECONCILE_UNAVAILABLE */
export async function fetchRecord(
  { callMs }: Pick<RepairContext, 'callMs'>,
  source: AskedSource,
  reference: RecordReference,
): Promise<ProviderRecord | null> {
  try {
    return (await source.records?.fetch(reference, AbortSignal.timeout(callMs))) ?? null
  } catch (error) {
    const why = error instanceof RecordsError ? error.message : 'it did not answer'
    throw new HookledgerError(
      'HKL_RECONCILE_UNAVAILABLE',
      `source "${source.name}" could not be asked about ${reference.kind} ${reference.id}: ${why}; nothing was changed, try again`,
      { cause: error },
    )
  }
}

/** The records that a finding compares. */
export async function referencesOf(
  context: Pick<RepairContext, 'db'>,
  finding: FindingRow,
  records: NonNullable<AskedSource['records']>,
): Promise<RecordReference[]> {
  const account = finding.source?.account ?? ''
  const references: RecordReference[] = finding.reference === null ? [] : [finding.reference]
  for (const id of paymentsNamed(finding)) {
    const reference = records.referenceOf('payment', id, account)
    if (reference !== null) references.push(reference)
  }
  // one fact seldom comes alone: what else the order's names stand for may be missing just as well
  if (finding.orderId !== null) {
    for (const name of await namesOf(context, finding.orderId, finding.source?.sourceId ?? 0)) {
      const reference = records.namedBy(name, account)
      if (reference !== null) references.push(reference)
    }
    // what an order is put back to is judged by all that is recorded of it
    for (const name of isChanged.has(finding.kind)
      ? await effectsOf(context, finding.orderId)
      : []) {
      const reference = records.namedBy(name, account)
      if (reference !== null) references.push(reference)
    }
  }
  const distinct = new Map(references.map((each) => [`${each.kind} ${each.id}`, each]))
  return [...distinct.values()].slice(0, mostNames)
}

/** Kinds of findings about an order that somebody changed past its decisions. */
const isChanged: ReadonlySet<string> = new Set(['tampered', 'entitlement_without_state'])

/** Effects mostly carry the id of what made them: a refund, a dispute. */
async function effectsOf(
  { db }: Pick<RepairContext, 'db'>,
  orderId: string,
): Promise<readonly Name[]> {
  const rows = await db.query<{ kind: string; name: string }>({
    text: `select effect_type as kind, effect_reference as name from ${db.schema}fulfillment_effects
      where order_id = $1 and effect_reference <> '' order by 1, 2 limit ${mostNames}`,
    values: [orderId],
  })
  return rows.map(({ kind, name }) => ({ kind, value: name }))
}

async function namesOf(
  { db }: Pick<RepairContext, 'db'>,
  orderId: string,
  sourceId: number,
): Promise<readonly Name[]> {
  return namesOfOrder(db.schema, db, orderId, sourceId)
}

/** The names of an order at one source. */
export async function namesOfOrder(
  schema: string,
  tx: Pick<Executor, 'query'>,
  orderId: string,
  sourceId: number,
): Promise<readonly Name[]> {
  const rows = await tx.query<{ kind: string; name: string }>({
    text: `select kind, name from ${schema}order_names
      where order_id = $1 and source_id = $2 order by kind, name limit ${mostNames}`,
    values: [orderId, sourceId],
  })
  return rows.map(({ kind, name }) => ({ kind, value: name }))
}

/** What facts say, as one line that is the same as long as they are. */
export function factsText(facts: readonly Fact[]): string {
  if (facts.length === 0) return 'no claim about money'
  return facts.map(factText).sort().join('; ')
}

function factText(fact: Fact): string {
  switch (fact.fact) {
    case 'payment': {
      const { refunded: amount, currency } = fact
      const back = amount === 0n ? '' : `, ${formatMoney({ amount, currency })} given back`
      return `payment ${fact.id} of ${formatMoney(fact)} is ${fact.standing}${back}`
    }
    case 'refund':
      return `refund ${fact.id} of ${formatMoney(fact)} is ${fact.standing}`
    case 'dispute':
      return `dispute ${fact.id} is ${fact.standing}`
  }
}
