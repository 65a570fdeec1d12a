/** How everything else stands: destinations, findings, checkpoints, processes, the schema. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Column } from '../../components/data-table.tsx'
import { Duration, Moment } from '../../components/moment.tsx'
import { Count } from '../../components/money.tsx'
import { Facts, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { StateBadge } from '../../components/state-badge.tsx'
import { linkTo } from '../../links.ts'
import { visibleText } from '../../visible-text.ts'
import { wordsOf } from '../../words.ts'
import type { Overview } from '../overview.tsx'

/** The sections; what there is nothing of is left out. */
export function Standing({ overview }: { overview: Overview }): ReactNode {
  const { findings, destinations, checkpoints, rejections } = overview
  return (
    <div className="columns">
      <div>
        <Findings of={findings.by_kind} />
        {destinations.length > 0 && <Destinations of={destinations} />}
        {rejections.length > 0 && <Rejections of={rejections} />}
      </div>
      <div>
        <Processes of={overview.processes} />
        {checkpoints.length > 0 && <Checkpoints of={checkpoints} />}
        <Schema overview={overview} />
      </div>
    </div>
  )
}

type Kind = Overview['findings']['by_kind'][number]

const kindColumns: readonly Column<Kind>[] = [
  { head: 'Kind', cell: ({ kind }) => wordsOf(kind) },
  { head: 'Class', cell: (each) => <StateBadge quiet state={each.class} /> },
  { head: 'Open', align: 'end', cell: ({ open }) => <Count of={open} /> },
  {
    head: 'Overdue',
    align: 'end',
    cell: ({ overdue }) =>
      overdue === 0 ? <span className="none">—</span> : <strong className="bad">{overdue}</strong>,
  },
]

function Findings({ of }: { of: readonly Kind[] }): ReactNode {
  return (
    <Rows
      title="Open findings"
      label="Open findings by kind"
      aside={<Link to={linkTo('findings')}>All</Link>}
      none="What we have and what the provider has agree."
      columns={kindColumns}
      rows={of}
      keyOf={({ kind }) => kind}
      linkOf={({ kind }) => linkTo('findings', {}, { kind, state: 'unfinished' })}
    />
  )
}

type Destination = Overview['destinations'][number]

const destinationColumns: readonly Column<Destination>[] = [
  { head: 'Destination', cell: ({ destination }) => visibleText(destination) },
  { head: 'Due', align: 'end', cell: ({ due }) => <Count of={due} /> },
  { head: 'Oldest', align: 'end', cell: (each) => <Duration ms={each.oldest_due_age_ms} /> },
  { head: 'Uncertain', align: 'end', cell: ({ uncertain }) => <Bad of={uncertain} /> },
  { head: 'Dead', align: 'end', cell: ({ dead }) => <Bad of={dead} /> },
  {
    head: 'Now',
    cell: ({ closed_until: until, failures }) =>
      until !== null ? (
        <StateBadge quiet state="resting" tone="warn" />
      ) : failures > 0 ? (
        <StateBadge quiet state={`${failures} failed in a row`} tone="warn" />
      ) : (
        <StateBadge quiet state="open for calls" tone="good" />
      ),
  },
]

function Bad({ of }: { of: number }): ReactNode {
  return of === 0 ? <span className="none">—</span> : <strong className="bad">{of}</strong>
}

function Destinations({ of }: { of: readonly Destination[] }): ReactNode {
  return (
    <Rows
      title="Destinations"
      columns={destinationColumns}
      rows={of}
      keyOf={({ destination }) => destination}
      linkOf={({ destination }) => linkTo('outbox', {}, { destination })}
    />
  )
}

type Rejection = Overview['rejections'][number]

const rejectionColumns: readonly Column<Rejection>[] = [
  { head: 'Reason', cell: ({ reason }) => wordsOf(reason) },
  {
    head: 'Source',
    wide: true,
    cell: ({ source }) => (source === '' ? 'unknown' : visibleText(source)),
  },
  { head: 'Times', align: 'end', cell: ({ times }) => <Count of={times} /> },
  { head: 'Last', align: 'end', cell: (each) => <Moment at={each.last_at} /> },
]

function Rejections({ of }: { of: readonly Rejection[] }): ReactNode {
  return (
    <Rows
      title="Rejected in the last day"
      label="Rejected requests"
      columns={rejectionColumns}
      rows={of}
      keyOf={({ source, reason }) => `${source} ${reason}`}
      linkOf={({ reason }) => linkTo('rejections', {}, { reason })}
    />
  )
}

type Process = Overview['processes'][number]

const processColumns: readonly Column<Process>[] = [
  { head: 'Process', cell: ({ host, pid }) => `${visibleText(host)} · ${pid}` },
  {
    head: 'Does',
    wide: true,
    cell: ({ roles }) => <span className="wraps">{roles.join(', ')}</span>,
  },
  {
    head: 'Is',
    cell: ({ alive }) => (
      <StateBadge quiet state={alive ? 'alive' : 'silent'} tone={alive ? 'good' : 'bad'} />
    ),
  },
  { head: 'Heard of', align: 'end', cell: (each) => <Moment at={each.seen_at} /> },
]

function Processes({ of }: { of: readonly Process[] }): ReactNode {
  return (
    <Rows
      title="Processes"
      none={
        <>
          No process has been heard of. Start one: <code>hookledger start</code>
        </>
      }
      columns={processColumns}
      rows={of}
      keyOf={({ process_id: id }) => id}
    />
  )
}

type Checkpoint = Overview['checkpoints'][number]

const checkpointColumns: readonly Column<Checkpoint>[] = [
  { head: 'Records', cell: ({ kind }) => wordsOf(kind) },
  { head: 'Source', wide: true, cell: ({ source }) => visibleText(source) },
  { head: 'Looked at until', align: 'end', cell: (each) => <Moment at={each.through} /> },
]

function Checkpoints({ of }: { of: readonly Checkpoint[] }): ReactNode {
  return (
    <Rows
      title="Checkpoints"
      label="How far the provider’s records have been looked at"
      aside={<Link to={linkTo('reconciliation')}>Passes</Link>}
      columns={checkpointColumns}
      rows={of}
      keyOf={({ source, kind }) => `${source} ${kind}`}
    />
  )
}

function Schema({ overview }: { overview: Overview }): ReactNode {
  const { schema, last_minute: minute, duplicates_absorbed: duplicates } = overview
  const drift = {
    none: <StateBadge quiet state="as this version expects" tone="good" />,
    older: <StateBadge quiet state="older: run hookledger migrate" tone="bad" />,
    newer: <StateBadge quiet state="newer than this process" tone="warn" />,
  }[schema.drift]
  return (
    <Section title="Figures">
      <Facts
        of={[
          ['Received in the last minute', <Count key="r" of={minute.received} />],
          ['Decided in the last minute', <Count key="d" of={minute.decided} />],
          ['Duplicates absorbed in a day', <Count key="a" of={duplicates} />],
          ['Schema', `${schema.name}, migration ${schema.migration}`],
          ['The schema is', drift],
          ['Bodies have partitions until', schema.partitions_until],
        ]}
      />
    </Section>
  )
}
