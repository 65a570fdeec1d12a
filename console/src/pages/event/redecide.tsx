/**
 * Deciding an event anew: first what the present code would decide, as a difference; then exactly that, or
 * nothing where something changed in between.
 */
import { useState, type ReactNode } from 'react'
import type { Answer } from '../../api.ts'
import { ConfirmDialog, Dialog } from '../../components/confirm-dialog.tsx'
import { DiffView } from '../../components/diff-view.tsx'
import { amountText } from '../../figures.ts'
import { useAct } from '../../use-api.ts'
import { visibleText } from '../../visible-text.ts'
import type { ActedEvent } from './acts.tsx'

type Planned = Answer<'POST /events/{source}/{event_id}/redecide/plan'>
type Plan = NonNullable<Planned['plan']>

/** Asks why, shows the plan, does it. */
export function RedecideDialog({ event, close }: { event: ActedEvent; close(): void }): ReactNode {
  const [planned, setPlanned] = useState<{ answer: Planned; reason: string } | null>(null)
  const redecide = useAct('POST /events/{source}/{event_id}/redecide')
  const { source, event_id } = event
  if (planned === null) {
    return (
      <AskForPlan
        event={event}
        close={close}
        done={(answer, reason) => setPlanned({ answer, reason })}
      />
    )
  }
  const { plan, confirm, decision } = planned.answer
  if (plan === null) {
    return (
      <Dialog title="Decided anew already" close={close}>
        <p className="dialog-text">
          Decision {decision?.decision_id} stands in its place:{' '}
          {visibleText(decision?.reason ?? '')}
        </p>
        <div className="dialog-buttons">
          <button type="button" className="button primary" autoFocus onClick={close}>
            Close
          </button>
        </div>
      </Dialog>
    )
  }
  return (
    <ConfirmDialog
      title="What deciding it anew changes"
      verb="Decide anew"
      wide
      reason={planned.reason}
      typed={confirm ?? undefined}
      close={close}
      act={async ({ reason, confirm: typed }) => {
        const body = { plan_id: plan.plan_id, reason, confirm: typed }
        const answer = await redecide.mutateAsync({ params: { source, event_id }, body })
        return answer.outcome === 'redecided'
          ? `Decided anew: decision ${answer.decision_id}`
          : 'It was decided anew already: nothing was changed'
      }}
    >
      <p>
        The present code decides <strong>{plan.kind}</strong>: {visibleText(plan.because)}
      </p>
      <DiffView label="What changes" before={linesBefore(plan)} after={linesAfter(plan)} />
    </ConfirmDialog>
  )
}

function AskForPlan({
  event: { source, event_id },
  close,
  done,
}: {
  event: ActedEvent
  close(): void
  done(answer: Planned, reason: string): void
}): ReactNode {
  const plan = useAct('POST /events/{source}/{event_id}/redecide/plan')
  return (
    <ConfirmDialog
      title="Decide anew"
      verb="Show the plan"
      closes={false}
      close={close}
      act={async ({ reason }) =>
        done(await plan.mutateAsync({ params: { source, event_id }, body: { reason } }), reason)
      }
    >
      <p>
        First a plan: what the code that runs now would decide of it. Its body is read for that,
        which is recorded. Nothing is changed yet.
      </p>
    </ConfirmDialog>
  )
}

function linesBefore({ supersedes, order }: Plan): string[] {
  return [
    `decision: ${supersedes.kind}, because ${supersedes.reason}`,
    `order ${order.id}: ${order.from ?? 'not opened'}`,
  ]
}

function linesAfter(plan: Plan): string[] {
  const { order, payment } = plan
  return [
    `decision: ${plan.kind}, because ${plan.because}`,
    `order ${order.id}: ${order.to ?? order.from ?? 'not opened'}`,
    ...(payment === null
      ? []
      : [
          `payment ${payment.id}: ${amountText(payment.amount, payment.currency)} ${payment.currency}${payment.applied ? '' : ', kept but not applied'}`,
        ]),
    ...plan.effects.map(({ type, reference, amount, currency }) =>
      `effect ${type} ${reference} ${amount === null || currency === null ? '' : `${amountText(amount, currency)} ${currency}`}`.trim(),
    ),
    ...plan.granted.map((name) => `granted: ${name}`),
    ...plan.revoked.map((name) => `revoked: ${name}`),
    ...plan.operations.map(({ name, destination }) => `sent to ${destination}: ${name}`),
    ...plan.findings.map((kind) => `finding opened: ${kind}`),
    ...plan.closes.map((finding) => `finding closed: ${finding}`),
  ]
}
