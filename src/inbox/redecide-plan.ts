/**
 * One event decided by the present code under its order's lock, as a plan that says what would change.
 * What would do something twice, or nothing at all, is refused.
 */
import { HookledgerError, PermanentError } from '../core/errors.ts'
import type { Executor } from '../postgres/executor.ts'
import { printable } from '../workflow/checked-text.ts'
import { findingKinds } from '../workflow/finding-kinds.ts'
import type { InboxEvent } from '../workflow/event.ts'
import type { OrderLedger } from '../workflow/order.ts'
import type { Outcome } from '../workflow/outcome.ts'
import { resolveEvent, type Claim, type Resolved } from '../workflow/resolve-event.ts'
import { looks, type Look } from './answers.ts'
import { askAnew, withInputs } from './ask-anew.ts'
import { isBeyond } from './batch-judgements.ts'
import { foldBatch, namesOf, settleAll, snapshotOf, type BoundNames } from './plan-batch.ts'
import { findingsOfEvent, type RedecisionTarget } from './redecide-target.ts'
import type { WorkContext } from './work-batch.ts'

/** What deciding anew would change; the keys are what `--json` prints, and what is stored. */
export interface RedecisionPlan {
  readonly event: { readonly id: string; readonly type: string; readonly source: string }
  readonly supersedes: {
    readonly decision_id: string
    readonly kind: string
    readonly reason: string
  }
  /** What the present code decides, and why. */
  readonly kind: string
  readonly because: string
  readonly workflow_version: string | null
  readonly order: {
    readonly id: string
    readonly workflow: string | null
    readonly from: string | null
    readonly to: string | null
    /** The order's version that this was decided on. */
    readonly version: string
  }
  readonly payment: {
    readonly id: string
    readonly amount: bigint
    readonly currency: string
    readonly applied: boolean
  } | null
  readonly effects: readonly {
    readonly type: string
    readonly reference: string
    readonly amount: bigint | null
    readonly currency: string | null
  }[]
  readonly granted: readonly string[]
  readonly revoked: readonly string[]
  readonly operations: readonly {
    readonly operation_id: string
    readonly destination: string
    readonly name: string
  }[]
  /** Kinds of finding that it makes, and ids of findings that it closes. */
  readonly findings: readonly string[]
  readonly closes: readonly string[]
}

/** The plan, with what writing it takes. */
export interface DecidedAnew {
  readonly plan: RedecisionPlan
  readonly outcome: Outcome
  readonly bound: BoundNames
  readonly before: ReadonlyMap<string, OrderLedger>
  readonly after: ReadonlyMap<string, OrderLedger>
  /** What the event looks at, where it is decided from an answer of its provider. */
  readonly looks: ReadonlyMap<bigint, Look>
}

/** The order is in somebody's hands: a moment later it may not be. */
export class OrderHeld extends Error {}

/**
 * Where the present code decides the event from an answer of its provider: asks anew, under the order's lock, and
 * answers the claim that waits then. Null: nothing is asked.
 *
 * @throws OrderHeld; HookledgerError HKL_REPAIR_IMPOSSIBLE saying why it is not to be decided anew
 */
export async function askingClaim(
  ctx: WorkContext,
  tx: Executor,
  { event }: RedecisionTarget,
): Promise<Claim | null> {
  const { claim } = await claimOf(ctx, tx, event)
  if (!looks(claim)) return null
  const { held } = await ctx.ledger.lockOrders(tx, [claim.orderId], [])
  if (held.has(claim.orderId)) throw new OrderHeld()
  try {
    await askAnew(ctx, tx, claim)
  } catch (error) {
    if (error instanceof PermanentError)
      throw impossible(`the present code fails on it: ${messageOf(error)}`)
    throw error
  }
  return claim
}

/**
 * Decides under the lock of the order, which `tx` holds from here on.
 *
 * @throws OrderHeld; HookledgerError HKL_REPAIR_IMPOSSIBLE saying why it is not to be decided anew
 */
