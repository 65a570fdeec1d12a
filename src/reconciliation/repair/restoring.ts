/**
 * An order that somebody changed past its decisions, put back. Where later decisions were made on what had been
 * changed, what the decisions say may be less than what was paid for: nothing is taken away then without the
 * provider's word or a person's.
 */
import type { Executor } from '../../postgres/executor.ts'
import type { OrderLedger } from '../../workflow/order.ts'
import type { Outcome } from '../../workflow/outcome.ts'
import { grants } from '../../workflow/workflow.ts'
import { mayHaveFound } from './decided.ts'
import { entitlementsAfter, pairOf, type DraftPayment, type OrderChange } from './draft.ts'
import type { Answers } from './ask.ts'
import type { FindingRow } from './finding.ts'
import type { RepairContext } from './ports.ts'
import { readStanding, restored, type Standing } from './standing.ts'

/** What it is read for, and what the provider said. */
export interface RestoringInput {
  readonly finding: FindingRow
  readonly answers: Answers
  readonly decisionId: bigint
}

/** What restoring an order comes to. */
export interface Restoring {
  /** The order as its decisions say. */
  readonly change: OrderChange
  /** Why that may take away what was paid for; null: it does not. */
  readonly doubt: string | null
  /** Where there is a doubt: the order as the provider's records make it; null: they do not say. */
  readonly provided: OrderChange | null
  /** Why they do not. */
  readonly unsaid: string
}

/** What the provider's records make of the order, folded from nothing. */
interface Truth {
  readonly ledger: OrderLedger
  readonly outcomes: readonly Outcome[]
  /** Whether they account for every payment that counts here, and nothing in them was refused. */
  readonly isPaidFor: boolean
  /** Whether they do for all else that is recorded here, too. */
  readonly isWhole: boolean
}

/** Reads what the decisions say of an order, and what the provider does. */
export async function restoringOf(
  context: RepairContext,
  tx: Executor,
  input: RestoringInput,
  order: OrderChange,
): Promise<Restoring> {
  const { before, workflow } = order
  const standing = await readStanding(context.db.schema, tx, before.id, workflow)
  const truth = await truthOf(context, tx, input, { order, standing })
  const after = restored(before, standing, workflow, truth?.ledger ?? null)
  const change = { ...order, after }
  const found = doubtOf(change, standing)
  // whoever paid would have no more by what the provider has
  const doubt = truth?.isPaidFor === true && !takesPaid(after, truth.ledger) ? null : found
  const unsaid = unsaidOf(input, standing, truth)
  if (doubt === null) return { change, doubt, provided: null, unsaid }
  if (truth === null || !truth.isWhole || standing.isSaid)
    return { change: { ...change, notes: [doubt] }, doubt, provided: null, unsaid }
  const made = restored(before, standingIn(truth.ledger, standing), workflow, truth.ledger)
  const noted = {
    ...change,
    notes: [doubt, `the provider's records say that it is ${truth.ledger.state}`],
  }
  const provided = await providedChange(context, tx, { ...noted, after: made }, truth)
  return { change: noted, doubt, provided, unsaid }
}

/** Decisions that may have been made on what somebody had changed, in words. */
function doubtOf(change: OrderChange, { strayed, changes, grants: told }: Standing): string | null {
  if (isSame(change)) return null
  const { after, workflow } = change
  if (strayed !== null)
    return `decisions went on from ${strayed}, to which none had led: they were made on what somebody had changed, and restoring what they say may take away what was paid for`
  const open = grants(workflow, after.state)
  // a decision of an order that did not entitle would have granted nothing
  const lost = lessened(change).find(
    (pair) => mayHaveFound(changes, pair) || (!open && told.get(pair)?.active === true),
  )
  if (lost === undefined) return null
  return `a decision may have found ${lost} as somebody had changed it, and granted it so: restoring what decisions say may take away what was paid for`
}

/** Pairs that are active now, and are not, or are less or for a shorter time, afterwards. */
function lessened({ before, after }: OrderChange): string[] {
  return lessIn(before, after)
}

/** Whether the order is to have less than the provider's records make of it. */
function takesPaid(after: OrderLedger, truth: OrderLedger): boolean {
  return lessIn(truth, after).length > 0
}

function lessIn(before: OrderLedger, after: OrderLedger): string[] {
  const later = new Map(after.entitlements.map((row) => [pairOf(row), row]))
  return before.entitlements.flatMap((row) => {
    const pair = pairOf(row)
    const left = later.get(pair)
    const until = left?.validUntil?.getTime() ?? Infinity
    const isKept =
      left?.active === true &&
      left.quantity >= row.quantity &&
      until >= (row.validUntil?.getTime() ?? Infinity)
    return row.active && !isKept ? [pair] : []
  })
}

