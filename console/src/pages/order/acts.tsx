/** What can be done with an order itself: end what was given away, and look at what its provider answered. */
import type { ReactNode } from 'react'
import { Acts } from '../../components/acts.tsx'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { Moment } from '../../components/moment.tsx'
import { Rows } from '../../components/rows.tsx'
import { RevealDialog } from '../../components/reveal-dialog.tsx'
import { useMay } from '../../session.tsx'
import { useAct } from '../../use-api.ts'
import { visibleText } from '../../visible-text.ts'
import type { OrderRecord } from '../order.tsx'

/** The button of a grant that holds. */
export function OrderActs({ order }: { order: NonNullable<OrderRecord['order']> }): ReactNode {
  return (
    <Acts
      of={[
        useMay('operate') &&
          order.workflow === 'grant' &&
          order.entitles && {
            name: 'End the grant',
            open: (close) => <EndDialog id={order.order_id} close={close} />,
          },
      ]}
    />
  )
}

function EndDialog({ id, close }: { id: string; close(): void }): ReactNode {
  const end = useAct('POST /grants/{order_id}/end')
  return (
    <ConfirmDialog
      title="End the grant"
      verb="End it"
      typed={id}
      dangerous
      close={close}
      act={async ({ reason, confirm }) => {
        await end.mutateAsync({ params: { order_id: id }, body: { reason, confirm } })
        return 'Ended'
      }}
    >
      <p>It gives access to nothing from this moment on.</p>
    </ConfirmDialog>
  )
}

type ProviderAnswer = OrderRecord['answers'][number]

/** What the provider was asked, and answered. */
export function Answers({ answers }: { answers: readonly ProviderAnswer[] }): ReactNode {
  const mayReveal = useMay('reveal')
  return (
    <Rows
      title="What the provider answered"
      columns={[
        {
          head: 'Object',
          wide: true,
          cell: ({ kind, object_id: id }) => (
            <span className="id-text">{visibleText(`${kind} ${id}`)}</span>
          ),
        },
        { head: 'Is there', cell: ({ is_found: found }) => (found ? 'yes' : 'no') },
        { head: 'Asked', align: 'end', cell: ({ requested_at: at }) => <Moment at={at} /> },
        ...(mayReveal
          ? [{ head: 'Bytes', cell: (row: ProviderAnswer) => <Reveal of={row} /> }]
          : []),
      ]}
      rows={answers}
      keyOf={({ evidence_id: id }) => id}
    />
  )
}

function Reveal({ of: { evidence_id } }: { of: ProviderAnswer }): ReactNode {
  const reveal = useAct('POST /reveal/evidence')
  return (
    <Acts
      of={[
        {
          name: 'Reveal',
          open: (close) => (
            <RevealDialog
              title="Reveal what was answered"
              close={close}
              read={async (reason) => {
                const bytes = await reveal.mutateAsync({ body: { evidence_id, reason } })
                return [{ name: 'Answer', ...bytes }]
              }}
            />
          ),
        },
      ]}
    />
  )
}
