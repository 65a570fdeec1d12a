/** Why an event is in its state, and what happens next: the first thing that somebody asks. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { Icon } from '../../components/icons.tsx'
import { Moment } from '../../components/moment.tsx'
import { linkOf } from '../../links.ts'
import { visibleText } from '../../visible-text.ts'
import type { EventRecord } from '../event.tsx'

/** One banner: the state in a sentence. */
export function EventNow({ record }: { record: EventRecord }): ReactNode {
  const { tone, icon, text } = told(record)
  return (
    <div className="banner" data-tone={tone}>
      <Icon name={icon} />
      <div className="banner-text">{text}</div>
    </div>
  )
}

interface Told {
  readonly tone: 'calm' | 'warn' | 'bad' | 'good'
  readonly icon: 'check' | 'clock' | 'alert'
  readonly text: ReactNode
}

function told(record: EventRecord): Told {
  const { event, head, decisions } = record
  const final = decisions.find((decision) => decision.final)
  switch (event.state) {
    case 'dead':
      return {
        tone: 'bad',
        icon: 'alert',
        text: (
          <>
            <strong>It cannot be processed.</strong>{' '}
            {visibleText(event.last_error ?? 'No reason was kept.')}
            {head.rearmed_by === 'redelivery' &&
              ' It is tried again when the provider sends it again.'}{' '}
            Mend the cause, then replay it.
          </>
        ),
      }
    case 'deferred':
      return { tone: 'warn', icon: 'clock', text: <Waiting record={record} /> }
    case 'pending':
      return { tone: 'calm', icon: 'clock', text: <Pending record={record} /> }
    case 'ignored':
      return {
        tone: 'calm',
        icon: 'check',
        text: (
          <>
            <strong>It changes nothing.</strong>{' '}
            {visibleText(final?.reason ?? 'No workflow asks for its type.')}
          </>
        ),
      }
    default:
      return {
        tone: final?.kind === 'contradicted' ? 'bad' : 'good',
        icon: final?.kind === 'contradicted' ? 'alert' : 'check',
        text: (
          <>
            <strong>Decided: {final?.kind ?? 'processed'}.</strong>{' '}
            {visibleText(final?.reason ?? '')}
          </>
        ),
      }
  }
}

function Waiting({ record: { event, waits } }: { record: EventRecord }): ReactNode {
  const about = waits.flatMap((wait) => wait.about ?? [])
  return (
    <>
      <strong>It waits for {visibleText(event.waits_for ?? 'something that is missing')}</strong>
      {event.deadline_at !== null && (
        <>
          {' '}
          until <Moment at={event.deadline_at} show="both" />
        </>
      )}
      . It is woken by itself when that comes
      {about.length > 0 && ' to '}
      {about.map(({ kind, id }) => (
        <Link key={`${kind} ${id}`} to={linkOf(kind, id) ?? ''}>
          {kind} {visibleText(id)}
        </Link>
      ))}
      .
    </>
  )
}

function Pending({ record: { event, head } }: { record: EventRecord }): ReactNode {
  if (head.in_work) return <strong>A worker has it in hand at this moment.</strong>
  if (event.waits_for !== null) {
    return <strong>It waits for {visibleText(event.waits_for)}.</strong>
  }
  return (
    <>
      <strong>It waits for a worker.</strong>
      {event.last_error !== null && ` The last attempt failed: ${visibleText(event.last_error)}`}
      {event.next_attempt_at !== null && (
        <>
          {' '}
          Next attempt <Moment at={event.next_attempt_at} />.
        </>
      )}
    </>
  )
}
