/** What people did and looked at: who, what, to what, why, when. Nothing here can be changed or taken away. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { ItemOf } from '../api.ts'
import type { Column } from '../components/data-table.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import type { Filter } from '../components/filters.tsx'
import { ListView } from '../components/list-view.tsx'
import { Moment } from '../components/moment.tsx'
import { Page } from '../components/page.tsx'
import { linkOf } from '../links.ts'
import { visibleText } from '../visible-text.ts'
import { wordsOf } from '../words.ts'

type Act = ItemOf<'GET /acts'>

const filters: readonly Filter[] = [
  { kind: 'text', name: 'actor', label: 'Who' },
  { kind: 'text', name: 'act', label: 'Act', hint: 'replay' },
  { kind: 'text', name: 'target', label: 'To what', hint: 'order:42' },
  { kind: 'time', name: 'from', label: 'From' },
  { kind: 'time', name: 'to', label: 'Until' },
]

const columns: readonly Column<Act>[] = [
  { head: 'When', cell: (act) => <Moment at={act.acted_at} show="clock" /> },
  { head: 'Who', cell: (act) => visibleText(act.actor) },
  { head: 'Did', cell: (act) => wordsOf(act.act) },
  { head: 'To what', cell: (act) => <Target of={act.target} /> },
  {
    head: 'Why',
    wide: true,
    cell: (act) => <span className="wraps">{visibleText(act.reason)}</span>,
  },
]

/** `order:42` as a link to the order. */
function Target({ of }: { of: string }): ReactNode {
  const colon = of.indexOf(':')
  const to = colon < 1 ? null : linkOf(of.slice(0, colon), of.slice(colon + 1))
  const text = <span className="id-text">{visibleText(of)}</span>
  return to === null ? text : <Link to={to}>{text}</Link>
}

/** The page. */
export function AuditLogPage(): ReactNode {
  return (
    <Page
      title="Audit log"
      lead="Every act of a person, and every payload that somebody looked at, with the reason they gave."
    >
      <ListView
        route="GET /acts"
        label="Acts"
        columns={columns}
        filters={filters}
        exported="acts"
        keyOf={(act) => act.act_id}
        empty={
          <EmptyState title="Nobody has done anything yet">
            Replays, repairs, grants and looks at payloads are written here, by whom and why, for
            ever.
          </EmptyState>
        }
      />
    </Page>
  )
}
