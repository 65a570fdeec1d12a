/**
 * Opening an order from the app, without a database: an upsert that never fails on an order that
 * exists. It adds figures that were missing, and tells of those that differ.
 */
import { HookledgerError } from '../core/errors.ts'
import { formatMoney, money, type Money } from '../core/money.ts'
import { keyText } from './checked-text.ts'
import { finding } from './finding-kinds.ts'
import type { OrderLedger } from './order.ts'
import type { FindingDraft } from './outcome.ts'
import type { Workflow } from './workflow.ts'

/** What the app knows of an order when it opens it. */
export interface Opening {
  /** The app's own id, at most 255 bytes. */
  readonly id: string
  readonly subject?: string | undefined
  /** What must be paid at least; without it the workflow's `accepts` is asked of every payment. */
  readonly expected?: Money | undefined
}

/** `mismatch`: the order exists with another workflow, subject or amount, which stay as they are. */
export type OpeningAnswer = 'created' | 'existed' | 'mismatch'

const maxAmount = 2n ** 63n - 1n

/**
 * What the app opens an order with, held to what a payment can meet later: a subject that can be
 * entitled, a currency code as payments have it. Otherwise the customer would pay, and get nothing.
 *
 * @throws HookledgerError HKL_LEDGER_ORDER_INVALID saying what is wrong
 */
export function checkedOpening(given: Opening): Opening {
  const { id, subject, expected } = given as {
    readonly [Field in keyof Opening]: Opening[Field] | null
  }
  try {
    return {
      id: keyText(id, 'order id'),
      subject:
        subject === undefined || subject === null
          ? undefined
          : keyText(subject, 'subject of the order'),
      expected: expected === undefined || expected === null ? undefined : checkedExpected(expected),
    }
  } catch (error) {
    if (error instanceof HookledgerError) throw error
    throw new HookledgerError(
      'HKL_LEDGER_ORDER_INVALID',
      error instanceof Error ? error.message : 'the order is not valid',
    )
  }
}

function checkedExpected(given: Money): Money {
  const expected = money(given.amount, given.currency)
  if (expected.amount >= 0n && expected.amount <= maxAmount) return expected
  throw new HookledgerError(
    'HKL_LEDGER_ORDER_INVALID',
    'the expected amount must not be negative, and must fit 64 bits',
  )
}

/** An order that nobody opened yet. */
export function unopenedOrder(id: string, workflow: Workflow): OrderLedger {
  return {
    id,
    workflow: workflow.name,
    sourceId: null,
    provider: null,
    providerAccount: null,
    state: workflow.initial,
    subject: null,
    expected: null,
    version: 0n,
    stored: false,
    payments: [],
    effects: [],
    entitlements: [],
    operations: [],
  }
}

/** Opens `ledger`, changing it where figures were missing. */
export function openLedger(
  ledger: OrderLedger,
  workflow: Workflow,
  opening: Opening,
): { readonly answer: OpeningAnswer; readonly findings: readonly FindingDraft[] } {
  const { subject = null, expected = null } = opening
  if (!ledger.stored) {
    Object.assign(ledger, { stored: true, subject, expected, version: ledger.version + 1n })
    return { answer: 'created', findings: [] }
  }
  const differences = differencesOf(ledger, workflow, opening)
  const findings: FindingDraft[] = []
  if (differences !== null) {
    findings.push(finding('order_differs', `order:${ledger.id}`, differences))
  }
  if (expected !== null && ledger.expected === null) findings.push(...shortfall(ledger, expected))
  const adds =
    (ledger.subject === null && subject !== null) || (ledger.expected === null && expected !== null)
  if (adds && ledger.workflow === workflow.name) {
    ledger.subject ??= subject
    ledger.expected ??= expected
    ledger.version += 1n
  }
  return { answer: differences === null ? 'existed' : 'mismatch', findings }
}

function differencesOf(
  ledger: OrderLedger,
  workflow: Workflow,
  { subject, expected }: Opening,
): Record<string, string> | null {
  const differences: Record<string, string> = {}
  if (ledger.workflow !== workflow.name) {
    differences['workflow'] = `${ledger.workflow}, asked ${workflow.name}`
  }
  if (ledger.subject !== null && subject !== undefined && ledger.subject !== subject) {
    differences['subject'] = `${ledger.subject}, asked ${subject}`
  }
  // an event opened the order, and what it entitles to went to somebody else
  const others = ledger.entitlements.filter((row) => row.stated && row.subject !== subject)
  const [entitled] = others
  if (ledger.subject === null && subject !== undefined && entitled !== undefined) {
    differences['subject'] = `${entitled.subject} is entitled, asked ${subject}`
  }
  if (ledger.expected !== null && expected !== undefined) {
    const { amount, currency } = ledger.expected
    if (amount !== expected.amount || currency !== expected.currency) {
      differences['expected'] = `${formatMoney(ledger.expected)}, asked ${formatMoney(expected)}`
    }
  }
  return Object.keys(differences).length === 0 ? null : { order: ledger.id, ...differences }
}

/** More is expected now (or in another currency) than was captured when an event opened the order. */
function shortfall(ledger: OrderLedger, expected: Money): FindingDraft[] {
  const applied = ledger.payments.filter((payment) => payment.applied)
  const first = applied.find((payment) => payment.currency === expected.currency) ?? applied[0]
  if (first === undefined) return []
  const enough = applied.some(
    (payment) => payment.currency === expected.currency && payment.amount >= expected.amount,
  )
  if (enough) return []
  const kind = first.currency === expected.currency ? 'underpaid' : 'currency_differs'
  const figures = {
    order: ledger.id,
    captured: formatMoney(first),
    expected: formatMoney(expected),
  }
  return [finding(kind, `order:${ledger.id}`, figures)]
}
