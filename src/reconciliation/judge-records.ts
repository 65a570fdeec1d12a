/**
 * Judges records of one account in a few queries for all of them, whatever they are: what their events would
 * come to, and what they claim about money against the rows that are there. Reads only, and asks nobody.
 */
import type { Executor } from '../postgres/executor.ts'
import { mendedEvents } from '../postgres/mended-event.ts'
import type { OrderLedger } from '../workflow/order.ts'
import type { Fact, MadeEvent, ProviderRecord } from '../workflow/records.ts'
import { grants, type Workflow } from '../workflow/workflow.ts'
import type { AccountSource, CompareContext } from './compare-context.ts'
import {
  idsOf,
  judgeFacts,
  type JudgedRecord,
  type LedgerView,
  type RecordedPayment,
} from './judge-facts.ts'
import { mirrorDiffers } from './mirror-differs.ts'
import type { PreviewOutcome } from './ports.ts'
import { readOnlySetup } from './preview.ts'

/** A record with what was judged of it. */
export interface JudgedOne extends JudgedRecord {
  readonly record: ProviderRecord
  readonly previews: readonly PreviewOutcome[]
  /** Ids of events that are told again, since what was told first under their id is dead. */
  readonly mended: ReadonlySet<string>
  /** It changed so lately, or so much of its kind waits in the inbox, that nothing can be said of it yet. */
  readonly isYoung: boolean
  /** It was passed over for what waits in the inbox: it is to be looked at again. */
  readonly isHeldUp: boolean
}

interface Considered {
  readonly record: ProviderRecord
  readonly events: readonly MadeEvent[]
  readonly mended: ReadonlySet<string>
  readonly facts: readonly Fact[]
  readonly isYoung: boolean
}

/** A time that lies further ahead than clocks differ, in milliseconds, is none of a change. */
const clocksMs = 600_000

/** In the order of the records. `settledBefore` null judges however young they are. */
export async function judgeRecords(
  ctx: CompareContext,
  at: AccountSource,
  records: readonly ProviderRecord[],
  settledBefore: Date | null,
): Promise<readonly JudgedOne[]> {
  const considered = await mend(
    ctx,
    at,
    records.map((record) => consider(at, record, settledBefore)),
  )
  const previews = await ctx.preview.previewEach(
    at.source,
    at.account,
    considered.map(({ isYoung, events }) => (isYoung ? [] : events)),
    records,
  )
  const view = await ctx.db.transaction((tx) => readView(ctx, tx, at, considered, previews), {
    setup: readOnlySetup,
  })
  const judged: JudgedOne[] = []
  for (const [index, { record, events, mended, facts, isYoung }] of considered.entries()) {
    const own = previews[index] ?? []
    if (isYoung || own.some(({ isPending }) => isPending)) {
      const isHeldUp = own.some((each) => each.isHeldUp)
      judged.push({ ...undecided, record, mended, previews: [], isHeldUp })
      continue
    }
    const first = judgeFacts(record, facts, own, view)
    const { discrepancies, confirmed, differing } =
      first.differing.length === 0 || events.length === 0
        ? first
        : judgeFacts(record, facts, own, await renamed(ctx, at, events, view))
    const differs = own.flatMap((each) => mirrorDiffers(at, record, each) ?? [])
    const said = {
      discrepancies: [...discrepancies, ...differs],
      confirmed,
      differing,
      isHeldUp: false,
    }
    judged.push({ record, mended, previews: own, isYoung: false, ...said })
  }
  return judged
}

const undecided: Omit<JudgedOne, 'record' | 'previews' | 'mended' | 'isHeldUp'> = Object.freeze({
  isYoung: true,
  discrepancies: Object.freeze([]),
  confirmed: Object.freeze([]),
  differing: Object.freeze([]),
})

function consider(
  { source: { source } }: AccountSource,
  record: ProviderRecord,
  settledBefore: Date | null,
): Considered {
  const events = source.records?.eventsOf(record) ?? []
  const facts = source.records?.factsOf(record) ?? []
  // what is planned for later (the end of a session) has not happened yet
  const latestMs = Date.now() + clocksMs
  const times = events.flatMap(({ occurredAt: at }) =>
    at === null || at.getTime() > latestMs ? [] : [at],
  )
  const changedMs = Math.max(...[record.createdAt, ...times].map((time) => time.getTime()))
  const isYoung = settledBefore !== null && changedMs >= settledBefore.getTime()
  return { record, events, mended: none, facts, isYoung }
}

const none: ReadonlySet<string> = new Set()

