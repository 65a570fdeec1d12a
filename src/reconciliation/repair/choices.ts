/** What can be done about each kind of finding, and what is done where nobody says otherwise. */
import { HookledgerError } from '../../core/errors.ts'
import { nearest } from '../../core/nearest.ts'
import type { Workflow } from '../../workflow/workflow.ts'
import type { FindingRow } from './finding.ts'
import { readChoice, type ChoiceName, type ChoiceOffer } from './plan.ts'

interface KindChoices {
  /** Done without a choice; null: somebody must choose. */
  readonly plain: 'provider' | 'restore' | null
  readonly others: readonly ChoiceName[]
}

const money: readonly ChoiceName[] = ['accept', 'refund', 'target', 'keep']
const facts: KindChoices = { plain: 'provider', others: ['accept', 'target', 'keep'] }
const twice: KindChoices = { plain: null, others: ['refund', 'compensate', 'target', 'keep'] }

const byKind: Readonly<Record<string, KindChoices>> = {
  event_missing: facts,
  paid_there: { plain: 'provider', others: ['accept', 'refund', 'target', 'keep'] },
  refunded_there: facts,
  dispute_unseen: facts,
  order_stuck: facts,
  paid_here: { plain: 'provider', others: ['target', 'keep'] },
  amount_differs: { plain: 'provider', others: ['refund', 'compensate', 'target', 'keep'] },
  over_refunded: { plain: 'provider', others: ['compensate', 'target', 'keep'] },
  payment_without_order: { plain: 'provider', others: ['accept', 'refund', 'keep'] },
  paid_twice: twice,
  fulfilled_twice: twice,
  tampered: { plain: 'restore', others: ['target', 'keep'] },
  entitlement_without_state: { plain: 'restore', others: ['target', 'keep'] },
  effect_without_event: { plain: null, others: ['compensate', 'keep'] },
  underpaid: { plain: null, others: money },
  overpaid: { plain: null, others: ['refund', 'target', 'keep'] },
  currency_differs: { plain: null, others: money },
  not_accepted: { plain: null, others: money },
  transition_refused: { plain: null, others: money },
  contradicted: { plain: null, others: money },
}

/** A workflow's own kinds, and contradictions about whose event it is. */
const otherwise: KindChoices = { plain: null, others: ['refund', 'compensate', 'target', 'keep'] }

/** Kinds that end in another way, with what to do. */
const elsewhere: Readonly<Record<string, string>> = {
  wait_overdue: 'what it waits for has to come: hookledger explain, then hookledger replay',
  dead_event: 'mend what made it fail, then: hookledger replay',
  operation_dead: 'hookledger outbox retry, or discard',
  operation_uncertain: 'hookledger outbox resolve, or retry',
  source_silent: 'look at the provider and its endpoint; it closes with the next delivery',
  endpoint_unfit: 'change the endpoint at the provider; it closes when the endpoint fits',
  mirror_differs: 'a look ends it: hookledger reconcile, and it closes when both say the same',
  fetch_overdue: 'see why the provider does not answer; it closes with the next answer',
  api_version_differs:
    "set the source's apiVersion, or the endpoint's at the provider, then: hookledger findings dismiss",
  unknown_status: 'update Hookledger; it closes with the next look that knows the status',
  unknown_price: 'give the price a plan; it closes with the next look',
  beyond_reach: "compare by the provider's own reports, then: hookledger findings dismiss",
}

/** Kinds that a pass may repair by itself: what is missing here is recorded as the workflow decides it. */
export const repairableByRule: readonly string[] = [
  'event_missing',
  'paid_there',
  'refunded_there',
  'dispute_unseen',
  'order_stuck',
]

/** @throws HookledgerError HKL_REPAIR_IMPOSSIBLE for a kind that ends in another way */
export function choicesOf(kind: string): KindChoices {
  const hint = elsewhere[kind]
  if (hint === undefined) return byKind[kind] ?? otherwise
  throw new HookledgerError(
    'HKL_REPAIR_IMPOSSIBLE',
    `a finding of kind ${kind} is not ended by a repair: ${hint}`,
  )
}

/** What offers are made of. */
export interface OfferContext {
  readonly finding: FindingRow
  readonly workflow: Workflow | null
  /** The ids of payments that could be given back. */
  readonly payments: readonly string[]
  /** Whether the source says how, and a destination can do it. */
  readonly canRefund: boolean
  /** Whether the provider's records say what an order is whose own decisions may not. */
  readonly saysProvider?: boolean | undefined
}

