/** Requests that were not let in, counted by the minute, and what each reason asks of somebody. */
import type { ReactNode } from 'react'
import type { ItemOf } from '../api.ts'
import type { Column } from '../components/data-table.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import type { Filter } from '../components/filters.tsx'
import { ListView } from '../components/list-view.tsx'
import { Moment } from '../components/moment.tsx'
import { Count } from '../components/money.tsx'
import { Page } from '../components/page.tsx'
import { wordsOf } from '../words.ts'
import { InboxTabs } from './inbox-tabs.tsx'

type Rejection = ItemOf<'GET /rejections'>

const filters: readonly Filter[] = [
  { kind: 'text', name: 'source', label: 'Source' },
  {
    kind: 'choice',
    name: 'reason',
    label: 'Reason',
    choices: [
      'mismatch',
      'missing',
      'malformed',
      'too_old',
      'too_new',
      'unknown_source',
      'too_large',
      'unavailable',
    ],
  },
  { kind: 'time', name: 'from', label: 'From' },
  { kind: 'time', name: 'to', label: 'Until' },
]

const columns: readonly Column<Rejection>[] = [
  { head: 'Last', cell: (rejection) => <Moment at={rejection.last_at} show="clock" /> },
  { head: 'Source', cell: ({ source }) => (source === '' ? 'unknown' : source) },
  { head: 'Reason', cell: ({ reason }) => wordsOf(reason) },
  { head: 'Times', align: 'end', cell: ({ times }) => <Count of={times} /> },
  { head: 'What it means', wide: true, cell: Meaning },
]

function Meaning({ means, next }: Rejection): ReactNode {
  return (
    <span className="wraps">
      {means} <span className="muted">{next}</span>
    </span>
  )
}

/** The page. */
export function RejectionsPage(): ReactNode {
  return (
    <Page
      title="Rejected"
      lead="Requests that were answered with an error and stored nothing. Their bodies are never kept."
    >
      <InboxTabs current="rejections" />
      <ListView
        route="GET /rejections"
        label="Rejected requests"
        columns={columns}
        filters={filters}
        exported="rejections"
        keyOf={(rejection) => rejection.rejection_id}
        empty={
          <EmptyState title="Nothing was rejected">
            A request with a wrong signature, of an unknown source or past the limits would be
            counted here.
          </EmptyState>
        }
      />
    </Page>
  )
}