export async function decideAnew(
  ctx: WorkContext,
  tx: Executor,
  target: RedecisionTarget,
): Promise<DecidedAnew> {
  const { event } = target
  const { claim, bound, names } = await claimOf(ctx, tx, event)
  const { workflow } = claim.candidate
  const { ledgers, held } = await ctx.ledger.lockOrders(
    tx,
    [claim.orderId],
    event.accountAllowed
      ? [{ id: claim.orderId, workflow: workflow.name, initial: workflow.initial }]
      : [],
  )
  if (held.has(claim.orderId)) throw new OrderHeld()
  const order = ledgers.get(claim.orderId)
  if (isBeyond(workflow, order)) {
    throw impossible(
      `order ${claim.orderId} is in state ${order?.state ?? ''}, which this version of workflow ${workflow.name} does not know: use the newest`,
    )
  }
  const before = new Map([...ledgers].map(([id, ledger]) => [id, snapshotOf(ledger)]))
  const after = new Map(ledgers)
  const inputs = await withInputs(ctx, tx, claim)
  if ('error' in inputs)
    throw impossible(`the present code fails on it: ${messageOf(inputs.error)}`)
  const { ready, looks: looked } = inputs
  const outcome = await fold(ctx, tx, ready, after, names)
  const concerned = await aboutEvent(ctx, tx, target)
  refuse(target, outcome, concerned.isRepaired)
  const made = new Set(
    outcome.findings.map((each) => ctx.ledger.findingId(each.kind, sourceText(event), each.about)),
  )
  const closes = concerned.open.filter((id) => !made.has(id))
  const plan = planOf(target, outcome, before, closes)
  return { plan, outcome, bound, before, after, looks: looked }
}

async function claimOf(
  ctx: WorkContext,
  tx: Executor,
  event: InboxEvent,
): Promise<{ readonly claim: Claim; readonly bound: BoundNames; readonly names: BoundNames }> {
  const { ledger, registry, environment } = ctx
  const first = resolveEvent(event, { registry, environment, mayIgnore: true })
  const bound = await ledger.lookupNames(tx, namesOf([first]))
  const { resolved, names } = settleAll([first], bound, (name) => ledger.nameKey(name))
  const [only] = resolved
  if (only?.kind !== 'claim') throw impossible(unclaimedText(only))
  return { claim: only, bound, names }
}

function unclaimedText(resolved: Exclude<Resolved, Claim> | undefined): string {
  switch (resolved?.kind) {
    case 'waiting':
      return 'no name that it carries leads to an order: under the present code it would wait'
    case 'plain':
      return 'a plain handler takes it under the present code, and those are not run a second time'
    case 'failed':
      return `the present code fails on it: ${messageOf(resolved.error)}`
    case 'ignored':
    case 'dead':
    case 'contradicted':
      return `under the present code it would be ${resolved.kind}: ${resolved.reason}`
    default:
      return 'nothing handles it'
  }
}

async function fold(
  ctx: WorkContext,
  tx: Executor,
  claim: Claim,
  ledgers: Map<string, OrderLedger>,
  names: BoundNames,
): Promise<Outcome> {
  const { ledger, outbox } = ctx
  const [row] = await tx.query<{ id: string }>({
    text: `select nextval('${ctx.db.schema}ledger_decisions_decision_id_seq'::regclass)::text as id`,
  })
  const input = {
    claims: [claim],
    names,
    nameKey: (name: Parameters<typeof ledger.nameKey>[0]) => ledger.nameKey(name),
    decisionId: () => BigInt(row?.id ?? 0),
    derive: (orderId: string, name: string) => ledger.derive(orderId, name),
    outbox,
  }
  // a first fold on a copy tells which payment is named; its owner decides the second
  const copies = new Map([...ledgers].map(([id, order]) => [id, snapshotOf(order)]))
  const trial = foldBatch({ ...input, ledgers: copies, payers: new Map() })
  const named = trial.outcomes.flatMap(({ event, payment }) =>
    payment === null ? [] : [{ sourceId: event.sourceId, id: payment.id }],
  )
  const payers = await ledger.payers(tx, named)
  const { outcomes, failures, asks } = foldBatch({ ...input, ledgers, payers })
  const [outcome] = outcomes
  if (outcome !== undefined) return outcome
  if (asks.length > 0) {
    throw impossible(
      `what the provider answered fits no more: order ${claim.orderId} changed meanwhile; try again`,
    )
  }
  throw impossible(`the present code fails on it: ${messageOf(failures[0]?.error)}`)
}

