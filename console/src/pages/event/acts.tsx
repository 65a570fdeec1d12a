/** What can be done with an event: the same path again, decided anew, and its body looked at. */
import type { ReactNode } from 'react'
import { Acts } from '../../components/acts.tsx'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { RevealDialog } from '../../components/reveal-dialog.tsx'
import { useMay } from '../../session.tsx'
import { useAct } from '../../use-api.ts'
import type { EventRecord } from '../event.tsx'
import { RedecideDialog } from './redecide.tsx'

/** An event, as far as acts need it. */
export type ActedEvent = EventRecord['event']

/** The buttons that the reader may press, and what they open. */
export function EventActs({ record }: { record: EventRecord }): ReactNode {
  const { event, head, decisions } = record
  const mayOperate = useMay('operate')
  const decided = decisions.find(({ final }) => final)?.kind
  return (
    <Acts
      of={[
        useMay('reveal') &&
          head.has_body && {
            name: 'Reveal body',
            icon: 'eye',
            open: (close) => <RevealEvent event={event} close={close} />,
          },
        mayOperate &&
          (decided === 'skipped' || decided === 'contradicted') && {
            name: 'Decide anew',
            open: (close) => <RedecideDialog event={event} close={close} />,
          },
        mayOperate &&
          head.has_body &&
          event.state !== 'processed' && {
            name: 'Replay',
            icon: 'refresh',
            primary: true,
            open: (close) => <ReplayDialog event={event} close={close} />,
          },
      ]}
    />
  )
}

function ReplayDialog({ event, close }: { event: ActedEvent; close(): void }): ReactNode {
  const replay = useAct('POST /events/{source}/{event_id}/replay')
  const { source, event_id } = event
  return (
    <ConfirmDialog
      title="Replay this event"
      verb="Replay"
      close={close}
      act={async ({ reason }) => {
        const answer = await replay.mutateAsync({ params: { source, event_id }, body: { reason } })
        switch (answer.outcome) {
          case 'replayed':
            return 'It is ready for the next worker'
          case 'pending':
            return 'It was waiting for a worker already'
          case 'recorded':
            return 'It has its decision already: nothing was changed'
        }
      }}
    >
      <p>
        It goes down the same path again, with the same checks. What happened once does not happen
        twice.
      </p>
    </ConfirmDialog>
  )
}

function RevealEvent({ event, close }: { event: ActedEvent; close(): void }): ReactNode {
  const reveal = useAct('POST /reveal/event')
  const { source, event_id } = event
  return (
    <RevealDialog
      title="Reveal the body"
      close={close}
      read={async (reason) => {
        const answer = await reveal.mutateAsync({ body: { source, event_id, reason } })
        return [{ name: 'Body', ...answer }]
      }}
    />
  )
}
