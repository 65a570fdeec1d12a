/**
 * Makes a plan, and all that carrying it out needs. Planning and applying go through this one function, the
 * latter under the order's lock, so that what is applied is what was shown.
 */
import { HookledgerError } from '../../core/errors.ts'
import type { Executor } from '../../postgres/executor.ts'
import type { OrderLedger } from '../../workflow/order.ts'
import type { PaymentFact } from '../../workflow/records.ts'
import type { Answers } from './ask.ts'
import { compensation, orderAsItIs, providerChange } from './change.ts'
import { checkedChoice, choicesOf, noChoice, offersOf } from './choices.ts'
import { NothingToDo, type OrderChange, type RepairDraft } from './draft.ts'
import type { FindingRow } from './finding.ts'
import { plannedDraft } from './planned-draft.ts'
import type { ChoiceName, ChoiceOffer } from './plan.ts'
import type { RepairContext } from './ports.ts'
import { makeRefund, paymentCandidates, refundDestination, type MadeRefund } from './refund.ts'
import { restoringOf, type Restoring } from './restoring.ts'
import { readStanding, type Standing } from './standing.ts'
import { targetChange } from './target-change.ts'

/** What somebody asks a repair to do. */
export interface RepairChoice {
  /** `provider`, `refund:pi_1`; without it what the kind of finding suggests. */
  readonly choice?: string | undefined
  /** The state that the order is to be in: the choice `target`. */
  readonly to?: string | undefined
}

/** What a draft is made from. */
export interface DraftInput {
  readonly finding: FindingRow
  readonly answers: Answers
  readonly earlier: number
  readonly asked: RepairChoice
  readonly decisionId: bigint
  /** Whether it is carried out: the order is locked, and one that does not exist is inserted to hold its key. */
  readonly writes: boolean
}

/** What was chosen, and what it changes. */
interface Chosen {
  readonly name: ChoiceName
  readonly choice: string
  readonly change: OrderChange | null
  readonly refund: MadeRefund | null
}

/**
 * Makes the draft.
 *
 * @throws OrderHeld when somebody else holds the order
 * @throws NothingToDo where what was chosen changes nothing
 * @throws HookledgerError HKL_REPAIR_CHOICE, HKL_REPAIR_IMPOSSIBLE, HKL_CONFIG_UNKNOWN_NAME
 */
export async function makeDraft(
  context: RepairContext,
  tx: Executor,
  input: DraftInput,
): Promise<RepairDraft> {
  const { finding, answers, asked } = input
  const { plain } = choicesOf(finding.kind)
  const held = await orderAsItIs(context, tx, finding.orderId, input.writes)
  const payments = paymentCandidates(finding, answers.facts, held?.before ?? null)
  const restoring =
    plain === 'restore' && held !== null ? await restoringOf(context, tx, input, held) : null
  const about = {
    finding,
    workflow: held?.workflow ?? null,
    payments,
    canRefund: refundDestination(context, answers.source) !== null,
    saysProvider: restoring?.provided != null,
  }
  const offers = offersOf(about)
  const all = { context, tx, input, held, payments, offers, restoring }
  const typed = asked.choice ?? (asked.to === undefined ? undefined : 'target')
  if (asked.to !== undefined && typed !== 'target')
    throw new HookledgerError('HKL_REPAIR_CHOICE', `--to names a state: it cannot go with ${typed}`)
  const name = typed === undefined ? plainName(all) : checkedChoice(typed, offers, about).name
  requireTold(finding, name, held, await standingOf(context, tx, held))
  const chosen = await choose(
    all,
    name,
    typed === undefined ? null : checkedChoice(typed, offers).about,
  )
  const standing = await standingOf(context, tx, chosen.change)
  requireTold(finding, chosen.name, chosen.change, standing)
  return plannedDraft(context.installationId, {
    finding,
    answers,
    earlier: input.earlier,
    choice: chosen.choice,
    isRestore: chosen.name === 'restore',
    change: chosen.change,
    standing,
    refund: chosen.refund,
    decisionId: input.decisionId,
    choices: offers,
  })
}

/**
 * What is done where nobody chose. What its decisions say may take away what was paid for, where they went on
 * from what somebody had changed: then the provider's records say it, or a person does.
 *
 * @throws HookledgerError HKL_REPAIR_CHOICE where somebody must choose
 */
function plainName({ input, offers, restoring }: Choosing): ChoiceName {
  const { kind } = input.finding
  const { plain } = choicesOf(kind)
  if (plain === null)
    throw noChoice(`a finding of kind ${kind} can be ended in several ways`, offers)
  if (restoring === null || restoring.doubt === null) return plain
  if (restoring.provided !== null) return 'provider'
  throw noChoice(`${restoring.doubt}, ${restoring.unsaid}`, offers)
}

/** What the decisions of an order say; null for one that does not exist yet. */
async function standingOf(
  { db }: RepairContext,
  tx: Executor,
  change: OrderChange | null,
): Promise<Standing | null> {
  if (change === null || !change.before.stored) return null
  return readStanding(db.schema, tx, change.before.id, change.workflow)
}

