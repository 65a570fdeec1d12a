/** Findings: where both sides differ, since when, and who answers for it until when. */
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
import { StateBadge, Tag } from '../components/state-badge.tsx'
import { linkTo } from '../links.ts'
import { visibleText } from '../visible-text.ts'
import { toneOf, wordsOf } from '../words.ts'

type Finding = ItemOf<'GET /findings'>

const filters: readonly Filter[] = [
  {
    kind: 'choice',
    name: 'state',
    label: 'State',
    choices: ['unfinished', 'open', 'repairing', 'dismissed', 'closed'],
  },
  { kind: 'choice', name: 'class', label: 'Class', choices: ['contradiction', 'lag'] },
  { kind: 'text', name: 'kind', label: 'Kind', hint: 'paid_twice' },
  { kind: 'text', name: 'owner', label: 'Owner' },
  { kind: 'text', name: 'order_id', label: 'Order' },
  { kind: 'flag', name: 'overdue', label: 'Overdue' },
]

const columns: readonly Column<Finding>[] = [
  { head: 'Finding', wide: true, cell: (finding) => wordsOf(finding.kind) },
  { head: 'Class', cell: (finding) => <Tag tone={toneOf(finding.class)}>{finding.class}</Tag> },
  { head: 'State', cell: (finding) => <StateBadge quiet state={finding.state} /> },
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
  { head: 'Owner', cell: (finding) => visibleText(finding.owner) },
  { head: 'Seen', align: 'end', spare: true, cell: (finding) => `${finding.times_seen} ×` },
  { head: 'Since', align: 'end', cell: (finding) => <Moment at={finding.first_seen_at} /> },
  {
    head: 'Due',
    align: 'end',
    cell: (finding) =>
      finding.overdue ? <Tag tone="bad">overdue</Tag> : <Moment at={finding.due_at} />,
  },
]

/** The page. */
export function FindingsPage(): ReactNode {
  return (
    <Page
      title="Findings"
      lead="Where the provider’s records and ours differ, or something waits for too long. Each has an owner and a deadline."
    >
      <ListView
        route="GET /findings"
        label="Findings"
        columns={columns}
        filters={filters}
        exported="findings"
        keyOf={(finding) => finding.finding_id}
        linkOf={(finding) => linkTo('finding', { finding_id: finding.finding_id })}
        empty={
          <EmptyState title="Nothing was ever found">
            Passes over the provider’s records, and every decision that is a contradiction, write
            here what differs.
          </EmptyState>
        }
      />
    </Page>
  )
}
