/** One event: what it is, what was decided of it and why, how often it came, and all that it made happen. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Answer } from '../api.ts'
import { Id } from '../components/copy-button.tsx'
import { Moment } from '../components/moment.tsx'
import { Facts, Page, Section } from '../components/page.tsx'
import { Read } from '../components/read.tsx'
import { StateBadge } from '../components/state-badge.tsx'
import { Story } from '../components/story.tsx'
import { bytesText } from '../figures.ts'
import { linkOf, linkTo } from '../links.ts'
import type { PageProps } from '../routes.tsx'
import { useGet } from '../use-api.ts'
import { visibleText } from '../visible-text.ts'
import { EventActs } from './event/acts.tsx'
import { Decisions } from './event/decisions.tsx'
import { Deliveries } from './event/deliveries.tsx'
import { Effects, Operations } from './event/made.tsx'
import { EventNow } from './event/now.tsx'

/** An event with all that belongs to it. */
export type EventRecord = Answer<'GET /events/{source}/{event_id}'>

/** The page. */
export function EventPage({ params }: PageProps): ReactNode {
  const { source = '', event_id = '' } = params
  const read = useGet('GET /events/{source}/{event_id}', { params: { source, event_id } })
  const record = read.data
  const type = record?.event.event_type ?? event_id
  return (
    <Page
      title={visibleText(type)}
      kind={`Event of ${visibleText(source)}`}
      facts={record !== undefined && <StateBadge state={record.event.state} />}
      lead={<Id of={event_id} label="event id" />}
      actions={record !== undefined && <EventActs record={record} />}
    >
      <Read of={read}>{(record) => <EventBody record={record} />}</Read>
    </Page>
  )
}

function EventBody({ record }: { record: EventRecord }): ReactNode {
  const { decisions, deliveries, effects, operations, timeline } = record
  return (
    <>
      <EventNow record={record} />
      <EventFacts record={record} />
      {decisions.length > 0 && <Decisions decisions={decisions} />}
      <div className="columns">
        <Effects effects={effects} none="Nothing was fulfilled because of this event." />
        <Operations operations={operations} none="Nothing was sent because of this event." />
      </div>
      <Section title="What happened">
        <Story
          label="The story of this event"
          entries={timeline}
          own={{ kind: 'event', id: `${record.event.source}/${record.event.event_id}` }}
        />
      </Section>
      <Deliveries deliveries={deliveries} total={record.event.deliveries} />
    </>
  )
}

function EventFacts({ record }: { record: EventRecord }): ReactNode {
  const { event, head, caused_by: cause } = record
  return (
    <Section title="The event">
      <Facts
        of={[
          ['Order', head.order_id === null ? null : <OrderLink key="order" id={head.order_id} />],
          ['Received', <Moment key="received" at={event.received_at} show="both" />],
          [
            'Happened at the provider',
            <Moment key="occurred" at={event.occurred_at} show="both" />,
          ],
          ['Came by way of', event.via],
          [
            'Delivered',
            event.deliveries < 2
              ? ['not by a webhook', 'once'][event.deliveries]
              : `${event.deliveries} times`,
          ],
          ['Attempts', event.attempts],
          ['Written for API', head.api_version],
          ['Body', `${bytesText(head.body_bytes)}${head.has_body ? '' : ', no longer kept'}`],
          ['SHA-256', <Id key="sha" of={head.body_sha256} label="SHA-256 of the body" />],
          [
            'Caused by our own',
            cause === null ? undefined : (
              <Link key="cause" to={linkOf(cause.kind, cause.id) ?? ''}>
                {cause.kind}
              </Link>
            ),
          ],
        ]}
      />
    </Section>
  )
}

function OrderLink({ id }: { id: string }): ReactNode {
  return (
    <Link to={linkTo('order', { order_id: id })}>
      <span className="id-text">{visibleText(id)}</span>
    </Link>
  )
}
