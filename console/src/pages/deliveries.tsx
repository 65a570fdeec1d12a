/** Every request that was let in: what it brought, and whether that was known already. */
import type { ReactNode } from 'react'
import type { ItemOf } from '../api.ts'
import { Id } from '../components/copy-button.tsx'
import type { Column } from '../components/data-table.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import type { Filter } from '../components/filters.tsx'
import { ListView } from '../components/list-view.tsx'
import { Moment } from '../components/moment.tsx'
import { Page } from '../components/page.tsx'
import { StateBadge } from '../components/state-badge.tsx'
import { linkTo } from '../links.ts'
import { InboxTabs } from './inbox-tabs.tsx'

type Delivery = ItemOf<'GET /deliveries'>

const filters: readonly Filter[] = [
  { kind: 'choice', name: 'verdict', label: 'It was', choices: ['new', 'duplicate'] },
  { kind: 'text', name: 'source', label: 'Source' },
  { kind: 'time', name: 'from', label: 'From' },
  { kind: 'time', name: 'to', label: 'Until' },
]

const columns: readonly Column<Delivery>[] = [
  { head: 'Received', cell: (delivery) => <Moment at={delivery.received_at} show="clock" /> },
  { head: 'It was', cell: ({ verdict }) => <StateBadge quiet state={verdict} /> },
  { head: 'Type', cell: (delivery) => delivery.event_type ?? <span className="none">—</span> },
  {
    head: 'Event',
    wide: true,
    cell: (delivery) => <Id of={delivery.event_id} label="event id" copy={false} />,
  },
  { head: 'Source', cell: (delivery) => delivery.source },
]

/** The page. */
export function DeliveriesPage(): ReactNode {
  return (
    <Page
      title="Requests"
      lead="Providers deliver at least once. A duplicate was answered 200 as well, and changed nothing."
    >
      <InboxTabs current="deliveries" />
      <ListView
        route="GET /deliveries"
        label="Requests"
        columns={columns}
        filters={filters}
        exported="deliveries"
        keyOf={(delivery) => delivery.delivery_id}
        linkOf={({ source, event_id }) => linkTo('event', { source, event_id })}
        empty={
          <EmptyState title="No request has arrived yet">
            Each request that a provider makes is listed here, also when it brings what is known
            already.
          </EmptyState>
        }
      />
    </Page>
  )
}
