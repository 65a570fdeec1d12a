/** Workflows: what may follow what, how many orders stand where, which versions ran. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Answer } from '../api.ts'
import { DataTable, type Column } from '../components/data-table.tsx'
import { Moment } from '../components/moment.tsx'
import { Page, Section } from '../components/page.tsx'
import { Read } from '../components/read.tsx'
import { Rows } from '../components/rows.tsx'
import { StateBadge, Tag } from '../components/state-badge.tsx'
import { groupedText } from '../figures.ts'
import { linkTo } from '../links.ts'
import type { PageProps } from '../routes.tsx'
import { useGet } from '../use-api.ts'
import { visibleText } from '../visible-text.ts'
import { Drawing } from './order/graph.tsx'

type Listed = Answer<'GET /workflows'>['workflows'][number]
type Record = Answer<'GET /workflows/{name}'>

/** What both pages say of a workflow. */
function Kind({ of }: { of: Pick<Record, 'is_configured' | 'in_shadow'> }): ReactNode {
  if (!of.is_configured) return <StateBadge quiet state="not configured" tone="warn" />
  return of.in_shadow ? <StateBadge quiet state="in shadow" tone="busy" /> : <Tag>in use</Tag>
}

const listColumns: readonly Column<Listed>[] = [
  { head: 'Workflow', wide: true, cell: ({ workflow }) => visibleText(workflow) },
  { head: 'Is', cell: (row) => <Kind of={row} /> },
  { head: 'Orders', align: 'end', cell: ({ orders }) => groupedText(orders) },
]

/** The list. */
export function WorkflowsPage(): ReactNode {
  const read = useGet('GET /workflows', {})
  return (
    <Page title="Workflows" lead="What decides over events, and what its orders may become.">
      <Read of={read}>
        {(data) => (
          <DataTable
            label="Workflows"
            columns={listColumns}
            rows={data.workflows}
            keyOf={({ workflow }) => workflow}
            linkOf={({ workflow }) => linkTo('workflow', { name: workflow })}
          />
        )}
      </Read>
    </Page>
  )
}

/** One of them. */
export function WorkflowPage({ params }: PageProps): ReactNode {
  const { name = '' } = params
  const read = useGet('GET /workflows/{name}', { params: { name } }, { refresh: 15 })
  return (
    <Page
      title={visibleText(name)}
      kind="Workflow"
      facts={read.data && <Kind of={read.data} />}
      lead={read.data && leadOf(read.data)}
    >
      <Read of={read}>{(data) => <WorkflowBody record={data} />}</Read>
    </Page>
  )
}

function leadOf({ opens, histories, is_configured: configured }: Record): string {
  if (!configured) return 'The configuration has it no longer: only what was recorded is known.'
  return `Its orders are opened by ${opens === 'app' ? 'the app' : 'events'}. ${
    histories === null
      ? 'It has no histories, so that nothing checks whether the order of events matters.'
      : 'At each start its histories are played in every order.'
  }`
}

function WorkflowBody({ record }: { record: Record }): ReactNode {
  const { workflow, states } = record
  return (
    <>
      <Section title="What may follow what">
        <Drawing label={`The states of ${workflow}`} graph={record} />
      </Section>
      <div className="columns">
        <Rows
          title="States"
          columns={stateColumns}
          rows={states}
          keyOf={({ state }) => state}
          linkOf={({ state }) => linkTo('orders', {}, { workflow, state })}
        />
        <Rows
          title="Versions"
          columns={versionColumns}
          rows={record.versions}
          keyOf={({ version }) => version}
        />
      </div>
      <p>
        <Link to={linkTo('orders', {}, { workflow })}>Its orders</Link>
      </p>
    </>
  )
}

const stateColumns: readonly Column<Record['states'][number]>[] = [
  { head: 'State', wide: true, cell: ({ state }) => visibleText(state) },
  {
    head: 'Entitles',
    cell: ({ entitles }) => (
      <StateBadge quiet state={entitles ? 'yes' : 'no'} tone={entitles ? 'good' : 'calm'} />
    ),
  },
  { head: 'Orders', align: 'end', cell: ({ orders }) => groupedText(orders) },
]

const versionColumns: readonly Column<Record['versions'][number]>[] = [
  {
    head: 'Version',
    wide: true,
    cell: ({ version }) => visibleText(version),
  },
  { head: 'Is', cell: ({ is_current: current }) => (current ? 'the present one' : 'older') },
  { head: 'Events', align: 'end', cell: ({ event_types: types }) => types.length },
  { head: 'First', align: 'end', cell: (row) => <Moment at={row.first_registered_at} /> },
  { head: 'Last', align: 'end', cell: (row) => <Moment at={row.last_registered_at} /> },
]