/** Every choice that there is for a finding, as it would be typed. */
export function offersOf(offers: OfferContext): ChoiceOffer[] {
  const { plain, others } = choicesOf(offers.finding.kind)
  const offered: ChoiceOffer[] = []
  if (plain === 'provider')
    offered.push({ choice: 'provider', does: "records what the provider's records say" })
  if (plain === 'restore' && offers.saysProvider === true)
    offered.push({ choice: 'provider', does: "makes the order what the provider's records say" })
  if (plain === 'restore')
    offered.push({ choice: 'restore', does: 'makes the order what its decisions say' })
  return [...offered, ...others.flatMap((name) => offerOf(name, offers))]
}

function offerOf(name: ChoiceName, offers: OfferContext): ChoiceOffer[] {
  const { finding, workflow, payments, canRefund } = offers
  switch (name) {
    case 'accept':
      return finding.source === null
        ? []
        : [
            {
              choice: 'accept',
              does: "records the provider's records although the workflow's checks refuse them",
            },
          ]
    case 'refund':
      return canRefund
        ? payments.map((id) => ({
            choice: `refund:${id}`,
            does: `gives payment ${id} back, by an operation of the outbox`,
          }))
        : []
    case 'compensate':
      return compensating(workflow).map((type) => ({
        choice: `compensate:${type}`,
        does: `records effect ${type} once more, under this finding; its apply runs`,
      }))
    case 'target':
      return workflow === null || finding.orderId === null
        ? []
        : [{ choice: 'target', does: `moves the order where --to says: ${statesOf(workflow)}` }]
    case 'keep':
      return [{ choice: 'keep', does: 'changes nothing, and says that this is as it should be' }]
    default:
      return []
  }
}

function statesOf(workflow: Workflow): string {
  return [...workflow.states.keys()].join(', ')
}

function compensating(workflow: Workflow | null): string[] {
  return workflow === null ? [] : [...workflow.effects.keys()]
}

/**
 * The choice that was typed, held to what is offered; `from` is what the offers were made of.
 *
 * @throws HookledgerError HKL_REPAIR_CHOICE listing what can be chosen
 */
export function checkedChoice(
  typed: string,
  offered: readonly ChoiceOffer[],
  from?: OfferContext,
): { readonly name: ChoiceName; readonly about: string | null } {
  const { name, about } = readChoice(typed)
  const fitting = offered.filter(
    ({ choice }) => choice === typed || readChoice(choice).name === name,
  )
  const exact = offered.some(({ choice }) => choice === typed)
  if (exact || (about === null && fitting.length > 0)) return { name: name as ChoiceName, about }
  const because = from === undefined ? null : whyNot(name, from)
  if (because !== null && fitting.length === 0)
    throw noChoice(`"${typed.slice(0, 80)}" cannot be chosen here: ${because}`, offered)
  const near = nearest(
    typed,
    offered.map(({ choice }) => choice),
  )
  throw noChoice(
    `"${typed.slice(0, 80)}" cannot be chosen here${near === null ? '' : `, did you mean "${near}"?`}`,
    offered,
  )
}

/** Why a choice that there is otherwise is not offered; null for one that there never is. */
function whyNot(name: string, { finding, workflow, canRefund }: OfferContext): string | null {
  const { plain, others } = choicesOf(finding.kind)
  if (plain === 'restore' && name === 'provider')
    return "the provider's records do not say what the order is"
  if (name !== plain && !others.some((each) => each === name))
    return isChoice(name) ? `it does not end a finding of kind ${finding.kind}` : null
  switch (name) {
    case 'refund':
      return canRefund
        ? 'no payment is known that could be given back'
        : 'no destination gives payments of its source back: add one of its kind (stripeCalls() for Stripe), named as the source'
    case 'compensate':
      return workflow === null
        ? 'the finding is about no order'
        : `workflow ${workflow.name} declares no effect`
    case 'accept':
      return "the finding is about no provider's record"
    case 'target':
      return 'the finding is about no order'
    default:
      return null
  }
}

/** Every choice that there is for one kind or another. */
const choiceNames = ['provider', 'restore', 'accept', 'target', 'refund', 'compensate', 'keep']

function isChoice(name: string): boolean {
  return choiceNames.includes(name)
}

/** Somebody must choose: the message lists everything, `offers` have it one by one. */
export class ChoiceNeeded extends HookledgerError {
  readonly why: string
  readonly offers: readonly ChoiceOffer[]

  constructor(why: string, offers: readonly ChoiceOffer[]) {
    const list = offers.map(({ choice, does }) =>
      choice === 'target' ? `--to STATE ${does}` : `--choice ${choice} ${does}`,
    )
    super('HKL_REPAIR_CHOICE', list.length === 0 ? why : `${why}; choose: ${list.join(' | ')}`)
    this.why = why
    this.offers = offers
  }
}

/** The error to throw where somebody must choose. */
export function noChoice(why: string, offered: readonly ChoiceOffer[]): ChoiceNeeded {
  return new ChoiceNeeded(why, offered)
}
