/** An order moved to the state that a person names, with the payments that both sides then agree about. */
import { HookledgerError } from '../../core/errors.ts'
import { nearest } from '../../core/nearest.ts'
import type { Executor } from '../../postgres/executor.ts'
import { stateEntitlements } from '../../workflow/apply-changes.ts'
import type { OrderLedger } from '../../workflow/order.ts'
import { grants } from '../../workflow/workflow.ts'
import type { Answers } from './ask.ts'
import type { DraftPayment, OrderChange } from './draft.ts'
import type { FindingRow } from './finding.ts'
import type { RepairContext } from './ports.ts'

/**
 * The order in the state that a person names. Where that entitles, payments that the provider's records show
 * are recorded with it, else both sides would still differ.
 *
 * @throws HookledgerError HKL_CONFIG_UNKNOWN_NAME for a state that the workflow does not have
 */
export async function targetChange(
  context: RepairContext,
  tx: Executor,
  held: OrderChange,
  input: {
    readonly finding: FindingRow
    readonly answers: Answers
    readonly to: string
    readonly decisionId: bigint
  },
): Promise<OrderChange> {
  const { workflow, before } = held
  const { to, decisionId } = input
  if (!workflow.states.has(to)) {
    const near = nearest(to, workflow.states.keys())
    throw new HookledgerError(
      'HKL_CONFIG_UNKNOWN_NAME',
      `workflow ${workflow.name} has no state "${to.slice(0, 80)}"${near === null ? '' : `, did you mean "${near}"?`}`,
    )
  }
  const open = grants(workflow, to)
  const payments = open ? await paidPayments(context, tx, before, input) : []
  const voided = open ? [] : unpaidPayments(before, input)
  const after: OrderLedger = {
    ...before,
    state: to,
    entitlements: [...before.entitlements],
    payments: before.payments.map((each) =>
      voided.includes(each) ? { ...each, applied: false } : each,
    ),
  }
  stateEntitlements(after, null, open, decisionId)
  const stated = after.entitlements.some((row) => row.stated)
  const notes =
    open && !stated ? [`${to} entitles, but the order states nothing to entitle to`] : []
  return {
    ...held,
    after,
    payments,
    voided: voided.map(({ sourceId, id }) => ({ sourceId, id })),
    notes,
  }
}

/**
 * Of an order that nobody paid there: the payments that count here. Left as they are, the next event would find
 * the order paid, and entitle again.
 */
function unpaidPayments(
  { payments }: OrderLedger,
  { finding, answers }: { readonly finding: FindingRow; readonly answers: Answers },
): OrderLedger['payments'] {
  if (finding.kind !== 'paid_here' || finding.source === null) return []
  const { sourceId, account } = finding.source
  const records = answers.source?.records
  return payments.filter(({ id, applied, sourceId: of }) => {
    if (!applied || of !== sourceId) return false
    const facts = answers.facts.flatMap((fact) =>
      fact.fact === 'payment' && [fact.id, ...(fact.aliases ?? [])].includes(id) ? [fact] : [],
    )
    if (facts.length > 0) return facts.every(({ standing }) => standing !== 'paid')
    const reference = records?.referenceOf('payment', id, account)
    return answers.asked.some(
      ({ reference: asked, says }) =>
        says === 'gone' && asked.kind === reference?.kind && asked.id === reference.id,
    )
  })
}

async function paidPayments(
  context: RepairContext,
  tx: Executor,
  ledger: OrderLedger,
  { finding, answers }: { readonly finding: FindingRow; readonly answers: Answers },
): Promise<DraftPayment[]> {
  const sourceId = finding.source?.sourceId ?? 0
  const payments: DraftPayment[] = []
  for (const fact of answers.facts) {
    if (fact.fact !== 'payment' || fact.standing !== 'paid') continue
    const { id, amount, currency } = fact
    const ids = [id, ...(fact.aliases ?? [])]
    const known = ledger.payments.find(
      (each) => each.sourceId === sourceId && ids.includes(each.id),
    )
    if (known?.applied === true) continue
    const owner = known === undefined ? await context.payer(tx, sourceId, id) : null
    const isPlanned = payments.some((each) => ids.includes(each.row?.id ?? each.applies ?? ''))
    if (owner !== null || isPlanned) continue
    payments.push({
      sourceId,
      row: known === undefined ? { id, amount, currency, applied: true } : null,
      applies: known?.id ?? null,
    })
  }
  return payments
}
