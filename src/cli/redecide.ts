/**
 * `hookledger replay EVENT --redecide`: decides anew what was skipped or contradicted. The plan is shown
 * first; it is applied as it was shown, or not at all.
 */
import { createRedecider } from '../compose/redecide.ts'
import { formatMoney } from '../core/money.ts'
import type { RedecisionPlan } from '../inbox/redecide-plan.ts'
import type { RecordedDecision } from '../inbox/replay-lookup.ts'
import { usageError, type CommandWorld } from './command.ts'
import type { ExitCode } from './exit-codes.ts'
import type { Output } from './output.ts'
import { withDatabase } from './project.ts'

/** What is asked. */
export interface RedecideRequest {
  readonly world: CommandWorld
  readonly out: Output
  readonly config: string | undefined
  readonly event: { readonly id: string; readonly source?: string | undefined }
  readonly by: { readonly reason: string | undefined; readonly actor: string }
  /** Shows what would be done, and does nothing. */
  readonly onlyPlan: boolean
}

/** Plans, shows, applies. @throws HookledgerError HKL_CLI_USAGE without a reason */
export async function runRedecide(request: RedecideRequest): Promise<ExitCode> {
  const { world, out, event, onlyPlan } = request
  const { actor, reason = onlyPlan ? 'to plan a new decision' : '' } = request.by
  if (reason.trim() === '')
    throw usageError('--redecide needs --reason: it is recorded with the decision')
  return withDatabase(world, request.config, async (_, { parts }) => {
    try {
      const { work } = await parts.contexts()
      const redecider = createRedecider(work, parts.signals, (keys, ms) =>
        parts.gatherNow(keys, ms),
      )
      const planned = await redecider.plan(event, { reason, actor })
      if (planned.kind === 'recorded') return recorded(out, event.id, planned.decision)
      const { plan } = planned
      if (onlyPlan) {
        out.result({ outcome: 'planned', plan }, (safe) => planText(safe.plan).join('\n'))
        return 0
      }
      out.note(planText(plan).join('\n'))
      const applied = await redecider.apply(planned, { reason, actor })
      if (applied.kind === 'recorded') return recorded(out, event.id, applied.decision)
      const { decisionId: decision_id, eventId: as_event } = applied
      out.result(
        { outcome: 'redecided', decision_id, as_event, plan },
        (safe) =>
          `${safe.plan.event.id} is decided anew: ${safe.plan.kind}${movement(safe.plan)}, decision ${safe.decision_id}; see "hookledger explain ${safe.plan.order.id}"`,
      )
      return 0
    } finally {
      await parts.close()
    }
  })
}

function recorded(out: Output, id: string, decision: RecordedDecision): ExitCode {
  out.result(
    { outcome: 'recorded', event_id: id, decision },
    (safe) =>
      `${safe.event_id} was decided anew already, because ${safe.decision.reason} (decision ${safe.decision.decision_id}); nothing changed`,
  )
  return 0
}

function movement({ order: { from, to } }: RedecisionPlan): string {
  if (to === null) return ''
  return from === to ? `, stays ${to}` : `, ${from ?? 'new'} → ${to}`
}

function planText(plan: RedecisionPlan): string[] {
  const { event, supersedes, order, payment } = plan
  return [
    `${event.type} ${event.id} was ${supersedes.kind}: ${supersedes.reason} (decision ${supersedes.decision_id})`,
    `the present code decides about order ${order.id}: ${plan.kind}${movement(plan)}, because ${plan.because}`,
    ...(payment === null
      ? []
      : [
          `  payment ${payment.id} ${formatMoney(payment)}${payment.applied ? '' : ', kept but not applied'}`,
        ]),
    ...plan.effects.map(
      ({ type, reference, amount, currency }) =>
        `  effect ${reference === '' ? type : `${type} ${reference}`}${amount === null || currency === null ? '' : ` ${formatMoney({ amount, currency })}`}`,
    ),
    ...plan.granted.map((each) => `  grants ${each}`),
    ...plan.revoked.map((each) => `  revokes ${each}`),
    ...plan.operations.map(({ name, destination }) => `  sends ${name} to ${destination}`),
    ...plan.findings.map((kind) => `  makes a finding ${kind}`),
    ...plan.closes.map((id) => `  closes finding ${id}`),
  ]
}
