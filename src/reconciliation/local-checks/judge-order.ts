/**
 * One order against its own decisions, pure: whether somebody changed its rows past the ledger. Where the
 * decisions do not say for certain (they have no total order), nothing is claimed.
 */
import { formatMoney } from '../../core/money.ts'
import type { OrderLedger } from '../../workflow/order.ts'
import { grants, type Workflow } from '../../workflow/workflow.ts'
import { decidedState } from '../repair/decided.ts'
import type { OrderDecision, StatedFigures } from './order-decisions.ts'

/** What is wrong with an order: each text is one thing that differs. */
export interface OrderFaults {
  /** Where decisions lead to, if that is another state than the order's. */
  readonly decided: string | null
  readonly tampered: readonly string[]
  /** Entitlements that are active although the state does not entitle. */
  readonly entitled: readonly string[]
}

/** Kinds of decisions whose evidence tells every change of what is active. */
const telling: ReadonlySet<string> = new Set([
  'fulfilled',
  'moved',
  'reversed',
  'skipped',
  'absorbed',
  'contradicted',
  'deferred',
  'opened',
  'repaired',
  'redecided',
])

/** Judges an order. */
export function judgeOrder(
  order: OrderLedger,
  decisions: readonly OrderDecision[],
  workflow: Workflow,
): OrderFaults {
  const state = presentName(workflow, order.state)
  const moves = decisions.map((each) => ({
    ...each,
    from: presentName(workflow, each.from),
    to: presentName(workflow, each.to),
  }))
  const decided = stateOf(moves, workflow)
  // entitlements of an order that was moved by hand are what its true state made of them
  if (decided !== null && decided !== state)
    return { decided, tampered: [`state is ${order.state}, decided was ${decided}`], entitled: [] }
  if (moves.every(({ to }) => to === null))
    return { decided: null, tampered: ['no decision says why it is there'], entitled: [] }
  const isEntitling = grants(workflow, state)
  const entitled = order.entitlements
    .filter(({ active }) => active && !isEntitling)
    .map(({ subject, entitlement }) => `${subject} ${entitlement}`)
  const tampered = [
    ...openingFaults(order, moves),
    ...entitlementFaults(order, moves, isEntitling),
    ...figureFaults(order, moves),
  ]
  return { decided: null, tampered, entitled }
}

/**
 * Where decisions lead to. Opening an order names a state and moves nothing: the first one, or the one that
 * the order was in when the app came after its events.
 */
function stateOf(decisions: readonly OrderDecision[], workflow: Workflow): string | null {
  const walked = decisions.filter(({ kind, to }) => kind !== 'opened' && to !== null)
  if (walked.length > 0) return decidedState(walked, workflow.initial)
  return decisions.some(({ to }) => to !== null) ? workflow.initial : null
}

/** A state that was recorded under a name that the workflow has renamed since. */
export function presentName<S extends string | null>(workflow: Workflow, state: S): S | string {
  if (state === null || workflow.states.has(state)) return state
  for (const [name, { renamedFrom }] of workflow.states) if (renamedFrom === state) return name
  return state
}

/** What the app opened an order with never changes after, where nothing was there before. */
function openingFaults(order: OrderLedger, decisions: readonly OrderDecision[]): string[] {
  const first = decisions.find(({ to }) => to !== null)
  if (first?.opening == null) return []
  const { subject, expected } = first.opening
  const faults: string[] = []
  if (subject !== null && subject !== order.subject)
    faults.push(`subject is ${order.subject ?? 'missing'}, opened for ${subject}`)
  const is = order.expected === null ? null : formatMoney(order.expected)
  if (expected !== null && expected !== is)
    faults.push(`${is ?? 'nothing'} is expected, opened with ${expected}`)
  return faults
}

function entitlementFaults(
  order: OrderLedger,
  decisions: readonly OrderDecision[],
  isEntitling: boolean,
): string[] {
  if (!isEntitling) return []
  const faults: string[] = []
  const net = netGrants(decisions)
  const there = new Set<string>()
  for (const { subject, entitlement, active, stated } of order.entitlements) {
    const pair = `${subject} ${entitlement}`
    there.add(pair)
    const granted = net?.get(pair) ?? 0
    if (active ? net !== null && granted < 1 : stated || granted > 0)
      faults.push(active ? `${pair} is active, no decision grants it` : `${pair} is not active`)
  }
  for (const [pair, granted] of net ?? [])
    if (granted > 0 && !there.has(pair)) faults.push(`${pair} is gone`)
  return faults
}

/** How often each pair was granted more than revoked; null where not every decision tells. */
function netGrants(decisions: readonly OrderDecision[]): ReadonlyMap<string, number> | null {
  if (!decisions.every(({ kind }) => telling.has(kind))) return null
  const net = new Map<string, number>()
  for (const { kind, granted, revoked } of decisions) {
    if (kind === 'contradicted') continue
    // what storing may have changed in a text is not compared
    if ([...granted, ...revoked].some((pair) => pair.includes('\\'))) return null
    for (const pair of granted) net.set(pair, (net.get(pair) ?? 0) + 1)
    for (const pair of revoked) net.set(pair, (net.get(pair) ?? 0) - 1)
  }
  return net
}

/** How much and until when must be something that a decision stated; one for ever where none did. */
function figureFaults(order: OrderLedger, decisions: readonly OrderDecision[]): string[] {
  if (!decisions.every(({ kind }) => telling.has(kind))) return []
  return order.entitlements.flatMap(({ subject, entitlement, quantity, validUntil }) => {
    const pair = `${subject} ${entitlement}`
    const until = validUntil?.toISOString() ?? null
    const stated = decisions.flatMap((each): StatedFigures[] => {
      const figures = Object.hasOwn(each.stated, pair) ? each.stated[pair] : undefined
      return figures === undefined ? [] : [figures]
    })
    const fits = [{ quantity: 1, valid_until: null }, ...stated].some(
      (each) => each.quantity === quantity && each.valid_until === until,
    )
    if (fits) return []
    return [
      `${pair} is ${quantity}${until === null ? '' : ` until ${until}`}, as no decision stated`,
    ]
  })
}
