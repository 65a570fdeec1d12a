/**
 * A fold in arrival order over the events of one order, in memory: each event sees what the one
 * before it changed; deferred ones are tried again at the end until nothing changes. Pure: the same
 * ledger and events give the same outcomes.
 */
import { PermanentError } from '../core/errors.ts'
import { printable } from './checked-text.ts'
import type { EffectView, FoldContext } from './fold-context.ts'
import { noOperations, viewEffects } from './fold-context.ts'
import { contradictionOutcome, deferredOutcome, plainOutcome, type At } from './fold-outcomes.ts'
import { finding } from './finding-kinds.ts'
import { judge } from './judge.ts'
import { appliedBefore, judgeMirror, withEvidence } from './judge-mirror.ts'
import type { Name, Order, OrderLedger } from './order.ts'
import { checkedDecision } from './checked-decision.ts'
import type { AnyDecision, Missing } from './decision.ts'
import { describeMissing } from './describe-missing.ts'
import type { Outcome } from './outcome.ts'
import type { Claim } from './resolve-event.ts'
import type { DecideInput } from './workflow.ts'

/** An event whose `decide` threw: it is tried again or ends dead; it changed nothing. */
export interface FoldFailure {
  readonly claim: Claim
  readonly error: unknown
}

/** What folding changed. */
export interface FoldResult {
  readonly outcomes: readonly Outcome[]
  readonly failures: readonly FoldFailure[]
  /** Events that need an answer of the provider which is not there, or no longer good: they changed nothing. */
  readonly asks: readonly Claim[]
}

/**
 * Decides the events of one order, changing `ledger` as it goes. Outcomes come in the order in which
 * they were decided, and so do their ids; what still waits is last.
 */
export function foldOrder(
  ledger: OrderLedger,
  claims: readonly Claim[],
  context: FoldContext,
): FoldResult {
  const failures: FoldFailure[] = []
  const asks: Claim[] = []
  const undone: Undone = { failures, asks }
  const [only] = claims
  if (only !== undefined && claims.length === 1) {
    const outcome = attempt(ledger, only, context, context.allocate(only.event), undone)
    return { outcomes: outcome === null ? [] : [outcome], failures, asks }
  }
  const decided: Outcome[] = []
  const deferred = new Map<Claim, Deferral>()
  const ids = new Map<Claim, bigint>()
  for (let waiting = claims; waiting.length > 0;) {
    for (const claim of waiting) {
      const id = ids.get(claim) ?? context.allocate(claim.event)
      ids.set(claim, id)
      const outcome = attempt(ledger, claim, context, id, undone)
      deferred.delete(claim)
      if (outcome?.kind === 'deferred') deferred.set(claim, { outcome, version: ledger.version })
      else if (outcome !== null) decided.push(outcome)
    }
    waiting = [...deferred].flatMap(([claim, { version }]) =>
      version === ledger.version ? [] : [claim],
    )
  }
  const waits = [...deferred.values()].map(({ outcome }) => outcome)
  return { outcomes: inOrder([...decided, ...waits], ledger), failures, asks }
}

/**
 * A deferral, and the version of the order that it was decided from, with what the event itself changed (it
 * may have opened the order): only what others change can end it.
 */
interface Deferral {
  readonly outcome: Outcome
  readonly version: bigint
}

/** Where events go that have no outcome. */
interface Undone {
  readonly failures: FoldFailure[]
  readonly asks: Claim[]
}

/** One try. An event that throws leaves no trace: not even the order that it would have opened. */
function attempt(
  ledger: OrderLedger,
  claim: Claim,
  context: FoldContext,
  decisionId: bigint,
  { failures, asks }: Undone,
): Outcome | null {
  const { stored, workflow, state, version, sourceId, provider, providerAccount } = ledger
  try {
    return decideOne(ledger, claim, context, decisionId)
  } catch (error) {
    if (error === needsAnswer) asks.push(claim)
    else failures.push({ claim, error })
    Object.assign(ledger, { stored, workflow, state, version, sourceId, provider, providerAccount })
    return null
  }
}

