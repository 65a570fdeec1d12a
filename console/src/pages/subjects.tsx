/** Who may use what, because of which order. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { ItemOf } from '../api.ts'
import { Id } from '../components/copy-button.tsx'
import type { Column } from '../components/data-table.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import type { Filter } from '../components/filters.tsx'
import { ListView } from '../components/list-view.tsx'
import { Moment } from '../components/moment.tsx'
import { Page } from '../components/page.tsx'
import { StateBadge } from '../components/state-badge.tsx'
import { groupedText } from '../figures.ts'
import { linkTo } from '../links.ts'
import { visibleText } from '../visible-text.ts'

type Entitlement = ItemOf<'GET /entitlements'>

const filters: readonly Filter[] = [
  { kind: 'text', name: 'subject', label: 'Subject', hint: 'begins with' },
  { kind: 'text', name: 'entitlement', label: 'Entitlement', hint: 'pro' },
  { kind: 'text', name: 'order_id', label: 'Order' },
  { kind: 'flag', name: 'in_force', label: 'In force' },
]

const columns: readonly Column<Entitlement>[] = [
  { head: 'Subject', wide: true, cell: ({ subject }) => visibleText(subject) },
  { head: 'May use', cell: ({ entitlement }) => visibleText(entitlement) },
  {
    head: 'How many',
    align: 'end',
    cell: ({ quantity }) => (quantity === null ? '1' : groupedText(quantity)),
  },
  {
    head: 'Now',
    cell: ({ in_force: inForce }) => (
      <StateBadge
        quiet
        state={inForce ? 'in force' : 'not in force'}
        tone={inForce ? 'good' : 'calm'}
      />
    ),
  },
  {
    head: 'Because of',
    cell: ({ order_id: order }) => (
      <Link to={linkTo('order', { order_id: order })}>
        <Id of={order} label="order id" copy={false} />
      </Link>
    ),
  },
  { head: 'Until', align: 'end', cell: (row) => <Moment at={row.valid_until} show="clock" /> },
]

/** The page. */
export function SubjectsPage(): ReactNode {
  return (
    <Page
      title="Subjects"
      lead="Who may use what, and because of which order. An entitlement ends by the database’s clock, with or without an event."
    >
      <ListView
        route="GET /entitlements"
        label="Entitlements"
        columns={columns}
        filters={filters}
        exported="entitlements"
        keyOf={(row) => `${row.order_id} ${row.subject} ${row.entitlement}`}
        linkOf={({ subject }) => linkTo('subject', { subject })}
        empty={
          <EmptyState title="Nobody may use anything yet">
            A decision that says <code>entitle</code> gives access, and the order’s state takes it
            away again.
          </EmptyState>
        }
      />
    </Page>
  )
}
