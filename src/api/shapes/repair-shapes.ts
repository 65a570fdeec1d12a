/** Plans of repairs and what applying them came to, as the API sends them. Amounts are texts. */
import { z } from 'zod'
import type { RepairPlan, RepairReport } from '../../compose/repair-plans.ts'
import { exactNumber, moment } from '../schemas.ts'

const text = z.string()
/** An amount in minor units. */
export const amount: z.ZodObject<{ amount: z.ZodString; currency: z.ZodString }, z.core.$strict> =
  z.strictObject({ amount: exactNumber, currency: text })
const change = z.strictObject({ from: text.nullable(), to: text.nullable() })

const planShape = z.strictObject({
  plan_id: text,
  finding_id: text,
  kind: text,
  /** As it was chosen: `provider`, `refund:pi_1`, `target:paid`. */
  choice: text,
  order: z
    .strictObject({
      order_id: text,
      workflow: text,
      /** Null: the repair opens the order. */
      from: text.nullable(),
      to: text,
      /** Where the order's decisions lead to: another state than `from` where somebody changed the row. */
      decided: text.nullable(),
      version: exactNumber,
      subject: change.nullable(),
      expected: z.strictObject({ from: amount.nullable(), to: amount.nullable() }).nullable(),
    })
    .nullable(),
  payments: z.array(amount.extend({ payment_id: text, known: z.boolean() })),
  /** Payments that the provider knows nothing of: they no longer count. */
  voided: z.array(text),
  effects: z.array(
    z.strictObject({
      effect_type: text,
      effect_reference: text,
      amount: exactNumber.nullable(),
      currency: text.nullable(),
      payment_id: text.nullable(),
      data: z.unknown(),
    }),
  ),
  /** The whole set after it; null: entitlements stay as they are. */
  entitle: z
    .array(
      z.strictObject({
        subject: text,
        entitlement: text,
        quantity: z.number(),
        valid_until: moment.nullable(),
        active: z.boolean(),
      }),
    )
    .nullable(),
  granted: z.array(text),
  revoked: z.array(text),
  operations: z.array(
    z.strictObject({
      operation_id: text,
      destination: text,
      name: text,
      effect_type: text.nullable(),
      effect_reference: text.nullable(),
    }),
  ),
  refund: amount.extend({ payment: text, account: text }).nullable(),
  /** The provider's records that it was made from, with what they claim. */
  records: z.array(z.strictObject({ kind: text, id: text, account: text, says: text })),
  /** For a person, a line each. */
  summary: z.array(text),
})

/** A repair plan. */
export const repairPlan: z.ZodObject = planShape

/** What can be chosen. */
export const repairChoice: z.ZodObject<{ choice: z.ZodString; does: z.ZodString }, z.core.$strict> =
  z.strictObject({ choice: text, does: text })

const reportShape = z.strictObject({
  /** `recorded`: it was applied before; `agreed`: nothing was to be done, and the finding is closed. */
  outcome: z.enum(['applied', 'recorded', 'agreed']),
  finding_id: text,
  /** `repairing` until the provider is seen to agree. */
  finding: z.enum(['repairing', 'closed', 'dismissed']),
  verified_at: moment.nullable(),
  repair_id: text.nullable(),
  choice: text.nullable(),
  order_id: text.nullable(),
  from: text.nullable(),
  to: text.nullable(),
  decision_id: text.nullable(),
  reason: text.nullable(),
  actor: text.nullable(),
  applied_at: moment.nullable(),
  operations: z.array(text),
  /** Why it is not verified yet, where that was an error. */
  problem: text.nullable(),
})

/** What applying came to. */
export const repairReport: z.ZodObject = reportShape

/** A plan as the API sends it. */
export function planAnswer(plan: RepairPlan): object {
  const { order, refund } = plan
  return {
    plan_id: plan.id,
    finding_id: plan.findingId,
    kind: plan.kind,
    choice: plan.choice,
    order: order === null ? null : orderAnswer(order),
    payments: plan.payments.map(({ id, known, ...of }) => ({
      payment_id: id,
      known,
      ...amountAnswer(of),
    })),
    voided: plan.voided.map(({ id }) => id),
    effects: plan.effects.map(({ type, reference, amount: of, currency, payment, data }) => ({
      effect_type: type,
      effect_reference: reference,
      amount: of?.toString() ?? null,
      currency,
      payment_id: payment,
      data,
    })),
    entitle:
      plan.entitle?.map(({ validUntil, ...each }) => ({
        ...each,
        valid_until: validUntil?.toISOString() ?? null,
      })) ?? null,
    granted: [...plan.granted],
    revoked: [...plan.revoked],
    operations: plan.operations.map(({ operationId, destination, name, effect }) => ({
      operation_id: operationId,
      destination,
      name,
      effect_type: effect?.type ?? null,
      effect_reference: effect?.reference ?? null,
    })),
    refund:
      refund === null
        ? null
        : { payment: refund.payment, account: refund.account, ...amountAnswer(refund) },
    records: plan.records.map(({ reference: { kind, id, account }, says }) => ({
      kind,
      id,
      account,
      says,
    })),
    summary: [...plan.summary],
  } satisfies z.input<typeof planShape>
}

function amountAnswer(of: {
  readonly amount: bigint
  readonly currency: string
}): z.input<typeof amount> {
  return { amount: of.amount.toString(), currency: of.currency }
}

function orderAnswer(
  order: NonNullable<RepairPlan['order']>,
): NonNullable<z.input<typeof planShape>['order']> {
  const { id, workflow, from, to, decided, version, subject, expected } = order
  const money = (of: Parameters<typeof amountAnswer>[0] | null): z.input<typeof amount> | null =>
    of === null ? null : amountAnswer(of)
  return {
    order_id: id,
    workflow,
    from,
    to,
    decided,
    version: version.toString(),
    subject: subject === null ? null : { ...subject },
    expected: expected === null ? null : { from: money(expected.from), to: money(expected.to) },
  }
}

/** What applying came to, as the API sends it. */
export function reportAnswer(report: RepairReport): object {
  const { outcome, findingId, finding, repair, plan, problem } = report
  return {
    outcome,
    finding_id: findingId,
    finding: finding === 'waiting' ? 'repairing' : finding,
    verified_at: repair?.verifiedAt?.toISOString() ?? null,
    repair_id: repair?.repairId ?? null,
    choice: repair?.choice ?? null,
    order_id: repair?.orderId ?? null,
    from: repair?.from ?? null,
    to: repair?.to ?? null,
    decision_id: repair?.decisionId?.toString() ?? null,
    reason: repair?.reason ?? null,
    actor: repair?.actor ?? null,
    applied_at: repair?.appliedAt.toISOString() ?? null,
    operations: plan?.operations.map(({ operationId }) => operationId) ?? [],
    problem,
  } satisfies z.input<typeof reportShape>
}
