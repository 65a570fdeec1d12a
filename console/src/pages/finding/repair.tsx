/**
 * Repairing a finding: a plan that asks the provider and changes nothing, read as a difference; then exactly that,
 * with a typed confirmation. Where something changed in between, nothing is done.
 */
import { useState, type ReactNode } from 'react'
import type { Answer } from '../../api.ts'
import { ConfirmDialog, Dialog } from '../../components/confirm-dialog.tsx'
import { DiffView } from '../../components/diff-view.tsx'
import { Loading } from '../../components/page.tsx'
import { ProblemBanner } from '../../components/problem.tsx'
import { amountText } from '../../figures.ts'
import { useAct, useGet } from '../../use-api.ts'
import { visibleText } from '../../visible-text.ts'

type Planned = Answer<'GET /findings/{finding_id}/plan'>
type Plan = NonNullable<Planned['plan']>

interface Asked {
  readonly choice?: string
  readonly to?: string
}

/** The dialog. */
export function RepairDialog({ id, close }: { id: string; close(): void }): ReactNode {
  const [asked, setAsked] = useState<Asked>({})
  const read = useGet(
    'GET /findings/{finding_id}/plan',
    { params: { finding_id: id }, query: asked },
    { refresh: false },
  )
  const planned = read.isPlaceholderData ? undefined : read.data
  if (planned === undefined || planned.outcome === 'choose') {
    return (
      <Dialog title="Repair" close={close}>
        <ProblemBanner problem={read.error} again={() => void read.refetch()} />
        {planned === undefined
          ? read.error === null && (
              <>
                <p className="muted">The provider is asked what it has now.</p>
                <Loading />
              </>
            )
          : null}
        {planned !== undefined && <p className="dialog-text">{visibleText(planned.why ?? '')}</p>}
        {planned !== undefined && <Choices planned={planned} asked={asked} ask={setAsked} />}
        <div className="dialog-buttons">
          <button type="button" className="button" onClick={close}>
            Cancel
          </button>
        </div>
      </Dialog>
    )
  }
  return <PlannedRepair id={id} planned={planned} asked={asked} ask={setAsked} close={close} />
}

function PlannedRepair({
  id,
  planned,
  asked,
  ask,
  close,
}: {
  id: string
  planned: Planned
  asked: Asked
  ask(asked: Asked): void
  close(): void
}): ReactNode {
  const apply = useAct('POST /findings/{finding_id}/apply')
  const { plan, confirm } = planned
  return (
    <ConfirmDialog
      title={plan === null ? 'Both sides agree by now' : 'What the repair changes'}
      verb={plan === null ? 'Close the finding' : 'Apply'}
      typed={confirm}
      wide={plan !== null}
      dangerous={plan?.refund != null}
      close={close}
      act={async ({ reason, confirm: typed }) => {
        const report = await apply.mutateAsync({
          params: { finding_id: id },
          body: {
            plan_id: plan?.plan_id ?? null,
            choice: plan?.choice ?? null,
            reason,
            confirm: typed,
          },
        })
        return outcomes[report.outcome]
      }}
    >
      {plan === null ? (
        <p>Nothing is left to be done: applying closes the finding.</p>
      ) : (
        <>
          <ul>
            {plan.summary
              .filter((line) => !isEvidence(line))
              .map((line) => (
                <li key={line}>{visibleText(line)}</li>
              ))}
          </ul>
          <DiffView label="What changes" before={linesBefore(plan)} after={linesAfter(plan)} />
          {plan.summary.some(isEvidence) && (
            <details className="more">
              <summary>What the provider says</summary>
              {plan.summary.filter(isEvidence).map((line) => (
                <p key={line}>{visibleText(line.replace('the provider says of ', ''))}</p>
              ))}
            </details>
          )}
          {planned.choices.length > 1 && (
            <details className="more">
              <summary>Another way</summary>
              <Choices planned={planned} asked={asked} ask={ask} />
            </details>
          )}
        </>
      )}
    </ConfirmDialog>
  )
}

/** The lines of a plan that say what it was made from. */
function isEvidence(line: string): boolean {
  return line.startsWith('the provider says ')
}

const outcomes = {
  applied: 'Repaired: it is verified against the provider next',
  recorded: 'This repair was applied before: nothing was changed',
  agreed: 'Both sides agree: the finding is closed',
} as const

/** What can be done, where there are several ways; one of them asks for a state. */
function Choices({
  planned,
  asked,
  ask,
}: {
  planned: Planned
  asked: Asked
  ask(asked: Asked): void
}): ReactNode {
  const [to, setTo] = useState(asked.to ?? '')
  const current = asked.to === undefined ? (planned.plan?.choice ?? asked.choice) : 'target'
  return (
    <fieldset className="choices">
      <legend className="unseen">What to do</legend>
      {planned.choices.map(({ choice, does }) => (
        <label key={choice} className="choice">
          <input
            type="radio"
            name="choice"
            checked={choice === current}
            onChange={() => (choice === 'target' ? ask({ to }) : ask({ choice }))}
            disabled={choice === 'target' && to.trim() === ''}
          />
          <span>
            <strong>{visibleText(choice)}</strong>{' '}
            <span className="muted">{visibleText(does.replace('--to says', 'you say'))}</span>
            {choice === 'target' && (
              <input
                type="text"
                aria-label="State that the order is to be in"
                placeholder="state, then choose"
                value={to}
                onChange={(event) => setTo(event.target.value.trim())}
              />
            )}
          </span>
        </label>
      ))}
    </fieldset>
  )
}

function moneyText(of: { amount: string; currency: string } | null): string {
  return of === null ? 'none' : `${amountText(of.amount, of.currency)} ${of.currency}`
}

function linesBefore({ order, voided, revoked }: Plan): string[] {
  return [
    ...(order === null ? [] : [`order ${order.order_id}: ${order.from ?? 'not opened'}`]),
    ...(order?.subject == null ? [] : [`for ${order.subject.from ?? 'nobody'}`]),
    ...(order?.expected == null ? [] : [`expected ${moneyText(order.expected.from)}`]),
    ...voided.map((payment) => `payment ${payment} counts`),
    ...revoked.map((name) => `entitled: ${name}`),
  ]
}

function linesAfter(plan: Plan): string[] {
  const { order, payments, effects, granted, operations, refund } = plan
  return [
    ...(order === null ? [] : [`order ${order.order_id}: ${order.to}`]),
    ...(order?.subject == null ? [] : [`for ${order.subject.to ?? 'nobody'}`]),
    ...(order?.expected == null ? [] : [`expected ${moneyText(order.expected.to)}`]),
    ...payments.map((payment) => `payment ${payment.payment_id}: ${moneyText(payment)} counts`),
    ...effects.map(({ effect_type: type, effect_reference: reference, amount, currency }) =>
      `effect ${type} ${reference} ${amount === null || currency === null ? '' : moneyText({ amount, currency })}`.trim(),
    ),
    ...granted.map((name) => `entitled: ${name}`),
    ...operations.map(({ name, destination }) => `sent to ${destination}: ${name}`),
    ...(refund === null ? [] : [`refund of ${refund.payment}: ${moneyText(refund)}`]),
  ]
}