/**
 * What is built on a row that somebody changed past its decisions would be wrong: that is repaired first.
 *
 * @throws HookledgerError HKL_REPAIR_IMPOSSIBLE
 */
function requireTold(
  { kind }: FindingRow,
  name: ChoiceName,
  change: OrderChange | null,
  standing: Standing | null,
): void {
  const decided = standing?.decided ?? null
  if (change === null || decided === null || decided === change.before.state) return
  if (name === 'target') return
  const { id, state } = change.before
  if (choicesOf(kind).plain === 'restore' && name !== 'keep') return
  // that the row is right is as good an answer as its state by name
  if (kind === 'tampered' && change.workflow.states.has(state)) return
  throw new HookledgerError(
    'HKL_REPAIR_IMPOSSIBLE',
    `order ${id} is ${state}, and its decisions lead to ${decided}: somebody changed its row; repair that first (its finding is of kind tampered), or name the state with --to`,
  )
}

interface Choosing {
  readonly context: RepairContext
  readonly tx: Executor
  readonly input: DraftInput
  readonly held: OrderChange | null
  readonly payments: readonly string[]
  readonly offers: readonly ChoiceOffer[]
  /** Of findings about an order that somebody changed. */
  readonly restoring: Restoring | null
}

async function choose(all: Choosing, name: ChoiceName, about: string | null): Promise<Chosen> {
  const { context, tx, input, held } = all
  switch (name) {
    case 'provider':
    case 'accept':
      if (all.restoring === null) return fromProvider(all, name)
      return { name, choice: name, change: all.restoring.provided, refund: null }
    case 'restore': {
      const order = requireOrder(held, input.finding)
      return { name, choice: name, change: all.restoring?.change ?? order, refund: null }
    }
    case 'target': {
      const { to } = input.asked
      if (to === undefined) throw noChoice('--to is missing: the state of the order', all.offers)
      const order = requireOrder(held, input.finding)
      const { finding, answers, decisionId } = input
      const change = await targetChange(context, tx, order, { finding, answers, to, decisionId })
      return { name, choice: `target:${to}`, change, refund: null }
    }
    case 'refund': {
      const payment = chosenAmong(all, 'refund', about, all.payments)
      const refund = await makeRefund(context, tx, input.finding, input.answers, payment)
      return { name, choice: `refund:${payment}`, change: held, refund }
    }
    case 'compensate': {
      const order = requireOrder(held, input.finding)
      const type = chosenAmong(all, 'compensate', about, [...order.workflow.effects.keys()])
      const change = compensation(order, input.finding, type, moneyOf(all, order.before))
      return { name, choice: `compensate:${type}`, change, refund: null }
    }
    case 'keep':
      return { name, choice: 'keep', change: held, refund: null }
  }
}

async function fromProvider(all: Choosing, name: 'provider' | 'accept'): Promise<Chosen> {
  const { context, tx, input, offers } = all
  const { finding, answers, decisionId, writes } = input
  if (answers.source?.records == null) {
    throw noChoice(
      finding.source === null
        ? 'nothing says which source this is of'
        : `source "${finding.source.provider}:${finding.source.account}" cannot be asked here (is its key, or a signing secret, not set?)`,
      offers.filter(({ choice }) => choice !== 'provider' && choice !== 'accept'),
    )
  }
  const lenient = name === 'accept'
  const folded = await providerChange(context, tx, {
    finding,
    answers,
    decisionId,
    lenient,
    writes,
  })
  if (folded.change !== null) return { name, choice: name, change: folded.change, refund: null }
  const otherwise = noChoice(
    ["what the provider's records say changes nothing here", ...folded.notes].join('; '),
    offers.filter(({ choice }) => choice !== name),
  )
  throw lenient ? otherwise : new NothingToDo(folded.isRecorded, otherwise)
}

function requireOrder(held: OrderChange | null, finding: FindingRow): OrderChange {
  if (held !== null) return held
  throw new HookledgerError(
    'HKL_REPAIR_IMPOSSIBLE',
    finding.orderId === null
      ? 'this finding is about no order'
      : `order ${finding.orderId} does not exist`,
  )
}

function chosenAmong(
  { offers }: Choosing,
  what: string,
  about: string | null,
  possible: readonly string[],
): string {
  if (about !== null && possible.includes(about)) return about
  const [first] = possible
  // the payment that came last; of several effects nobody can guess the one that is meant
  if (about === null && first !== undefined && (what === 'refund' || possible.length === 1))
    return first
  if (about === null && possible.includes('compensation')) return 'compensation'
  throw noChoice(
    about === null ? `${what}: which one?` : `${what}: there is no "${about.slice(0, 80)}" here`,
    offers.filter(({ choice }) => choice.startsWith(what)),
  )
}

/** The payment that a compensation is about, as the provider has it, else as it is recorded. */
function moneyOf(
  { input, payments }: Choosing,
  ledger: OrderLedger,
): { readonly id: string; readonly amount: bigint; readonly currency: string } | null {
  const [id] = payments
  if (id === undefined) return null
  const fact = input.answers.facts.find(
    (each): each is PaymentFact => each.fact === 'payment' && each.id === id,
  )
  return fact ?? ledger.payments.find((each) => each.id === id) ?? null
}
