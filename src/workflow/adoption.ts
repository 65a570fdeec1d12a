/**
 * What adopting an order changes: only what is missing is added, so that it can be repeated, and nothing that
 * events decided since is taken back. Pure; the ledger is read under the order's lock.
 */
import { formatMoney } from '../core/money.ts'
import type { AdoptNamespace, OrderLine } from './adopt-line.ts'
import { stateEntitlements } from './apply-changes.ts'
import type { EntitlementClaim } from './decision.ts'
import type { LedgerEffect, LedgerEntitlement, LedgerPayment, OrderLedger } from './order.ts'
import { grants, recordedEntitles } from './workflow.ts'

/** What is known of an order besides its ledger. */
export interface AdoptStanding {
  /** Whether events have decided about it: then its state and entitlements are theirs. */
  readonly isMoved: boolean
  /** Every state that decisions had it in or led it to. */
  readonly states: ReadonlySet<string>
  /** The number of a namespace; 0 where nothing was ever recorded under it. */
  readonly sourceIdOf: (namespace: AdoptNamespace) => number
  readonly ownerOf: (sourceId: number, kind: string, value: string) => string | null
  readonly payerOf: (sourceId: number, id: string) => string | null
}

/** A name to be learned. */
export interface AdoptedName {
  readonly sourceId: number
  readonly kind: string
  readonly value: string
}

/** What is written for one order. */
export interface AdoptedOrder {
  readonly kind: 'adopted'
  readonly line: OrderLine
  readonly decisionId: bigint
  readonly ledger: OrderLedger
  readonly from: string | null
  readonly entitles: boolean | null
  readonly names: readonly AdoptedName[]
  readonly payments: readonly LedgerPayment[]
  /** Recorded before as not applied. */
  readonly applied: readonly LedgerPayment[]
  readonly effects: readonly LedgerEffect[]
  /** Rows that are new or differ. */
  readonly entitlements: readonly LedgerEntitlement[]
  readonly evidence: Readonly<Record<string, unknown>>
  /** What the line says otherwise, which stays as events decided it; null where they agree. */
  readonly differs: string | null
}

/** What adopting a line comes to. */
export type Adoption =
  | AdoptedOrder
  /** All of it is here, but for what `differs`. */
  | { readonly kind: 'same'; readonly differs: string | null }
  | { readonly kind: 'conflict'; readonly message: string }

/** Adopts one line, changing `ledger`. The message of a conflict does not name the line. */
export function adoptOrder(
  ledger: OrderLedger,
  line: OrderLine,
  standing: AdoptStanding,
  decisionId: bigint,
): Adoption {
  const conflict = conflictOf(ledger, line, standing)
  if (conflict !== null) return { kind: 'conflict', message: conflict }
  const facts = missingFacts(ledger, line, standing)
  const { isMoved } = standing
  if (isMoved && ledger.state !== line.state && facts.count > 0) {
    const message = `events have moved order ${line.id} to ${ledger.state} since, and the line says ${line.state} with what is not recorded here: leave it out, or write down what it is now`
    return { kind: 'conflict', message }
  }
  const differs = isMoved ? differenceOf(ledger, line, standing) : null
  const from = ledger.stored ? ledger.state : null
  const before = ledger.entitlements
  const wasMissing = !ledger.stored || fillIn(ledger, line, standing)
  const to = isMoved ? ledger.state : line.state
  const changes = wasMissing || to !== ledger.state || facts.count + facts.names.length > 0
  ledger.stored = true
  ledger.state = to
  ledger.payments = [
    ...ledger.payments.filter((each) => !facts.applied.some(({ id }) => id === each.id)),
    ...facts.applied,
    ...facts.payments,
  ]
  ledger.effects.push(...facts.effects)
  const wanted =
    isMoved || line.entitlements === null
      ? null
      : new Map(line.entitlements.map((each) => [`${each.subject}\u0000${each.entitlement}`, each]))
  const { granted, revoked, stated } = stateEntitlements(
    ledger,
    wanted,
    grants(line.workflow, to),
    decisionId,
  )
  const entitlements = ledger.entitlements.filter((row) => !before.some((old) => isSame(row, old)))
  if (!changes && entitlements.length === 0) return { kind: 'same', differs }
  ledger.version += 1n
  return {
    kind: 'adopted',
    line,
    decisionId,
    ledger,
    from,
    entitles: recordedEntitles(line.workflow, to),
    names: facts.names,
    payments: facts.payments,
    applied: facts.applied,
    effects: facts.effects,
    entitlements,
    evidence: {
      line: line.line,
      ...listed(
        'payments',
        [...facts.payments, ...facts.applied].map((each) => each.id),
      ),
      ...listed(
        'effects',
        facts.effects.map((each) => [each.type, each.reference]),
      ),
      ...listed(
        'names',
        facts.names.map((each) => `${each.kind} ${each.value}`),
      ),
      ...listed('granted', granted),
      ...listed('revoked', revoked),
      ...(stated !== undefined && { stated }),
    },
    differs,
  }
}

/**
 * What a line says otherwise about an order that events have decided: a state that it never was in, or other
 * entitlements in the state that it is in. A state that it was in once is an older file, and contradicts nothing.
 */
function differenceOf(
  ledger: OrderLedger,
  line: OrderLine,
  { states }: AdoptStanding,
): string | null {
  const { id, state } = line
  if (state !== ledger.state)
    return states.has(state)
      ? null
      : `events made order ${id} ${ledger.state}, and the line says ${state}, which it never was: it stays ${ledger.state}`
  if (line.entitlements === null) return null
  const told = ({ subject, entitlement, quantity, validUntil }: EntitlementClaim): string =>
    JSON.stringify([subject, entitlement, quantity ?? 1, validUntil?.getTime() ?? null])
  const here = new Set(ledger.entitlements.filter((row) => row.stated).map(told))
  const there = line.entitlements.map(told)
  return here.size === there.length && there.every((each) => here.has(each))
    ? null
    : `order ${id} entitles to something else here than the line says: it stays as events decided it`
}

