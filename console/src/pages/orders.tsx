/** Every order, those opened last first. */
import type { ReactNode } from 'react'
import type { ItemOf } from '../api.ts'
import { Id } from '../components/copy-button.tsx'
import type { Column } from '../components/data-table.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import type { Filter } from '../components/filters.tsx'
import { ListView } from '../components/list-view.tsx'
import { Moment } from '../components/moment.tsx'
import { Money } from '../components/money.tsx'
import { Page } from '../components/page.tsx'
import { StateBadge } from '../components/state-badge.tsx'
import { linkTo } from '../links.ts'
import { visibleText } from '../visible-text.ts'

type Order = ItemOf<'GET /orders'>

const filters: readonly Filter[] = [
  { kind: 'text', name: 'text', label: 'Order', hint: 'begins with' },
  { kind: 'text', name: 'state', label: 'State', hint: 'paid' },
  { kind: 'text', name: 'workflow', label: 'Workflow' },
  { kind: 'text', name: 'subject', label: 'Subject', hint: 'user:42' },
  { kind: 'time', name: 'from', label: 'Opened from' },
  { kind: 'time', name: 'to', label: 'Until' },
]

const columns: readonly Column<Order>[] = [
  {
    head: 'Order',
    wide: true,
    cell: (order) => <Id of={order.order_id} label="order id" copy={false} />,
  },
  {
    head: 'State',
    cell: (order) => (
      <StateBadge quiet state={order.state} tone={order.entitles ? 'good' : 'calm'} />
    ),
  },
  { head: 'Workflow', cell: (order) => order.workflow },
  {
    head: 'Subject',
    wide: true,
    cell: ({ subject }) =>
      subject === null ? <span className="none">—</span> : visibleText(subject),
  },
  {
    head: 'Expected',
    align: 'end',
    spare: true,
    cell: (order) => <Money amount={order.expected_amount} currency={order.currency} />,
  },
  { head: 'Changed', align: 'end', spare: true, cell: (order) => <Moment at={order.updated_at} /> },
  { head: 'Opened', align: 'end', cell: (order) => <Moment at={order.opened_at} /> },
]

/** The page. */
export function OrdersPage(): ReactNode {
  return (
    <Page title="Orders" lead="What was bought. A green state is one that entitles to something.">
      <ListView
        route="GET /orders"
        label="Orders"
        columns={columns}
        filters={filters}
        exported="orders"
        keyOf={(order) => order.order_id}
        linkOf={(order) => linkTo('order', { order_id: order.order_id })}
        empty={
          <EmptyState title="There is no order yet">
            Your checkout opens one with <code>openOrder</code>, or the first event of a workflow
            that says <code>opens: 'event'</code> does.
          </EmptyState>
        }
      />
    </Page>
  )
}
