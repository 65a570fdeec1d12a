/**
 * What `decide` returned, held to what a decision can be. Types hold it for TypeScript; this holds it
 * for plain JavaScript and for values that come out of a provider's body. What fails is permanent: the
 * event ends dead, and the batch next to it is unharmed.
 */
import { PermanentError } from '../core/errors.ts'
import type { Money } from '../core/money.ts'
import { declared, keyText, printable } from './checked-text.ts'
import type { AnyDecision, AnyEffectClaim, EntitlementClaim, Figures, Missing } from './decision.ts'
import { checkSends } from './checked-send.ts'
import type { OutboxPort } from './outbox-port.ts'
import type { Workflow } from './workflow.ts'

const kinds = ['fulfill', 'move', 'reverse', 'mirror', 'skip', 'defer', 'contradict']
const maxAmount = 2n ** 63n - 1n
const firstMs = Date.parse('0001-01-01T00:00:00Z')
const endMs = Date.parse('+010000-01-01T00:00:00Z')

/** What a decision is held to besides its workflow. */
export interface DecisionContext {
  readonly eventType: string
  readonly outbox: Pick<OutboxPort, 'known' | 'names'>
  /** Whether it was asked of a mirror: only then may it follow the provider, and must change nothing else. */
  readonly mirrors?: boolean | undefined
}

/**
 * The decision, checked.
 *
 * @throws PermanentError naming the workflow, the event type and what is wrong.
 */
export function checkedDecision(
  answer: unknown,
  workflow: Workflow,
  { eventType, outbox, mirrors = false }: DecisionContext,
): AnyDecision {
  const where = `workflow ${workflow.name}, ${printable(eventType)}`
  if (typeof answer !== 'object' || answer === null) {
    throw new PermanentError(
      `${where}: decide must return a decision; it returned ${answer === null ? 'null' : typeof answer}`,
    )
  }
  if ('then' in answer)
    throw new PermanentError(`${where}: decide returned a promise; it must be synchronous`)
  const decision = answer as AnyDecision
  switch (decision.kind) {
    case 'skip':
      return { ...decision, reason: reasonText(decision.reason, 'nothing follows from it') }
    case 'contradict':
      checkFigures(decision.figures, where)
      return { ...decision, reason: reasonText(decision.reason, 'it contradicts the order') }
    case 'defer':
      return checkDeferral(decision, workflow, where)
    case 'mirror':
      if (!mirrors) throw new PermanentError(`${where}: mirrored(…) is for what .mirror() handles`)
      if ('payment' in decision && decision.payment !== undefined)
        throw new PermanentError(`${where}: a mirror records no payment; do it in .on(…)`)
      checkSettles(decision.settles, where)
      checkChange(decision, workflow, where, outbox)
      return decision
    case 'fulfill':
    case 'move':
    case 'reverse':
      if (mirrors) {
        throw new PermanentError(
          `${where}: a mirror answers with mirrored(…), skip, defer or contradict: what counts once is for .on(…)`,
        )
      }
      checkChange(decision, workflow, where, outbox)
      return decision
    default:
      throw new PermanentError(
        `${where}: decide returned no decision; its kind must be one of ${kinds.join(', ')}`,
      )
  }
}

/** A reason is for people: whatever it is, it becomes a text that can be shown. */
function reasonText(reason: unknown, otherwise: string): string {
  return typeof reason === 'string' && reason !== '' ? printable(reason) : otherwise
}

function checkDeferral(
  decision: Extract<AnyDecision, { kind: 'defer' }>,
  workflow: Workflow,
  where: string,
): Extract<AnyDecision, { kind: 'defer' }> {
  const { missing, forMs, reason } = decision
  const list = (Array.isArray(missing) ? missing : [missing]) as readonly (
    Missing | null | undefined
  )[]
  if (list.length === 0) throw new PermanentError(`${where}: a deferral must say what is missing`)
  for (const each of list) checkMissing(each, workflow, where)
  if (forMs !== undefined && !(Number.isFinite(forMs) && forMs > 0)) {
    throw new PermanentError(`${where}: a deferral lasts a positive number of milliseconds`)
  }
  return {
    ...decision,
    forMs: forMs === undefined ? undefined : Math.ceil(Math.min(forMs, Number.MAX_SAFE_INTEGER)),
    reason: reason === undefined ? undefined : reasonText(reason, 'it waits'),
  }
}

