/** One operation: what it promises, what was tried, what happens next, and what came of it. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Answer } from '../api.ts'
import { Id } from '../components/copy-button.tsx'
import type { Column } from '../components/data-table.tsx'
import { Icon } from '../components/icons.tsx'
import { JsonView } from '../components/json-view.tsx'
import { Moment } from '../components/moment.tsx'
import { Facts, Page, Section } from '../components/page.tsx'
import { Read } from '../components/read.tsx'
import { Rows } from '../components/rows.tsx'
import { StateBadge } from '../components/state-badge.tsx'
import { Story } from '../components/story.tsx'
import { bytesText } from '../figures.ts'
import { linkOf, linkTo } from '../links.ts'
import type { PageProps } from '../routes.tsx'
import { useGet } from '../use-api.ts'
import { visibleText } from '../visible-text.ts'
import { wordsOf } from '../words.ts'
import { OperationActs } from './operation/acts.tsx'

type Record = Answer<'GET /operations/{operation_id}'>
type Operation = Record['operation']

/** The page. */
export function OperationPage({ params }: PageProps): ReactNode {
  const { operation_id: id = '' } = params
  const read = useGet('GET /operations/{operation_id}', { params: { operation_id: id } })
  const operation = read.data?.operation
  return (
    <Page
      title={operation === undefined ? 'Operation' : visibleText(operation.name)}
      kind={
        operation === undefined ? 'Operation' : `Operation to ${visibleText(operation.destination)}`
      }
      facts={operation !== undefined && <StateBadge state={operation.state} />}
      lead={<Id of={id} label="operation id" />}
      actions={operation !== undefined && <OperationActs operation={operation} />}
    >
      <Read of={read}>{(data) => <OperationBody record={data} />}</Read>
    </Page>
  )
}

function OperationBody({ record }: { record: Record }): ReactNode {
  const { operation, caused, timeline } = record
  return (
    <>
      <Next operation={operation} />
      <OperationFacts operation={operation} />
      <Rows
        title="Attempts"
        none="It has not been tried yet."
        columns={attemptColumns}
        rows={operation.tries.toReversed()}
        keyOf={({ number, kind }) => `${kind} ${number}`}
      />
      {hasFields(operation.receipt) && (
        <Section title="What the destination said">
          <JsonView value={operation.receipt} label="receipt" />
        </Section>
      )}
      {caused.length > 0 && (
        <Rows
          title="Events that it caused"
          columns={causedColumns}
          rows={caused}
          keyOf={({ decision_id: decision }) => decision}
          linkOf={({ event_id: event }) => linkTo('search', {}, { q: event })}
        />
      )}
      {timeline.length > 0 && (
        <Section title="What happened">
          <Story
            label="The story of this operation"
            entries={timeline}
            own={{ kind: 'operation', id: operation.operation_id }}
          />
        </Section>
      )}
    </>
  )
}

/** What happens next, and whether somebody has to decide it. */
function Next({ operation }: { operation: Operation }): ReactNode {
  const { next, blocked_by: blocking, last_error: error } = operation
  return (
    <div
      className="banner"
      data-tone={next.asks ? 'bad' : operation.state === 'sent' ? 'good' : 'calm'}
    >
      <Icon name={next.asks ? 'alert' : operation.state === 'sent' ? 'check' : 'clock'} />
      <div className="banner-text">
        <strong>{next.asks ? 'This asks for you: ' : ''}</strong>
        {visibleText(next.text.replace('nothing: it is', 'It is'))}
        {next.at !== null && (
          <>
            {' '}
            (<Moment at={next.at} />)
          </>
        )}
        {error !== null && <span className="muted"> The last error: {visibleText(error)}</span>}
        {blocking !== null && (
          <>
            {' '}
            It waits for{' '}
            <Link to={linkTo('operation', { operation_id: blocking.operation_id })}>
              {visibleText(blocking.name)}
            </Link>
            , which is {blocking.state}.
          </>
        )}
      </div>
    </div>
  )
}

function OperationFacts({ operation }: { operation: Operation }): ReactNode {
  const { order_id: order, effect_type: effect, effect_reference: reference } = operation
  return (
    <Section title="The operation">
      <Facts
        of={[
          [
            'Order',
            order === null ? null : (
              <Link key="order" to={linkOf('order', order) ?? ''}>
                <span className="id-text">{visibleText(order)}</span>
              </Link>
            ),
          ],
          [
            'Because of',
            effect === null ? null : visibleText(`${wordsOf(effect)} ${reference ?? ''}`),
          ],
          ['Promise', operation.promise_text],
          ['Key', <Id key="key" of={operation.key} label="key" />],
          ['Key generation', operation.key_generation],
          ['The key holds until', <Moment key="until" at={operation.key_until} show="both" />],
          ['Recorded', <Moment key="created" at={operation.created_at} show="both" />],
          ['First tried', <Moment key="first" at={operation.first_attempt_at} show="both" />],
          ['Uncertain since', <Moment key="since" at={operation.uncertain_since} show="both" />],
          ['Finished', <Moment key="finished" at={operation.finished_at} show="both" />],
          ['Held by', operation.leased_by],
          [
            'Request',
            `${bytesText(operation.request_bytes)}${operation.has_request ? '' : ', no longer kept'}`,
          ],
          [
            'SHA-256',
            <Id key="sha" of={operation.request_sha256} label="SHA-256 of the request" />,
          ],
        ]}
      />
    </Section>
  )
}

type Attempt = Operation['tries'][number]

const attemptColumns: readonly Column<Attempt>[] = [
  {
    head: 'Attempt',
    cell: ({ number, kind }) => (kind === 'call' ? `call ${number}` : `${kind} ${number}`),
  },
  { head: 'Started', cell: (each) => <Moment at={each.started_at} show="clock" /> },
  {
    head: 'Came to',
    cell: ({ outcome, late }) => (
      <>
        {outcome === null ? (
          <StateBadge quiet state="no answer" tone="warn" />
        ) : (
          <StateBadge quiet state={outcome} />
        )}
        {late && <span className="muted"> too late</span>}
      </>
    ),
  },
  { head: 'Status', align: 'end', cell: ({ status }) => status ?? <span className="none">—</span> },
  {
    head: 'Error',
    wide: true,
    cell: ({ error }) =>
      error === null ? (
        <span className="none">—</span>
      ) : (
        <span className="wraps">{visibleText(error)}</span>
      ),
  },
  { head: 'Key', align: 'end', spare: true, cell: (each) => each.key_generation },
  { head: 'By', spare: true, cell: ({ dispatcher }) => visibleText(dispatcher) },
]

const causedColumns: readonly Column<Record['caused'][number]>[] = [
  { head: 'Type', cell: (each) => visibleText(each.event_type) },
  {
    head: 'Event',
    wide: true,
    cell: (each) => <span className="id-text">{visibleText(each.event_id)}</span>,
  },
  { head: 'Decided', cell: ({ kind }) => <StateBadge quiet state={kind} /> },
]

function hasFields(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}