/** The same ids, dealt out in the order of deciding: an order's decisions read as one chain of states. */
function inOrder(outcomes: readonly Outcome[], ledger: OrderLedger): Outcome[] {
  if (
    outcomes.every(
      (each, index) => index === 0 || (outcomes[index - 1]?.decisionId ?? 0n) < each.decisionId,
    )
  ) {
    return [...outcomes]
  }
  const ids = outcomes.map((outcome) => outcome.decisionId).sort((a, b) => (a < b ? -1 : 1))
  const dealt = new Map(
    outcomes.map((outcome, index) => [outcome.decisionId, ids[index] ?? outcome.decisionId]),
  )
  ledger.entitlements = ledger.entitlements.map((row) => {
    const grantedBy = row.grantedBy === null ? undefined : dealt.get(row.grantedBy)
    return grantedBy === undefined || grantedBy === row.grantedBy ? row : { ...row, grantedBy }
  })
  return outcomes.map((outcome, index) => ({
    ...outcome,
    decisionId: ids[index] ?? outcome.decisionId,
  }))
}

function decideOne(
  ledger: OrderLedger,
  claim: Claim,
  context: FoldContext,
  decisionId: bigint,
): Outcome {
  const { event, candidate } = claim
  const { workflow } = candidate
  const at = { decisionId, claim, ledger }
  // an order that does not exist belongs to no workflow yet, whichever event named it first
  if (ledger.stored && ledger.workflow !== workflow.name) {
    const about = `event:${event.key}`
    return contradictionOutcome(at, `order ${ledger.id} belongs to workflow ${ledger.workflow}`, [
      finding('workflow_differs', about, {
        order: ledger.id,
        workflow: ledger.workflow,
        claimed_by: workflow.name,
      }),
    ])
  }
  const foreign = foreignAccount(ledger, claim)
  if (foreign !== null) {
    return contradictionOutcome(at, foreign, [
      finding('foreign_account', `event:${event.key}`, {
        order: ledger.id,
        account: event.source.account,
        order_account: ledger.providerAccount,
      }),
    ])
  }
  if (!ledger.stored && workflow.opens !== 'event') {
    return deferredOutcome(at, { description: `order ${ledger.id} to be opened` })
  }
  const stolen = nameOfOther(ledger, claim, context)
  if (stolen !== null) {
    return contradictionOutcome(at, `its ${stolen.name.kind} belongs to order ${stolen.owner}`, [
      finding('name_of_other_order', `event:${event.key}`, {
        order: ledger.id,
        name_kind: stolen.name.kind,
        name: stolen.name.value,
        other_order: stolen.owner,
      }),
    ])
  }
  const { version, stored } = ledger
  open(ledger, claim)
  return answer(ledger, claim, context, decisionId, stored ? version : null)
}

/** Binds the order to the account of its first event, and counts opening as a change. */
function open(ledger: OrderLedger, claim: Claim): void {
  if (!ledger.stored) {
    const { workflow } = claim.candidate
    Object.assign(ledger, { stored: true, workflow: workflow.name, state: workflow.initial })
    ledger.version += 1n
  }
  if (ledger.sourceId === null) {
    ledger.sourceId = claim.event.sourceId
    ledger.provider = claim.event.source.provider
    ledger.providerAccount = claim.event.source.account
    ledger.version += 1n
  }
}

function foreignAccount(ledger: OrderLedger, claim: Claim): string | null {
  const { event } = claim
  if (ledger.provider === event.source.provider) {
    return ledger.providerAccount === event.source.account
      ? null
      : `order ${ledger.id} belongs to account ${ledger.providerAccount}, the event to ${event.source.account}`
  }
  return event.accountAllowed
    ? null
    : `account ${event.source.account} is not allowed by source ${event.source.name}`
}

function nameOfOther(
  ledger: OrderLedger,
  claim: Claim,
  context: FoldContext,
): { readonly name: Name; readonly owner: string } | null {
  for (const name of claim.learned) {
    const owner = context.ownerOf(claim.event.sourceId, name)
    if (owner !== null && owner !== ledger.id) return { name, owner }
  }
  return null
}

function answer(
  ledger: OrderLedger,
  claim: Claim,
  context: FoldContext,
  decisionId: bigint,
  versionBefore: bigint | null,
): Outcome {
  const at = { decisionId, claim, ledger }
  const { handler } = claim.candidate
  const { mirror, gather } = claim.inputs ?? {}
  if (handler.mirror !== undefined) {
    if (mirror === undefined) throw needsAnswer
    const { kind, value } = mirror.object
    const outcome =
      mirror.number < mirror.applied ? appliedBefore(at, mirror) : decided(at, context)
    return withEvidence(outcome, `${kind} ${value}`, mirror)
  }
  if (handler.gather !== undefined) {
    // the order moved since it was read for the request: what was gathered for it may no longer fit
    if (gather === undefined || gather.orderVersion !== versionBefore) throw needsAnswer
    return withEvidence(decided(at, context), `event ${claim.event.eventId}`, gather)
  }
  return decided(at, context)
}