function checkMissing(
  missing: Missing | null | undefined,
  workflow: Workflow,
  where: string,
): void {
  switch (missing?.kind) {
    case 'name':
      keyText(missing.name?.kind, 'kind of the missing name')
      keyText(missing.name?.value, 'missing name')
      return
    case 'payment':
      keyText(missing.id, 'missing payment')
      return
    case 'customer':
      keyText(missing.id, 'customer to be linked')
      return
    case 'effect':
      declared(workflow.name, 'effect', missing.type, workflow.effects)
      return
    case 'state':
      for (const state of missing.states) declared(workflow.name, 'state', state, workflow.states)
      return
    case 'operation':
      declared(workflow.name, 'effect', missing.type, workflow.effects)
      return
    default:
      throw new PermanentError(
        `${where}: a deferral must say what is missing: effect(…), state(…), operation(…), linkedCustomer(…), a name or a payment`,
      )
  }
}

function checkSettles(settles: unknown, where: string): void {
  if (settles === undefined) return
  if (!Array.isArray(settles)) throw new PermanentError(`${where}: settles must be a list of kinds`)
  for (const kind of settles as unknown[]) keyText(kind as string, 'kind of a settled finding')
}

function checkChange(
  decision: Extract<AnyDecision, { kind: 'fulfill' | 'move' | 'reverse' | 'mirror' }>,
  workflow: Workflow,
  where: string,
  outbox: DecisionContext['outbox'],
): void {
  if (decision.to !== undefined) declared(workflow.name, 'state', decision.to, workflow.states)
  if (decision.kind !== 'mirror' && decision.payment !== undefined) {
    keyText(decision.payment?.id, 'payment id')
    checkMoney(decision.payment.money, `${where}: the money of payment`)
    if (decision.payment.money.amount < 0n)
      throw new PermanentError(`${where}: a payment cannot be negative`)
  }
  for (const effect of listOf(decision.effects, `${where}: effects`)) {
    checkEffect(effect, workflow, where)
    if (effect.send !== undefined) checkSends(effect, workflow, where, outbox)
  }
  if (decision.kind === 'reverse') {
    checkEffect(decision.of, workflow, where)
    if ('send' in decision.of)
      throw new PermanentError(`${where}: what is reversed sends nothing: name an effect beside it`)
  }
  for (const claim of listOf(decision.entitle, `${where}: entitle`)) checkEntitlement(claim, where)
  if (decision.subject !== undefined) keyText(decision.subject, 'subject')
  if (decision.flag !== undefined) keyText(decision.flag?.kind, 'kind of the flag')
  checkFigures(decision.flag?.figures, where)
  checkFigures(decision.evidence, where)
}

function listOf<T>(value: readonly T[] | undefined, what: string): readonly T[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw new PermanentError(`${what} must be a list`)
  return value as readonly T[]
}

function checkEffect(effect: AnyEffectClaim | undefined, workflow: Workflow, where: string): void {
  declared(workflow.name, 'effect', effect?.type, workflow.effects)
  if (effect?.reference !== undefined && effect.reference !== '')
    keyText(effect.reference, 'effect reference')
  if (effect?.payment !== undefined) keyText(effect.payment, 'payment of the effect')
  if (effect?.amount === undefined) return
  checkMoney(effect.amount, `${where}: the amount of effect ${effect.type}`)
  if (effect.payment !== undefined && effect.amount.amount < 0n) {
    throw new PermanentError(`${where}: what counts against a payment cannot be negative`)
  }
}

function checkMoney(value: Money | undefined, what: string): void {
  const { amount, currency } = value ?? {}
  if (typeof amount !== 'bigint' || typeof currency !== 'string' || !/^[A-Z]{3}$/.test(currency)) {
    throw new PermanentError(`${what} must be made by money(amount, currency)`)
  }
  if (amount > maxAmount || amount < -maxAmount)
    throw new PermanentError(`${what} does not fit 64 bits`)
}

function checkEntitlement(claim: EntitlementClaim, where: string): void {
  keyText(claim?.subject, 'subject of the entitlement')
  keyText(claim.entitlement, 'entitlement')
  if (
    claim.quantity !== undefined &&
    !(Number.isSafeInteger(claim.quantity) && claim.quantity > 0)
  ) {
    throw new PermanentError(`${where}: a quantity must be a positive integer`)
  }
  const until: unknown = claim.validUntil ?? null
  if (
    until !== null &&
    !(until instanceof Date && until.getTime() >= firstMs && until.getTime() < endMs)
  ) {
    throw new PermanentError(`${where}: validUntil must be a Date of the years 1 to 9999`)
  }
}

function checkFigures(figures: Figures | undefined, where: string): void {
  if (figures === undefined) return
  if (typeof figures !== 'object' || figures === null)
    throw new PermanentError(`${where}: figures must be an object`)
  for (const value of Object.values(figures)) {
    if (
      value === null ||
      ['string', 'number', 'bigint', 'boolean', 'undefined'].includes(typeof value)
    )
      continue
    throw new PermanentError(`${where}: a figure must be a text, a number, true, false or null`)
  }
}