function isSame(change: OrderChange): boolean {
  const { before, after } = change
  return (
    before.state === after.state &&
    before.subject === after.subject &&
    before.expected?.amount === after.expected?.amount &&
    before.expected?.currency === after.expected?.currency &&
    entitlementsAfter(change) === null
  )
}

function unsaidOf({ answers }: RestoringInput, { isSaid }: Standing, truth: Truth | null): string {
  if (answers.source?.records == null) return 'and the provider cannot be asked here'
  if (isSaid) return 'and somebody said once how it is to be'
  if (truth === null) return "and the order's names lead to no record of the provider that says it"
  return "and the provider's records do not account for all that is recorded here"
}

/** The order as the provider's records alone make it, opened as its decisions say. */
async function truthOf(
  context: RepairContext,
  tx: Executor,
  { finding, answers, decisionId }: RestoringInput,
  { order, standing }: { readonly order: OrderChange; readonly standing: Standing },
): Promise<Truth | null> {
  const { source } = finding
  const { before } = order
  if (source === null || answers.events.length === 0) return null
  const folded = await context.fold(tx, {
    source,
    events: answers.events,
    decisionId,
    lenient: false,
    writes: false,
    records: answers.records,
    fromNothing: {
      ...before,
      subject: standing.subject ?? before.subject,
      expected: standing.expected ?? before.expected,
    },
  })
  const found = folded.orders.find(({ id }) => id === before.id)
  if (found === undefined) return null
  const { after: ledger, outcomes } = found
  const isPaidFor =
    folded.failures.length === 0 &&
    folded.loose.length === 0 &&
    outcomes.some(({ kind }) => changing.has(kind)) &&
    outcomes.every(({ kind }) => changing.has(kind) || kind === 'absorbed' || kind === 'skipped') &&
    before.payments.every(
      (each) => !each.applied || paymentIn(ledger, each.sourceId, each.id)?.applied === true,
    )
  const isWhole = isPaidFor && before.effects.every((each) => hasEffect(ledger, each))
  return { ledger, outcomes, isPaidFor, isWhole }
}

const changing: ReadonlySet<string> = new Set(['fulfilled', 'moved', 'reversed'])

function paymentIn(
  { payments }: OrderLedger,
  sourceId: number,
  id: string,
): OrderLedger['payments'][number] | undefined {
  return payments.find((each) => each.sourceId === sourceId && each.id === id)
}

function hasEffect(
  { effects }: OrderLedger,
  { type, reference }: OrderLedger['effects'][number],
): boolean {
  return effects.some((each) => each.type === type && each.reference === reference)
}

/** What the provider's records say, in the place of what decisions do. */
function standingIn(ledger: OrderLedger, standing: Standing): Standing {
  return {
    ...standing,
    decided: ledger.state,
    // of nobody's opening, it may be for whom the records say it is
    subject: standing.subject ?? ledger.subject,
    grants: new Map(
      ledger.entitlements.map((row) => [
        pairOf(row),
        { active: row.active, grantedBy: standing.grants.get(pairOf(row))?.grantedBy ?? null },
      ]),
    ),
  }
}

/** With what the records have and this ledger lacks; null where a payment of theirs is another order's here. */
async function providedChange(
  context: RepairContext,
  tx: Executor,
  change: OrderChange,
  { ledger, outcomes }: Truth,
): Promise<OrderChange | null> {
  const { before, after } = change
  const payments: DraftPayment[] = []
  for (const each of ledger.payments) {
    const { sourceId, id, amount, currency, applied } = each
    const known = paymentIn(before, sourceId, id)
    if (!applied || known?.applied === true) continue
    if (known === undefined && (await context.payer(tx, sourceId, id)) !== null) return null
    const row = known === undefined ? { id, amount, currency, applied } : null
    payments.push({ sourceId, row, applies: known?.id ?? null })
  }
  const effects = ledger.effects.filter((each) => !hasEffect(before, each))
  const operations = outcomes
    .flatMap((each) => each.operations)
    .filter(({ effectType: type, effectReference: reference }) =>
      effects.some((each) => each.type === type && each.reference === reference),
    )
  return {
    ...change,
    after: {
      ...after,
      payments: [
        ...before.payments.filter((each) => !payments.some(({ applies }) => applies === each.id)),
        ...ledger.payments.filter(({ sourceId, id }) =>
          payments.some(
            (each) => each.sourceId === sourceId && (each.row?.id ?? each.applies) === id,
          ),
        ),
      ],
      effects: [...before.effects, ...effects],
    },
    payments,
    effects,
    operations,
  }
}
