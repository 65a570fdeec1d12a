/** One subject: what this customer may use now, and because of what. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Answer } from '../api.ts'
import { Id } from '../components/copy-button.tsx'
import type { Column } from '../components/data-table.tsx'
import { Icon } from '../components/icons.tsx'
import { Moment } from '../components/moment.tsx'
import { Page } from '../components/page.tsx'
import { Read } from '../components/read.tsx'
import { Rows } from '../components/rows.tsx'
import { StateBadge } from '../components/state-badge.tsx'
import { groupedText } from '../figures.ts'
import { linkOf, linkTo } from '../links.ts'
import type { PageProps } from '../routes.tsx'
import { useGet } from '../use-api.ts'
import { visibleText } from '../visible-text.ts'
import { wordsOf } from '../words.ts'
import { SubjectActs } from './subject/acts.tsx'

type Record = Answer<'GET /subjects/{subject}'>
type Ground = Record['grounds'][number]

/** The page. */
export function SubjectPage({ params }: PageProps): ReactNode {
  const { subject = '' } = params
  const read = useGet('GET /subjects/{subject}', { params: { subject } })
  return (
    <Page
      title={visibleText(subject)}
      kind="Subject"
      heading={<Id of={subject} label="subject" />}
      actions={read.data && <SubjectActs subject={subject} />}
    >
      <Read of={read}>{(data) => <SubjectBody record={data} />}</Read>
    </Page>
  )
}

function SubjectBody({ record }: { record: Record }): ReactNode {
  const { may_use: usable, grounds, orders, findings, customers, acts } = record
  return (
    <>
      <MayUse record={record} />
      {findings.length > 0 && (
        <Rows
          title="What asks for a person"
          columns={findingColumns}
          rows={findings}
          keyOf={({ finding_id: id }) => id}
          linkOf={({ finding_id: id }) => linkTo('finding', { finding_id: id })}
        />
      )}
      <Rows
        title="Because of what"
        none={usable.length === 0 ? 'No order ever gave it anything.' : ''}
        columns={groundColumns}
        rows={grounds}
        keyOf={(row) => `${row.order_id} ${row.subject} ${row.entitlement}`}
        linkOf={({ order_id: id }) => linkTo('order', { order_id: id })}
      />
      <div className="columns">
        <Rows
          title="Orders"
          columns={orderColumns}
          rows={orders}
          keyOf={({ order_id: id }) => id}
          linkOf={({ order_id: id }) => linkTo('order', { order_id: id })}
        />
        <Rows
          title="Customers at providers"
          none="No provider’s customer was linked with it."
          columns={customerColumns}
          rows={customers}
          keyOf={({ source, customer_id: id }) => `${source} ${id}`}
        />
      </div>
      {acts.length > 0 && (
        <Rows
          title="Links and merges"
          columns={actColumns}
          rows={acts}
          keyOf={({ act, target, acted_at: at }) => `${act} ${target} ${at}`}
        />
      )}
      {record.is_cut && <p className="muted">A list ends at 100: the others are in the lists.</p>}
    </>
  )
}

/** The answer, before anything else. */
function MayUse({
  record: { subject, present, merged, may_use: usable },
}: {
  record: Record
}): ReactNode {
  const some = usable.length > 0
  return (
    <div className="banner" data-tone={some ? 'good' : 'calm'}>
      <Icon name={some ? 'check' : 'clock'} />
      <div className="banner-text">
        {some ? <strong>May use now: </strong> : <strong>May use nothing at this moment.</strong>}
        {usable.map(({ entitlement, quantity, valid_until: until }, index) => (
          <span key={entitlement}>
            {index > 0 && ', '}
            {visibleText(entitlement)}
            {quantity !== '1' && ` × ${groupedText(quantity)}`}
            {until !== null && (
              <>
                {' until '}
                <Moment at={until} show="both" />
              </>
            )}
          </span>
        ))}
        {present !== subject && (
          <p>
            It was merged into{' '}
            <Link to={linkTo('subject', { subject: present })}>{visibleText(present)}</Link>.
          </p>
        )}
        {merged.length > 0 && <p>Merged into it: {merged.map(visibleText).join(', ')}</p>}
      </div>
    </div>
  )
}

function Cause({ of }: { of: Ground['granted'] }): ReactNode {
  if (of === null) return <span className="none">—</span>
  const to = of.event === null ? null : linkOf(of.event.kind, of.event.id)
  const text = visibleText(of.reason === '' ? wordsOf(of.kind) : of.reason)
  return (
    <>
      {to === null ? text : <Link to={to}>{text}</Link>} <Moment at={of.decided_at} />
    </>
  )
}

const groundColumns: readonly Column<Ground>[] = [
  {
    head: 'May use',
    cell: ({ entitlement, quantity }) =>
      `${visibleText(entitlement)}${quantity === null || quantity === '1' ? '' : ` × ${groupedText(quantity)}`}`,
  },
  {
    head: 'Now',
    cell: ({ in_force: now }) => (
      <StateBadge quiet state={now ? 'in force' : 'not in force'} tone={now ? 'good' : 'calm'} />
    ),
  },
  { head: 'Order', cell: ({ order_id: id }) => <span className="id-text">{visibleText(id)}</span> },
  { head: 'Its state', cell: ({ order_state: state }) => <StateBadge quiet state={state} /> },
  { head: 'Given by', cell: ({ granted }) => <Cause of={granted} /> },
  { head: 'Changed last by', cell: ({ changed }) => <Cause of={changed} /> },
  { head: 'Until', align: 'end', cell: ({ valid_until: until }) => <Moment at={until} /> },
]

const findingColumns: readonly Column<Record['findings'][number]>[] = [
  { head: 'Finding', wide: true, cell: ({ kind }) => wordsOf(kind) },
  { head: 'Order', cell: ({ order_id: id }) => <span className="id-text">{visibleText(id)}</span> },
  { head: 'Owner', cell: ({ owner }) => visibleText(owner) },
  { head: 'Due', align: 'end', cell: ({ due_at: due }) => <Moment at={due} /> },
]

const orderColumns: readonly Column<Record['orders'][number]>[] = [
  {
    head: 'Order',
    wide: true,
    cell: ({ order_id: id }) => <span className="id-text">{visibleText(id)}</span>,
  },
  { head: 'Workflow', cell: ({ workflow }) => visibleText(workflow) },
  {
    head: 'State',
    cell: ({ state, entitles }) => (
      <StateBadge quiet state={state} tone={entitles ? 'good' : 'calm'} />
    ),
  },
  { head: 'Opened', align: 'end', cell: ({ opened_at: at }) => <Moment at={at} /> },
]

const customerColumns: readonly Column<Record['customers'][number]>[] = [
  {
    head: 'Customer',
    wide: true,
    cell: ({ customer_id: id }) => <Id of={id} label="customer id" />,
  },
  { head: 'At', cell: ({ source }) => visibleText(source) },
  { head: 'Linked', align: 'end', cell: ({ linked_at: at }) => <Moment at={at} /> },
]

const actColumns: readonly Column<Record['acts'][number]>[] = [
  { head: 'Act', cell: ({ act }) => act },
  { head: 'Of', cell: ({ target }) => visibleText(target) },
  { head: 'To', cell: ({ subject }) => visibleText(subject) },
  { head: 'Why', wide: true, cell: ({ reason }) => visibleText(reason) },
  { head: 'By', cell: ({ actor }) => visibleText(actor) },
  { head: 'When', align: 'end', cell: ({ acted_at: at }) => <Moment at={at} /> },
]
