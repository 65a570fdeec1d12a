/** The outbox: calls to the outside, where each stands, and what comes next. */
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
import { linkTo } from '../links.ts'
import { visibleText } from '../visible-text.ts'
import { wordsOf } from '../words.ts'

type Operation = ItemOf<'GET /operations'>

const filters: readonly Filter[] = [
  {
    kind: 'choice',
    name: 'state',
    label: 'State',
    choices: [
      'unfinished',
      'pending',
      'sending',
      'uncertain',
      'dead',
      'sent',
      'canceled',
      'discarded',
    ],
  },
  { kind: 'text', name: 'destination', label: 'Destination', hint: 'email' },
  { kind: 'text', name: 'order_id', label: 'Order' },
]

const columns: readonly Column<Operation>[] = [
  { head: 'Operation', wide: true, cell: (each) => visibleText(each.name) },
  { head: 'To', cell: (each) => each.destination },
  { head: 'State', cell: (each) => <StateBadge quiet state={each.state} /> },
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
  { head: 'Attempts', align: 'end', cell: (each) => each.attempts },
  {
    head: 'What comes next',
    wide: true,
    spare: true,
    cell: (each) => <Next of={each} />,
  },
  { head: 'Recorded', align: 'end', cell: (each) => <Moment at={each.created_at} /> },
]

function Next({ of }: { of: Operation }): ReactNode {
  if (of.blocked_by !== null) return <>waits for {wordsOf(of.blocked_by.name)} before it</>
  if (of.next_attempt_at !== null)
    return (
      <>
        next attempt <Moment at={of.next_attempt_at} />
      </>
    )
  if (of.state === 'uncertain') return <>nobody knows whether it happened</>
  if (of.state === 'dead')
    return <span className="wraps">{visibleText(of.last_error ?? 'a person decides')}</span>
  return <span className="none">—</span>
}

/** The page. */
export function OutboxPage(): ReactNode {
  return (
    <Page
      title="Outbox"
      lead="Calls to the outside: each has one id for ever, and is sent again only where that cannot do it twice."
    >
      <ListView
        route="GET /operations"
        label="Operations"
        columns={columns}
        filters={filters}
        exported="operations"
        keyOf={(each) => each.operation_id}
        linkOf={(each) => linkTo('operation', { operation_id: each.operation_id })}
        empty={
          <EmptyState title="Nothing was to be sent yet">
            A decision’s <code>send</code>, or <code>outbox.add</code> in your own transaction,
            records an operation in the same commit.
          </EmptyState>
        }
      />
    </Page>
  )
}
