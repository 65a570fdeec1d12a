/** Plans and repairs as a person reads them, and as `--json` prints them. */
import type { ChoiceOffer, RepairPlan, RepairReport } from '../compose/repairs.ts'
import { HookledgerError } from '../core/errors.ts'
import { printableData } from '../observe/printable.ts'
import type { FindingView } from '../report/findings.ts'
import type { Style } from './output.ts'
import { moment } from './table.ts'

/** A plan with the keys that `--json` prints. */
export function planJson(plan: RepairPlan): object {
  return {
    plan_id: plan.id,
    finding_id: plan.findingId,
    kind: plan.kind,
    choice: plan.choice,
    order:
      plan.order === null
        ? null
        : {
            order_id: plan.order.id,
            workflow: plan.order.workflow,
            from: plan.order.from,
            to: plan.order.to,
            decided: plan.order.decided,
            version: plan.order.version,
            subject: plan.order.subject,
            expected: plan.order.expected,
          },
    payments: plan.payments.map(({ id, amount, currency, known }) => ({
      payment_id: id,
      amount,
      currency,
      known,
    })),
    voided: plan.voided.map(({ id }) => id),
    effects: plan.effects.map(({ type, reference, amount, currency, payment, data }) => ({
      effect_type: type,
      effect_reference: reference,
      amount,
      currency,
      payment_id: payment,
      data,
    })),
    entitle:
      plan.entitle?.map(({ subject, entitlement, quantity, validUntil, active }) => ({
        subject,
        entitlement,
        quantity,
        valid_until: validUntil?.toISOString() ?? null,
        active,
      })) ?? null,
    granted: plan.granted,
    revoked: plan.revoked,
    operations: plan.operations.map(({ operationId, destination, name, effect }) => ({
      operation_id: operationId,
      destination,
      name,
      effect_type: effect?.type ?? null,
      effect_reference: effect?.reference ?? null,
    })),
    refund: plan.refund,
    records: plan.records.map(({ reference, says }) => ({ ...reference, says })),
    summary: plan.summary,
    choices: plan.choices,
  }
}

/** What a repair came to, with the keys that `--json` prints. */
export function reportJson({
  outcome,
  findingId,
  repair,
  plan,
  finding,
  problem,
}: RepairReport): object {
  return {
    outcome,
    finding_id: findingId,
    finding: finding === 'waiting' ? 'repairing' : finding,
    verified: repair?.verifiedAt !== null && repair?.verifiedAt !== undefined,
    verified_at: repair?.verifiedAt?.toISOString() ?? null,
    repair_id: repair?.repairId ?? null,
    choice: repair?.choice ?? null,
    order_id: repair?.orderId ?? null,
    from: repair?.from ?? null,
    to: repair?.to ?? null,
    decision_id: repair?.decisionId ?? null,
    reason: repair?.reason ?? null,
    actor: repair?.actor ?? null,
    applied_at: repair?.appliedAt.toISOString() ?? null,
    operations: plan?.operations.map(({ operationId }) => operationId) ?? [],
    problem,
  }
}

/** A plan for a person. */
export function planText(given: RepairPlan, finding: FindingView, style: Style): string {
  const plan = printableData({ ...given, order: null })
  const id = given.findingId.slice(0, 8)
  const others = plan.choices.filter(({ choice }) => choice !== plan.choice)
  const chosen = chosenText(given)
  const lines = [
    `${style.strong(finding.kind)} (${finding.class}, ${finding.severity}) of ${finding.owner}, ${finding.state}`,
    `this would be done (${plan.choice}):`,
    ...plan.summary.map((line) => `  ${line}`),
  ]
  if (plan.operations.length === 0) lines.push('  sends nothing')
  if (others.length > 0) lines.push('instead:', ...others.map(offerLine))
  return [
    ...lines,
    `do it: hookledger repair apply ${id}${chosen} --reason "…"`,
    `or exactly this and nothing else: hookledger repair plan ${id}${chosen} --json > plan.json, then hookledger repair apply ${id} --plan plan.json --reason "…"`,
    style.faint(plan.id),
  ].join('\n')
}

function chosenText({ choice, kind }: RepairPlan): string {
  if (choice.startsWith('target:')) return ` --to ${choice.slice('target:'.length)}`
  const isPlain = choice === 'restore' || (choice === 'provider' && kind !== '')
  return isPlain ? '' : ` --choice ${choice}`
}

function offerLine({ choice, does }: ChoiceOffer): string {
  return `  ${choice === 'target' ? '--to STATE' : `--choice ${choice}`}  ${does}`
}

/** What a repair came to, for a person. */
export function reportText(given: RepairReport, style: Style): string {
  const { outcome, findingId } = given
  const { repair, plan, problem } = printableData({
    repair: given.repair,
    plan: given.plan,
    problem: given.problem,
  })
  if (repair === null || outcome === 'agreed')
    return `both sides agree by now: nothing was changed, and finding ${findingId.slice(0, 8)} is closed`
  const order = repair.orderId
  const moved =
    order === null || repair.to === null
      ? ''
      : `: order ${order} ${repair.from === repair.to ? `stays ${repair.to}` : `${repair.from ?? 'is opened'} → ${repair.to}`}`
  const head =
    outcome === 'applied'
      ? `${style.good('repaired')} ${repair.kind} by ${repair.choice}${moved}`
      : `this was repaired ${moment(repair.appliedAt.toISOString())} by ${repair.actor}, because ${repair.reason}${moved}; nothing was changed now`
  return [
    head,
    ...(outcome === 'applied' ? (plan?.summary ?? []).slice(0, 12).map((line) => `  ${line}`) : []),
    findingLine(given, problem, style),
    `the story: hookledger explain ${order ?? findingId.slice(0, 8)}`,
    style.faint(repair.repairId),
  ].join('\n')
}

function findingLine({ finding }: RepairReport, problem: string | null, style: Style): string {
  if (finding === 'closed')
    return 'the provider was asked again: both sides agree, and the finding is closed'
  if (finding === 'dismissed')
    return 'the finding is dismissed for these figures: other figures open it again'
  const why = problem === null ? 'both sides do not agree yet' : problem
  return style.warning(
    `not verified yet (${why}): the next pass asks again, or hookledger reconcile`,
  )
}

/** The choices of an error that asks for one, a line each; null for any other error. */
export function choiceLines(error: unknown): {
  readonly why: string
  readonly choices: readonly ChoiceOffer[]
  readonly offers: readonly string[]
} | null {
  if (!(error instanceof HookledgerError) || error.code !== 'HKL_REPAIR_CHOICE') return null
  const { why, offers } = error as {
    readonly why?: string
    readonly offers?: readonly ChoiceOffer[]
  }
  if (why === undefined || offers === undefined || offers.length === 0) return null
  return {
    why: `${why}: say which, by --choice or --to`,
    choices: offers,
    offers: printableData(offers).map(offerLine),
  }
}
