/**
 * The pure part of a batch: which event belongs to which order, and what every event's outcome is.
 * It touches no database; what it needs of one is given to it, read under the orders' locks.
 */
import { foldOrder, type FoldFailure } from '../workflow/fold.ts'
import type { FoldContext } from '../workflow/fold-context.ts'
import type { InboxEvent } from '../workflow/event.ts'
import { unopenedOrder } from '../workflow/opening.ts'
import type { Name, OrderLedger } from '../workflow/order.ts'
import type { OutboxPort } from '../workflow/outbox-port.ts'
import type { Outcome } from '../workflow/outcome.ts'
import {
  settleWaiting,
  type Claim,
  type NamedOrder,
  type Resolved,
} from '../workflow/resolve-event.ts'
import type { Workflow } from '../workflow/workflow.ts'
import { looks } from './answers.ts'
import type { SourceName } from './ledger-port.ts'

/** Names bound to orders, by key. */
export type BoundNames = ReadonlyMap<string, NamedOrder>

/** The names whose orders must be looked up before events can be settled. */
export function namesOf(resolved: readonly Resolved[]): SourceName[] {
  return resolved.flatMap((each) => {
    const names =
      each.kind === 'claim'
        ? each.learned
        : each.kind === 'waiting'
          ? each.waits.flatMap((wait) => [...wait.names, ...wait.learned])
          : []
    const own = names.map((name) => ({
      sourceId: each.event.sourceId,
      kind: name.kind,
      value: name.value,
    }))
    // whether an order exists that only the app may open decides whether its events can teach names
    return each.kind === 'claim' && own.length > 0 && each.candidate.workflow.opens === 'app'
      ? [...own, idName(each.orderId)]
      : own
  })
}

/** An order's own id stands among the names once the app has opened it. */
function idName(orderId: string): SourceName {
  return { sourceId: 0, kind: 'order', value: orderId }
}

/**
 * Settles waiting events by names that are bound already or that an event of this very batch brings,
 * whichever of the two arrived first. One that may have to ask its provider first settles nobody else: what it
 * teaches is written once it is decided, and wakes who waits for it then.
 */
export function settleAll(
  resolved: readonly Resolved[],
  bound: BoundNames,
  key: (name: SourceName) => string,
): { readonly resolved: readonly Resolved[]; readonly names: BoundNames } {
  const names = new Map(bound)
  let current = resolved
  for (;;) {
    for (const each of current)
      if (each.kind === 'claim' && !looks(each) && canTeach(each, bound, key))
        teach(each, names, key)
    const lookup = (sourceId: number, name: Name): NamedOrder | null =>
      names.get(key({ sourceId, kind: name.kind, value: name.value })) ?? null
    const next = current.map((each) =>
      each.kind === 'waiting' ? settleWaiting(each, lookup) : each,
    )
    const settled = next.some((each, index) => each !== current[index])
    current = next
    if (settled) continue
    for (const each of current)
      if (each.kind === 'claim' && looks(each) && canTeach(each, bound, key))
        teach(each, names, key)
    return { resolved: current, names }
  }
}

/** An event binds names only to an order that exists, or that it may open itself. */
function canTeach(claim: Claim, bound: BoundNames, key: (name: SourceName) => string): boolean {
  const { workflow } = claim.candidate
  return (
    claim.event.accountAllowed &&
    (workflow.opens === 'event' || bound.has(key(idName(claim.orderId))))
  )
}

function teach(
  claim: Claim,
  names: Map<string, NamedOrder>,
  key: (name: SourceName) => string,
): void {
  for (const name of claim.learned) {
    const at = key({ sourceId: claim.event.sourceId, kind: name.kind, value: name.value })
    if (!names.has(at))
      names.set(at, { orderId: claim.orderId, workflow: claim.candidate.workflow.name })
  }
}

/** What folding a batch needs. */
export interface FoldBatchInput {
  readonly claims: readonly Claim[]
  /** Changed in place; orders that do not exist are absent. */
  readonly ledgers: Map<string, OrderLedger>
  readonly names: BoundNames
  readonly nameKey: (name: SourceName) => string
  readonly decisionId: (event: InboxEvent) => bigint
  /** Payments known to be recorded for orders outside the batch. */
  readonly payers: ReadonlyMap<string, string>
  readonly derive: (orderId: string, name: string) => string
  readonly outbox: OutboxPort
}

/** Folds every order of a batch, in the order of its first event. */
export function foldBatch(input: FoldBatchInput): {
  readonly outcomes: readonly Outcome[]
  readonly failures: readonly FoldFailure[]
  readonly asks: readonly Claim[]
} {
  const outcomes: Outcome[] = []
  const failures: FoldFailure[] = []
  const asks: Claim[] = []
  const payers = new Map(input.payers)
  const context: FoldContext = {
    allocate: input.decisionId,
    derive: input.derive,
    outbox: input.outbox,
    ownerOf: (sourceId, name) =>
      input.names.get(input.nameKey({ sourceId, kind: name.kind, value: name.value }))?.orderId ??
      null,
    payerOf: (sourceId, paymentId) => payers.get(`${sourceId}\n${paymentId}`) ?? null,
  }
  for (const [orderId, claims] of groupByOrder(input.claims)) {
    const [first] = claims
    if (first === undefined) continue
    // an order that does not exist and that no event may open: its events wait for the app to open it
    const ledger = input.ledgers.get(orderId) ?? unopenedOrder(orderId, first.candidate.workflow)
    for (const { candidate } of claims)
      if (candidate.workflow.name === ledger.workflow) adoptRenames(ledger, candidate.workflow)
    const result = foldOrder(ledger, claims, context)
    outcomes.push(...result.outcomes)
    failures.push(...result.failures)
    asks.push(...result.asks)
    for (const payment of ledger.payments)
      payers.set(`${payment.sourceId}\n${payment.id}`, ledger.id)
  }
  return { outcomes, failures, asks }
}

/** States and effects recorded under a name that the workflow has renamed since are read under the new one. */
function adoptRenames(ledger: OrderLedger, workflow: Workflow): void {
  if (ledger.workflow !== workflow.name) return
  if (!workflow.states.has(ledger.state)) {
    for (const [name, options] of workflow.states)
      if (options.renamedFrom === ledger.state) ledger.state = name
  }
  const renamed = new Map<string, string>()
  for (const [name, { renamedFrom }] of workflow.effects)
    if (renamedFrom !== undefined) renamed.set(renamedFrom, name)
  if (renamed.size === 0) return
  ledger.operations = ledger.operations.map((row) => {
    const type = renamed.get(row.effect.type)
    return type === undefined ? row : { ...row, effect: { ...row.effect, type } }
  })
  ledger.effects = ledger.effects.map((row) => {
    const [base = '', suffix] = row.type.split(':')
    const name = renamed.get(base)
    return name === undefined
      ? row
      : { ...row, type: suffix === undefined ? name : `${name}:${suffix}` }
  })
}

function groupByOrder(claims: readonly Claim[]): Map<string, Claim[]> {
  const groups = new Map<string, Claim[]>()
  for (const claim of claims) {
    const group = groups.get(claim.orderId)
    if (group === undefined) groups.set(claim.orderId, [claim])
    else group.push(claim)
  }
  return groups
}

/** A copy that folding does not change: what the ledger held before the batch. */
export function snapshotOf(ledger: OrderLedger): OrderLedger {
  return {
    ...ledger,
    payments: [...ledger.payments],
    effects: [...ledger.effects],
    entitlements: [...ledger.entitlements],
    operations: [...ledger.operations],
  }
}