/** What would do something twice, wait, or do nothing that is not recorded already. */
function refuse(target: RedecisionTarget, outcome: Outcome, isRepaired: boolean): void {
  const { supersedes } = target
  if (isRepaired) {
    throw impossible(
      'a finding about it was repaired: deciding it anew could do the same a second time',
    )
  }
  if (outcome.kind === 'deferred')
    throw impossible(`under the present code it ${outcome.reason}: it cannot be decided now`)
  if (outcome.kind === 'absorbed')
    throw impossible(`what the present code decides is done: ${outcome.reason}`)
  if (outcome.findings.some(({ kind }) => kind === 'paid_twice')) {
    throw impossible(
      `order ${outcome.orderId ?? ''} was fulfilled for another payment since: this one would be taken for the same a second time; see "hookledger findings list"`,
    )
  }
  if (outcome.kind === supersedes.kind && outcome.reason === supersedes.reason)
    throw impossible(`the present code decides the same: ${outcome.kind}, ${outcome.reason}`)
}

/** The open findings about the event, and whether one of its findings was ever repaired. */
async function aboutEvent(
  { ledger, db }: WorkContext,
  tx: Executor,
  { event, supersedes }: RedecisionTarget,
): Promise<{ readonly open: readonly string[]; readonly isRepaired: boolean }> {
  const ids = findingKinds.map((kind) =>
    ledger.findingId(kind, sourceText(event), `event:${event.key}`),
  )
  const found = await findingsOfEvent(tx, db.schema, {
    ids,
    orderId: supersedes.decision.order_id,
    eventKey: event.key,
  })
  return {
    open: found.filter((each) => each.isOpen).map((each) => each.id),
    isRepaired: found.some((each) => each.isRepaired),
  }
}

/** A source as findings have it. */
export function sourceText({ source }: InboxEvent): string {
  return `${source.provider}:${source.account}:${source.environment}`
}

function planOf(
  { event, source, supersedes }: RedecisionTarget,
  outcome: Outcome,
  before: ReadonlyMap<string, OrderLedger>,
  closes: readonly string[],
): RedecisionPlan {
  const { payment } = outcome
  return {
    event: { id: event.eventId, type: event.eventType, source },
    supersedes: {
      decision_id: supersedes.decision.decision_id,
      kind: supersedes.kind,
      reason: supersedes.reason,
    },
    kind: outcome.kind,
    because: outcome.reason,
    workflow_version: outcome.workflowVersion,
    order: {
      id: outcome.orderId ?? '',
      workflow: outcome.workflow,
      from: outcome.from,
      to: outcome.to,
      version: (before.get(outcome.orderId ?? '')?.version ?? 0n).toString(),
    },
    payment: payment === null ? null : { ...payment },
    effects: outcome.effects.map(({ type, reference, amount, currency }) => ({
      type,
      reference,
      amount,
      currency,
    })),
    granted: outcome.granted,
    revoked: outcome.revoked,
    operations: outcome.operations.map(({ operationId, destination, name }) => ({
      operation_id: operationId,
      destination,
      name,
    })),
    findings: outcome.findings.map(({ kind }) => kind),
    closes,
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? printable(error.message) : 'an error that cannot be told'
}

function impossible(why: string): HookledgerError {
  return new HookledgerError('HKL_REPAIR_IMPOSSIBLE', `not decided anew: ${why}`)
}
