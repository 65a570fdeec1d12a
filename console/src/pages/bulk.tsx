/** Acts on many things at once: planned, perhaps approved by somebody else, done one by one. */
import { useState } from 'react'
import type { ReactNode } from 'react'
import type { ItemOf } from '../api.ts'
import type { Column } from '../components/data-table.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import type { Filter } from '../components/filters.tsx'
import { ListView } from '../components/list-view.tsx'
import { Moment } from '../components/moment.tsx'
import { Page } from '../components/page.tsx'
import { StateBadge } from '../components/state-badge.tsx'
import { groupedText } from '../figures.ts'
import { linkTo } from '../links.ts'
import { useMay } from '../session.tsx'
import { visibleText } from '../visible-text.ts'
import { wordsOf } from '../words.ts'
import { PlanDialog } from './bulk/plan-dialog.tsx'

type Bulk = ItemOf<'GET /bulk'>

const filters: readonly Filter[] = [
  {
    kind: 'choice',
    name: 'state',
    label: 'State',
    choices: ['planned', 'waiting_approval', 'running', 'done', 'failed', 'canceled', 'rejected'],
  },
]

const columns: readonly Column<Bulk>[] = [
  { head: 'Act', cell: (bulk) => wordsOf(bulk.act) },
  { head: 'State', cell: (bulk) => <StateBadge quiet state={bulk.state} /> },
  {
    head: 'Done',
    align: 'end',
    cell: (bulk) => `${groupedText(bulk.count - bulk.pending)} of ${groupedText(bulk.count)}`,
  },
  { head: 'Failed', align: 'end', cell: (bulk) => groupedText(bulk.failed) },
  { head: 'By', cell: (bulk) => visibleText(bulk.actor) },
  {
    head: 'Approved by',
    spare: true,
    cell: ({ approved_by: by }) =>
      by === null ? <span className="none">—</span> : visibleText(by),
  },
  { head: 'Why', wide: true, cell: (bulk) => visibleText(bulk.reason) },
  { head: 'Planned', align: 'end', cell: (bulk) => <Moment at={bulk.planned_at} /> },
]

/** The page. */
export function BulkPage(): ReactNode {
  const mayOperate = useMay('operate')
  const [planning, setPlanning] = useState(false)
  return (
    <Page
      title="Bulk acts"
      lead="The same act on everything that fits a filter: what it would touch is fixed when it is planned, and nothing happens before it is started."
      actions={
        mayOperate && (
          <button type="button" className="button primary" onClick={() => setPlanning(true)}>
            Plan a bulk act
          </button>
        )
      }
    >
      <ListView
        route="GET /bulk"
        label="Bulk acts"
        columns={columns}
        filters={filters}
        keyOf={(bulk) => bulk.bulk_id}
        linkOf={(bulk) => linkTo('bulk_act', { bulk_id: bulk.bulk_id })}
        empty={
          <EmptyState title="No bulk act was planned yet">
            After an outage, say: replay every dead event of one type, or try everything again that
            a destination refused. A plan shows how many there are before anything happens.
          </EmptyState>
        }
      />
      {planning && <PlanDialog close={() => setPlanning(false)} />}
    </Page>
  )
}
