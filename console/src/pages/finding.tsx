/** One finding: what differs, since when, who answers for it until when, and what can be done about it. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Answer } from '../api.ts'
import { Id } from '../components/copy-button.tsx'
import { Icon } from '../components/icons.tsx'
import { JsonView } from '../components/json-view.tsx'
import { Moment } from '../components/moment.tsx'
import { Facts, Page, Section } from '../components/page.tsx'
import { Read } from '../components/read.tsx'
import { StateBadge } from '../components/state-badge.tsx'
import { Story } from '../components/story.tsx'
import { linkOf, linkTo } from '../links.ts'
import type { PageProps } from '../routes.tsx'
import { useGet } from '../use-api.ts'
import { visibleText } from '../visible-text.ts'
import { sentence } from '../words.ts'
import { FindingActs } from './finding/acts.tsx'

type Record = Answer<'GET /findings/{finding_id}'>

/** The page. */
export function FindingPage({ params }: PageProps): ReactNode {
  const { finding_id: id = '' } = params
  const read = useGet('GET /findings/{finding_id}', { params: { finding_id: id } })
  const finding = read.data?.finding
  return (
    <Page
      title={finding === undefined ? 'Finding' : sentence(finding.kind)}
      kind={finding === undefined ? 'Finding' : `Finding, ${finding.class}`}
      facts={finding !== undefined && <StateBadge state={finding.state} />}
      lead={<Id of={id} label="finding id" />}
      actions={
        finding !== undefined && (
          <FindingActs finding={finding} allowed={read.data?.allowed ?? []} />
        )
      }
    >
      <Read of={read}>{(data) => <FindingBody record={data} />}</Read>
    </Page>
  )
}

function FindingBody({ record }: { record: Record }): ReactNode {
  const { finding, event, timeline } = record
  const { order_id: order, record: compared } = finding
  return (
    <>
      <Due finding={finding} />
      <div className="columns">
        <Section title="The finding">
          <Facts
            of={[
              [
                'Order',
                order === null ? null : (
                  <Link key="order" to={linkTo('order', { order_id: order })}>
                    <span className="id-text">{visibleText(order)}</span>
                  </Link>
                ),
              ],
              ['Owner', visibleText(finding.owner)],
              ['Severity', <StateBadge key="severity" quiet state={finding.severity} />],
              ['First seen', <Moment key="first" at={finding.first_seen_at} show="both" />],
              ['Last seen', <Moment key="last" at={finding.last_seen_at} show="both" />],
              ['Seen', `${finding.times_seen} times`],
              [
                'Event',
                event === null ? undefined : (
                  <Link key="event" to={linkOf(event.kind, event.id) ?? ''}>
                    {visibleText(finding.event_type ?? event.id)}
                  </Link>
                ),
              ],
              [
                'Compared with',
                compared === null ? undefined : (
                  <Id key="record" of={compared.id} label={compared.kind} />
                ),
              ],
              [
                'Dismissed until',
                finding.dismissed_until === null ? undefined : (
                  <Moment key="until" at={finding.dismissed_until} show="both" />
                ),
              ],
            ]}
          />
        </Section>
        <Section title="What differs">
          <JsonView value={finding.evidence} label="evidence" open={3} />
        </Section>
      </div>
      <Section title="What happened">
        <Story
          label="The story of this finding"
          entries={timeline}
          own={{ kind: 'finding', id: finding.finding_id }}
        />
      </Section>
    </>
  )
}

/** Where it stands, in one sentence. */
function Due({ finding }: { finding: Record['finding'] }): ReactNode {
  const { state, overdue, due_at: due, closed_at: closed, closed_because: because } = finding
  if (state === 'closed' || state === 'dismissed') {
    return (
      <div className="banner" data-tone="good">
        <Icon name="check" />
        <div className="banner-text">
          <strong>{sentence(state)}</strong>
          {because !== null && `: ${visibleText(because)}`}
          {closed !== null && (
            <span className="muted">
              {' '}
              <Moment at={closed} show="both" />
            </span>
          )}
        </div>
      </div>
    )
  }
  return (
    <div className="banner" data-tone={overdue ? 'bad' : 'warn'}>
      <Icon name={overdue ? 'alert' : 'clock'} />
      <div className="banner-text">
        <strong>
          {state === 'repairing' ? 'Repaired, and not verified yet.' : 'It asks for a person.'}
        </strong>{' '}
        {overdue ? 'It was due' : 'It is due'} <Moment at={due} show="both" />.
      </div>
    </div>
  )
}
