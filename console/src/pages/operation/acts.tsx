/** What can be done with an operation: tried again, said to be done or not, given up, and its bytes looked at. */
import { useState, type ReactNode } from 'react'
import { Acts } from '../../components/acts.tsx'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { RevealDialog } from '../../components/reveal-dialog.tsx'
import { useMay } from '../../session.tsx'
import { useAct } from '../../use-api.ts'

/** An operation, as far as acts need it. */
export interface ActedOperation {
  readonly operation_id: string
  readonly destination: string
  readonly order_id: string | null
  readonly state: string
  readonly has_request: boolean
}

interface DialogProps {
  readonly operation: ActedOperation
  close(): void
}

/** The buttons that the reader may press, and what they open. */
export function OperationActs({ operation }: { operation: ActedOperation }): ReactNode {
  const mayOperate = useMay('operate')
  const { state, has_request: kept } = operation
  const asks = state === 'dead' || state === 'uncertain'
  return (
    <Acts
      of={[
        useMay('reveal') &&
          kept && {
            name: 'Reveal request',
            icon: 'eye',
            open: (close) => <Reveal operation={operation} close={close} />,
          },
        mayOperate &&
          state === 'uncertain' && {
            name: 'Resolve',
            open: (close) => <ResolveDialog operation={operation} close={close} />,
          },
        mayOperate &&
          (asks || state === 'pending') && {
            name: 'Discard',
            open: (close) => <DiscardDialog operation={operation} close={close} />,
          },
        mayOperate &&
          asks && {
            name: 'Retry',
            icon: 'refresh',
            primary: true,
            open: (close) => <RetryDialog operation={operation} close={close} />,
          },
      ]}
    />
  )
}

/** What the server asks to be typed: the order, or where it goes. */
function typedOf({ order_id: order, destination }: ActedOperation): string {
  return order ?? destination
}

function RetryDialog({ operation, close }: DialogProps): ReactNode {
  const retry = useAct('POST /operations/{operation_id}/retry')
  const { operation_id } = operation
  return (
    <ConfirmDialog
      title="Try this operation again"
      verb="Retry"
      close={close}
      act={async ({ reason }) => {
        const answer = await retry.mutateAsync({ params: { operation_id }, body: { reason } })
        return answer.outcome === 'done'
          ? 'It is due now'
          : 'It was due already: nothing was changed'
      }}
    >
      <p>
        The same request again. Under the same key where the destination still knows it, so that it
        is not done twice.
      </p>
    </ConfirmDialog>
  )
}

function ResolveDialog({ operation, close }: DialogProps): ReactNode {
  const resolve = useAct('POST /operations/{operation_id}/resolve')
  const [as, setAs] = useState<'sent' | 'not_done' | null>(null)
  const { operation_id } = operation
  const options = [
    { as: 'sent', text: 'It was done', does: 'What follows from it goes on.' },
    { as: 'not_done', text: 'It was not done', does: 'It is sent again, under a new key.' },
  ] as const
  return (
    <ConfirmDialog
      title="What became of it?"
      verb="Record"
      typed={typedOf(operation)}
      ready={as !== null}
      close={close}
      act={async ({ reason, confirm }) => {
        if (as === null) return
        await resolve.mutateAsync({ params: { operation_id }, body: { as, reason, confirm } })
        return 'Recorded'
      }}
    >
      <p>Look at the destination first: nothing here can know it.</p>
      <fieldset className="choices">
        <legend className="unseen">What became of it</legend>
        {options.map((option) => (
          <label key={option.as} className="choice">
            <input
              type="radio"
              name="as"
              checked={as === option.as}
              onChange={() => setAs(option.as)}
            />
            <span>
              <strong>{option.text}</strong> <span className="muted">{option.does}</span>
            </span>
          </label>
        ))}
      </fieldset>
    </ConfirmDialog>
  )
}

function DiscardDialog({ operation, close }: DialogProps): ReactNode {
  const discard = useAct('POST /operations/{operation_id}/discard')
  const { operation_id } = operation
  return (
    <ConfirmDialog
      title="Discard this operation"
      verb="Discard"
      dangerous
      typed={typedOf(operation)}
      close={close}
      act={async ({ reason, confirm }) => {
        await discard.mutateAsync({ params: { operation_id }, body: { reason, confirm } })
        return 'Discarded: it is never sent'
      }}
    >
      <p>It is never sent, and whatever waits behind it goes on.</p>
    </ConfirmDialog>
  )
}

function Reveal({ operation, close }: DialogProps): ReactNode {
  const reveal = useAct('POST /reveal/operation')
  return (
    <RevealDialog
      title="Reveal request and answers"
      close={close}
      read={async (reason) => {
        const body = { operation_id: operation.operation_id, reason }
        const { parts } = await reveal.mutateAsync({ body })
        return parts.map(({ part, number, ...bytes }) => ({
          name: part === 'request' ? 'Request' : `Answer ${number}`,
          ...bytes,
        }))
      }}
    />
  )
}
