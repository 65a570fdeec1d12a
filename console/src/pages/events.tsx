/** The inbox: every event, what became of it, and how many wait in which state. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { ItemOf } from '../api.ts'
import { Id } from '../components/copy-button.tsx'
import type { Column } from '../components/data-table.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import { useFilterValues, type Filter } from '../components/filters.tsx'
import { ListView } from '../components/list-view.tsx'
import { Moment } from '../components/moment.tsx'
import { Page } from '../components/page.tsx'
import { StateBadge } from '../components/state-badge.tsx'
import { groupedText } from '../figures.ts'
import { linkTo } from '../links.ts'
import { useUrlQuery } from '../location.ts'
import { useGet } from '../use-api.ts'
import { toneOf, wordsOf } from '../words.ts'
import { InboxTabs } from './inbox-tabs.tsx'

type Event = ItemOf<'GET /events'>

const states = ['pending', 'deferred', 'dead', 'processed', 'ignored']

const filters: readonly Filter[] = [
  { kind: 'text', name: 'text', label: 'Event id', hint: 'begins with' },
  { kind: 'text', name: 'type', label: 'Type', hint: 'refund.created' },
  { kind: 'choice', name: 'state', label: 'State', choices: states },
  { kind: 'text', name: 'source', label: 'Source' },
  { kind: 'text', name: 'order_id', label: 'Order' },
  { kind: 'time', name: 'from', label: 'From' },
  { kind: 'time', name: 'to', label: 'Until' },
]

const columns: readonly Column<Event>[] = [
  { head: 'Type', cell: (event) => event.event_type },
  {
    head: 'Event',
    wide: true,
    cell: (event) => <Id of={event.event_id} label="event id" copy={false} />,
  },
  { head: 'State', cell: (event) => <StateBadge quiet state={event.state} /> },
  {
    head: 'Order',
    cell: ({ order_id: order }) =>
      order === null ? (
        <span className="none">—</span>
      ) : (
        <Link to={linkTo('order', { order_id: order })}>
          <Id of={order} label="order id" copy={false} />
        </Link>
      ),
  },
  { head: 'Source', spare: true, cell: (event) => event.source },
  {
    head: 'Delivered',
    align: 'end',
    cell: ({ deliveries }) => (deliveries > 1 ? `${deliveries} ×` : 'once'),
  },
  { head: 'Attempts', align: 'end', spare: true, cell: (event) => event.attempts },
  { head: 'Received', align: 'end', cell: (event) => <Moment at={event.received_at} /> },
]

/** The page. */
export function EventsPage(): ReactNode {
  return (
    <Page
      title="Inbox"
      lead="Everything that providers told, once each, however often it was sent."
    >
      <InboxTabs current="events" />
      <StateCounts />
      <ListView
        route="GET /events"
        label="Events"
        columns={columns}
        filters={filters}
        exported="events"
        keyOf={(event) => `${event.source}/${event.event_id}`}
        linkOf={({ source, event_id }) => linkTo('event', { source, event_id })}
        empty={
          <EmptyState
            title="No event has arrived yet"
            hint="npm run --silent hookledger -- send checkout.session.completed --order 1"
          >
            Point your provider’s webhook at <code>/webhooks/&lt;source&gt;</code> of this server,
            or send a signed event yourself:
          </EmptyState>
        }
      />
    </Page>
  )
}

/** How many are in each state; each is a filter. */
function StateCounts(): ReactNode {
  const counts = useGet('GET /events/counts', {}, { refresh: 10 })
  const { state = '' } = useFilterValues(filters)
  const { set } = useUrlQuery()
  if (counts.data === undefined) return <div className="counts" />
  const given = new Map<string, number>(counts.data.counts.map((each) => [each.state, each.events]))
  return (
    <div className="counts" role="group" aria-label="Events by state">
      {states.map((each) => (
        <button
          key={each}
          type="button"
          className="count-button"
          data-tone={(given.get(each) ?? 0) > 0 ? toneOf(each) : 'calm'}
          aria-pressed={each === state}
          onClick={() => set({ state: each === state ? null : each })}
        >
          <strong>{groupedText(given.get(each) ?? 0)}</strong> {wordsOf(each)}
        </button>
      ))}
    </div>
  )
}