/** What was told before and is dead is told again where the provider says something else by now. */
async function mend(
  { db }: CompareContext,
  { sourceId }: AccountSource,
  considered: readonly Considered[],
): Promise<readonly Considered[]> {
  const all = considered.flatMap(({ events }) => events)
  const now = await mendedEvents(db, db.schema, sourceId, all)
  if (now === all) return considered
  let at = 0
  return considered.map((each) => {
    const events = now.slice(at, (at += each.events.length))
    const changed = events.filter((event, index) => event !== each.events[index])
    return { ...each, events, mended: new Set(changed.map(({ eventId }) => eventId)) }
  })
}

/** The view, with what the workflow would record of these events if the order had nothing yet. */
async function renamed(
  { preview }: CompareContext,
  { source, account }: AccountSource,
  events: readonly MadeEvent[],
  view: LedgerView,
): Promise<LedgerView> {
  const named = await preview.paymentsNamed(source, account, events)
  return { ...view, renamed: new Map(named.map((payment) => [payment.id, payment])) }
}

async function readView(
  ctx: CompareContext,
  tx: Executor,
  at: AccountSource,
  considered: readonly Considered[],
  previews: readonly (readonly PreviewOutcome[])[],
): Promise<LedgerView> {
  const facts = considered.flatMap((each) => (each.isYoung ? [] : each.facts))
  const payments = await readPayments(ctx.db.schema, tx, at.sourceId, facts.flatMap(paymentIds))
  const orders = await ctx.ledger.readOrders(tx, [
    ...considered.flatMap((each, index) => ordersToRead(each, previews[index] ?? [], payments)),
  ])
  const { workflows } = ctx.registry
  const canEntitle = ({ workflow: name }: Pick<OrderLedger, 'workflow'>): boolean => {
    const workflow = workflows.get(name)
    return (
      workflow !== undefined && [...workflow.states.keys()].some((each) => grants(workflow, each))
    )
  }
  return { at, payments, orders, entitles: entitlingIn(workflows), canEntitle, renamed: null }
}

/** Orders are read where the workflow passes something over: only then does their state tell. */
function ordersToRead(
  { facts }: Considered,
  previews: readonly PreviewOutcome[],
  payments: ReadonlyMap<string, RecordedPayment>,
): string[] {
  const isPassedOver = previews.every(({ outcome }) =>
    ['skipped', 'ignored'].includes(outcome?.kind ?? ''),
  )
  if (!isPassedOver || facts.length === 0) return []
  const skipped = previews.flatMap(({ outcome, orderId }) =>
    outcome?.kind === 'skipped' && orderId !== null ? [orderId] : [],
  )
  const paid = facts.flatMap((fact) =>
    fact.fact === 'payment' ? [] : (payments.get(fact.payment ?? '')?.orderId ?? []),
  )
  return [...skipped, ...paid]
}

/** Whether the state that an order is in entitles, under this configuration's workflows. */
export function entitlingIn(
  workflows: ReadonlyMap<string, Workflow>,
): (order: Pick<OrderLedger, 'workflow' | 'state'>) => boolean {
  return ({ workflow: name, state }) => {
    const workflow = workflows.get(name)
    if (workflow === undefined) return false
    if (workflow.states.has(state)) return grants(workflow, state)
    // a state that the workflow has renamed since
    return [...workflow.states].some(
      ([name, each]) => each.renamedFrom === state && grants(workflow, name),
    )
  }
}

function paymentIds(fact: Fact): readonly string[] {
  if (fact.fact === 'payment') return idsOf(fact)
  return fact.payment === null ? [] : [fact.payment]
}

/** Recorded payments of a source, by id. */
export async function readPayments(
  s: string,
  tx: Pick<Executor, 'query'>,
  sourceId: number,
  ids: readonly string[],
): Promise<ReadonlyMap<string, RecordedPayment>> {
  if (ids.length === 0) return new Map()
  const rows = await tx.query<{
    payment_id: string
    order_id: string
    amount: string
    currency: string
    applied: boolean
  }>({
    text: `select p.payment_id, p.order_id, p.amount, p.currency, p.applied from unnest($2::text[]) as k(id)
      cross join lateral (select * from ${s}ledger_payments p
        where p.source_id = $1 and p.payment_id = k.id collate "C" offset 0) p`,
    repeated: true,
    values: [sourceId, [...new Set(ids)]],
  })
  return new Map(
    rows.map((row) => [
      row.payment_id,
      {
        id: row.payment_id,
        orderId: row.order_id,
        amount: BigInt(row.amount),
        currency: row.currency,
        applied: row.applied,
      },
    ]),
  )
}