/** Thrown where an event cannot be decided before the provider has answered (again); one for all, it is no fault. */
const needsAnswer = new Error('the provider must be asked')

function decided(at: At, context: FoldContext): Outcome {
  const { claim, ledger, decisionId } = at
  const { workflow, handler } = claim.candidate
  const effects = viewEffects(ledger.effects, ledger.operations)
  const answered: unknown = handler.decide(inputOf(ledger, claim, context, effects) as never)
  const mirrors = handler.mirror !== undefined
  const { outbox } = context
  const { eventType } = claim.event
  const decision = checkedDecision(answered, workflow, { eventType, outbox, mirrors })
  switch (decision.kind) {
    case 'skip':
      return plainOutcome(at, 'skipped', decision.reason)
    case 'contradict':
      return contradictionOutcome(at, decision.reason, [
        finding('contradicted', `event:${claim.event.key}`, {
          order: ledger.id,
          reason: decision.reason,
          ...decision.figures,
        }),
      ])
    case 'defer':
      return deferral(at, decision)
    case 'mirror':
      return judgeMirror({ decisionId, claim, ledger, decision, context })
    default:
      return judge({ decisionId, claim, ledger, decision, context })
  }
}

function deferral(
  at: { readonly decisionId: bigint; readonly claim: Claim; readonly ledger: OrderLedger },
  decision: Extract<AnyDecision, { kind: 'defer' }>,
): Outcome {
  const missing = isList(decision.missing) ? decision.missing : [decision.missing]
  const names = missing.flatMap((each) => (each.kind === 'name' ? [each.name] : []))
  const customers = missing.flatMap((each) => (each.kind === 'customer' ? [each.id] : []))
  for (const id of customers) requireNamed(at.claim, id)
  const description = missing.map(describeMissing).join(' or ')
  return deferredOutcome(at, {
    description: decision.reason === undefined ? description : `${description}: ${decision.reason}`,
    names,
    customers,
    forMs: decision.forMs ?? null,
  })
}

/** Only the link of the customer that the handler names is read, so that nothing else could end such a wait. */
function requireNamed({ candidate, event, inputs }: Claim, id: string): void {
  const named = inputs?.customer
  if (named?.id === id && named.subject === null) return
  const where = `workflow ${candidate.workflow.name}, ${printable(event.eventType)}`
  throw new PermanentError(
    named?.id === id
      ? `${where}: decide waits for customer ${printable(id)} to be linked, who is: use customer.subject`
      : `${where}: decide waits for customer ${printable(id)} to be linked, whom the handler's \`customer\` does not name`,
  )
}

function isList(missing: Missing | readonly Missing[]): missing is readonly Missing[] {
  return Array.isArray(missing)
}

type AnyDecideInput = Omit<DecideInput, 'evidence'> & {
  readonly evidence: unknown
  readonly current?: unknown
}

function inputOf(
  ledger: OrderLedger,
  claim: Claim,
  context: FoldContext,
  effects: readonly EffectView[],
): AnyDecideInput {
  const order: Order = Object.freeze({
    id: ledger.id,
    workflow: ledger.workflow,
    state: ledger.state,
    subject: ledger.subject,
    expected: ledger.expected === null ? null : Object.freeze({ ...ledger.expected }),
  })
  const entitlements = ledger.entitlements
    .filter((row) => row.stated)
    .map((row) => Object.freeze({ ...row }))
  return Object.freeze({
    event: claim.body,
    order,
    payments: Object.freeze(ledger.payments.map((payment) => Object.freeze({ ...payment }))),
    effects,
    operations:
      ledger.operations.length === 0 ? noOperations : Object.freeze([...ledger.operations]),
    entitlements: Object.freeze(entitlements),
    derive: (name: string) => context.derive(ledger.id, name),
    evidence: claim.inputs?.gather?.evidence,
    customer: claim.inputs?.customer ?? null,
    ...(claim.inputs?.mirror !== undefined && { current: claim.inputs.mirror.current }),
  })
}
