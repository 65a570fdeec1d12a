/** How far the provider's own records have been looked at, and what each pass came to. */
import type { ReactNode } from 'react'
import type { ItemOf } from '../api.ts'
import { DataTable, type Column } from '../components/data-table.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import type { Filter } from '../components/filters.tsx'
import { ListView } from '../components/list-view.tsx'
import { Duration, Moment } from '../components/moment.tsx'
import { Loading, Page, Section } from '../components/page.tsx'
import { ProblemBanner } from '../components/problem.tsx'
import { StateBadge } from '../components/state-badge.tsx'
import { useGet } from '../use-api.ts'
import { visibleText } from '../visible-text.ts'

type Checkpoint = ItemOf<'GET /checkpoints'>
type Run = ItemOf<'GET /runs'>

const checkpointColumns: readonly Column<Checkpoint>[] = [
  { head: 'Records', wide: true, cell: (each) => each.kind },
  { head: 'Source', cell: (each) => each.source },
  {
    head: 'Looked at until',
    align: 'end',
    cell: (each) => <Moment at={each.through} show="clock" />,
  },
  { head: 'That is', align: 'end', cell: (each) => <Duration ms={each.age_ms} /> },
  { head: 'Deep until', align: 'end', spare: true, cell: (each) => <Moment at={each.deep_at} /> },
  {
    head: 'Now',
    cell: (each) =>
      each.in_work ? <StateBadge quiet state="running" /> : <span className="none">—</span>,
  },
]

const runColumns: readonly Column<Run>[] = [
  { head: 'Began', cell: (run) => <Moment at={run.started_at} show="clock" /> },
  { head: 'Source', cell: (run) => run.source },
  { head: 'How', cell: (run) => run.how },
  { head: 'State', cell: (run) => <StateBadge quiet state={run.state} /> },
  { head: 'Injected', align: 'end', cell: (run) => run.injected },
  { head: 'Opened', align: 'end', cell: (run) => run.opened },
  { head: 'Closed', align: 'end', cell: (run) => run.closed },
  { head: 'Repaired', align: 'end', spare: true, cell: (run) => run.repaired },
  { head: 'Calls', align: 'end', spare: true, cell: (run) => run.calls },
  { head: 'Records', align: 'end', spare: true, cell: (run) => recordsOf(run.coverage) },
  { head: 'By', spare: true, cell: (run) => visibleText(run.actor) },
  {
    head: 'Trouble',
    wide: true,
    cell: (run) =>
      run.error === null ? (
        <span className="none">—</span>
      ) : (
        <span className="wraps">{visibleText(run.error)}</span>
      ),
  },
]

const filters: readonly Filter[] = [
  { kind: 'text', name: 'source', label: 'Source' },
  {
    kind: 'choice',
    name: 'state',
    label: 'State',
    choices: ['running', 'complete', 'failed', 'abandoned'],
  },
]

/** All records that a pass read, over its kinds. */
function recordsOf(coverage: unknown): ReactNode {
  if (typeof coverage !== 'object' || coverage === null) return <span className="none">—</span>
  const all = Object.values(coverage).map((each: unknown) =>
    Number((each as { readonly records?: unknown } | null)?.records ?? 0),
  )
  return all.reduce((sum, each) => sum + (Number.isFinite(each) ? each : 0), 0)
}

function Checkpoints(): ReactNode {
  const read = useGet('GET /checkpoints', {}, { refresh: 10 })
  const rows = read.data?.items
  return (
    <>
      <ProblemBanner problem={read.error} again={() => void read.refetch()} />
      {rows === undefined ? (
        read.error === null && <Loading />
      ) : rows.length === 0 ? (
        <EmptyState
          title="No provider was asked yet"
          hint="npm run --silent hookledger -- reconcile"
        >
          A source with an API key is asked on a schedule for its own records, or now:
        </EmptyState>
      ) : (
        <DataTable
          label="How far records were looked at"
          columns={checkpointColumns}
          rows={rows}
          keyOf={(each) => `${each.source} ${each.kind}`}
        />
      )}
    </>
  )
}

/** The page. */
export function ReconciliationPage(): ReactNode {
  return (
    <Page
      title="Reconciliation"
      lead="The provider’s own records are asked for what never arrived, and compared with what is here."
    >
      <Section title="How far" flush>
        <Checkpoints />
      </Section>
      <Section title="Passes" flush>
        <ListView
          route="GET /runs"
          label="Passes"
          columns={runColumns}
          filters={filters}
          exported="runs"
          keyOf={(run) => run.run_id}
          empty={
            <EmptyState title="There was no pass yet">
              A pass reads what changed at the provider since the last one, puts in what is missing,
              and compares the rest.
            </EmptyState>
          }
        />
      </Section>
    </Page>
  )
}