function listed(key: string, values: readonly unknown[]): Readonly<Record<string, unknown>> {
  return values.length === 0 ? {} : { [key]: values }
}

/** Sets what nobody said before; whether there was any. */
function fillIn(ledger: OrderLedger, line: OrderLine, standing: AdoptStanding): boolean {
  let isFilled = false
  if (ledger.subject === null && line.subject !== null) {
    ledger.subject = line.subject
    isFilled = true
  }
  if (ledger.expected === null && line.expected !== null) {
    ledger.expected = line.expected
    isFilled = true
  }
  if (ledger.sourceId === null && line.account !== null) {
    ledger.sourceId = standing.sourceIdOf(line.account)
    ledger.provider = line.account.provider
    ledger.providerAccount = line.account.account
    isFilled = true
  }
  return isFilled
}

/** What the line says against what is recorded; null where nothing speaks against it. */
function conflictOf(
  ledger: OrderLedger,
  line: OrderLine,
  { sourceIdOf, ownerOf, payerOf }: AdoptStanding,
): string | null {
  const { id, workflow, subject, expected, account } = line
  for (const { source, kind, value } of line.names) {
    const owner = ownerOf(sourceIdOf(source), kind, value)
    if (owner !== null && owner !== id) return `${kind} ${value} is a name of order ${owner}`
  }
  for (const payment of line.payments) {
    const payer = payerOf(sourceIdOf(payment.source), payment.id)
    if (payer !== null && payer !== id)
      return `payment ${payment.id} is recorded for order ${payer}`
  }
  if (!ledger.stored) return null
  if (ledger.workflow !== workflow.name)
    return `order ${id} belongs to workflow ${ledger.workflow} here`
  if (subject !== null && ledger.subject !== null && ledger.subject !== subject)
    return `order ${id} has another subject here`
  if (expected !== null && ledger.expected !== null) {
    const { amount, currency } = ledger.expected
    if (amount !== expected.amount || currency !== expected.currency)
      return `order ${id} expects ${formatMoney(ledger.expected)} here, and ${formatMoney(expected)} in the line`
  }
  const isForeign =
    account !== null &&
    ledger.provider === account.provider &&
    ledger.providerAccount !== account.account
  if (isForeign) return `order ${id} belongs to another account of ${account.provider} here`
  return figuresConflict(ledger, line, sourceIdOf)
}

/** What is recorded stays as it is: other figures in the line are a contradiction. */
function figuresConflict(
  ledger: OrderLedger,
  line: OrderLine,
  sourceIdOf: AdoptStanding['sourceIdOf'],
): string | null {
  for (const payment of line.payments) {
    const sourceId = sourceIdOf(payment.source)
    const recorded = ledger.payments.find(
      (each) => each.sourceId === sourceId && each.id === payment.id,
    )
    if (recorded === undefined) continue
    if (recorded.amount === payment.amount && recorded.currency === payment.currency) continue
    return `payment ${payment.id} is recorded with ${formatMoney(recorded)}, and ${formatMoney(payment)} in the line`
  }
  for (const effect of line.effects) {
    const recorded = recordedEffect(ledger, effect)
    if (recorded === undefined) continue
    const { amount, currency, payment } = recorded
    const isEqual =
      amount === effect.amount && currency === effect.currency && payment === effect.payment
    if (!isEqual) return `effect ${effect.type} ${effect.reference} is recorded with other figures`
  }
  return null
}

function recordedEffect(ledger: OrderLedger, effect: LedgerEffect): LedgerEffect | undefined {
  return ledger.effects.find(
    (each) => each.type === effect.type && each.reference === effect.reference,
  )
}

interface Missing {
  readonly payments: readonly LedgerPayment[]
  readonly applied: readonly LedgerPayment[]
  readonly effects: readonly LedgerEffect[]
  readonly names: readonly AdoptedName[]
  /** Of payments and effects. */
  readonly count: number
}

function missingFacts(ledger: OrderLedger, line: OrderLine, standing: AdoptStanding): Missing {
  const payments: LedgerPayment[] = []
  const applied: LedgerPayment[] = []
  for (const { id, amount, currency, source } of line.payments) {
    const sourceId = standing.sourceIdOf(source)
    const recorded = ledger.payments.find((each) => each.sourceId === sourceId && each.id === id)
    if (recorded?.applied === true) continue
    const row = Object.freeze({ sourceId, id, amount, currency, applied: true })
    if (recorded === undefined) payments.push(row)
    else applied.push(row)
  }
  const effects = line.effects.filter((each) => recordedEffect(ledger, each) === undefined)
  const names = line.names
    .map(({ source, kind, value }) => ({ sourceId: standing.sourceIdOf(source), kind, value }))
    .filter(({ sourceId, kind, value }) => standing.ownerOf(sourceId, kind, value) === null)
  const count = payments.length + applied.length + effects.length
  return { payments, applied, effects, names, count }
}

function isSame(a: LedgerEntitlement, b: LedgerEntitlement): boolean {
  return (
    a.subject === b.subject &&
    a.entitlement === b.entitlement &&
    a.quantity === b.quantity &&
    a.validUntil?.getTime() === b.validUntil?.getTime() &&
    a.active === b.active &&
    a.stated === b.stated &&
    a.grantedBy === b.grantedBy
  )
}
