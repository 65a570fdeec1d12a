/** The order: where it stands and why, what is open about it, and its whole story in one line of time. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Answer } from '../api.ts'
import { Id } from '../components/copy-button.tsx'
import { Icon } from '../components/icons.tsx'
import { JsonView } from '../components/json-view.tsx'
import { Moment } from '../components/moment.tsx'
import { Money } from '../components/money.tsx'
import { Facts, Page, Section } from '../components/page.tsx'
import { Read } from '../components/read.tsx'
import { StateBadge } from '../components/state-badge.tsx'
import { Story } from '../components/story.tsx'
import { linkOf, linkTo } from '../links.ts'
import type { PageProps } from '../routes.tsx'
import { useGet } from '../use-api.ts'
import { visibleText } from '../visible-text.ts'
import { Answers, OrderActs } from './order/acts.tsx'
import { OrderGraph } from './order/graph.tsx'
import { OpenThings, Refused } from './order/open.tsx'
import { OrderRows } from './order/rows.tsx'

/** An order with all that belongs to it. */
export type OrderRecord = Answer<'GET /orders/{order_id}'>

/** The page. */
export function OrderPage({ params }: PageProps): ReactNode {
  const { order_id: id = '' } = params
  const read = useGet('GET /orders/{order_id}', { params: { order_id: id } })
  const record = read.data
  const order = record?.order ?? null
  return (
    <Page
      title={`Order ${visibleText(id)}`}
      kind={order === null ? 'Order' : `Order of workflow ${visibleText(order.workflow)}`}
      heading={<Id of={id} label="order id" />}
      actions={order !== null && <OrderActs order={order} />}
      facts={
        order !== null && (
          <>
            <StateBadge state={order.state} tone={order.entitles ? 'good' : 'calm'} />
            <span className="muted">{order.entitles ? 'entitles' : 'does not entitle'}</span>
          </>
        )
      }
    >
      <Read of={read} lines={8}>
        {(record) => <OrderBody id={id} record={record} />}
      </Read>
    </Page>
  )
}

function OrderBody({ id, record }: { id: string; record: OrderRecord }): ReactNode {
  const { open, refused, timeline, decisions, omitted_decisions: omitted } = record
  return (
    <>
      <Why record={record} />
      {open.length > 0 && <OpenThings open={open} />}
      {record.order !== null && (
        <div className="columns">
          <OrderFacts order={record.order} />
          <OrderGraph id={id} />
        </div>
      )}
      <Section
        title="What happened"
        aside={omitted > 0 && `${omitted} older decisions are left out`}
      >
        <Story
          label="The story of this order"
          entries={timeline}
          own={{ kind: 'order', id }}
          evidenceOf={({ what, decision_id: decision }) =>
            what === 'decided'
              ? evidence(decisions.find((each) => each.decision_id === decision)?.evidence)
              : undefined
          }
        />
      </Section>
      {refused.length > 0 && <Refused refused={refused} />}
      <OrderRows record={record} />
      {record.answers.length > 0 && <Answers answers={record.answers} />}
    </>
  )
}

function evidence(of: unknown): ReactNode {
  const given = typeof of === 'object' && of !== null && Object.keys(of).length > 0
  return given ? <JsonView value={of} label="evidence" open={3} /> : undefined
}

/** Why it is in its state, in one sentence. */
function Why({ record: { why, order } }: { record: OrderRecord }): ReactNode {
  if (why === null) {
    return (
      <div className="banner" data-tone="warn">
        <Icon name="alert" />
        <div className="banner-text">
          <strong>This order was never opened.</strong> What named it was refused, or waits: see
          below.
        </div>
      </div>
    )
  }
  const to = why.event === null ? null : linkOf(why.event.kind, why.event.id)
  return (
    <div className="banner" data-tone={order?.entitles === true ? 'good' : 'calm'}>
      <Icon name={order?.entitles === true ? 'check' : 'clock'} />
      <div className="banner-text">
        <strong>{visibleText(why.state)}:</strong> {visibleText(why.text)}
        {why.since !== null && (
          <span className="muted">
            {' '}
            since <Moment at={why.since} show="both" />
          </span>
        )}
        {to !== null && (
          <>
            {' '}
            <Link to={to}>the event</Link>
          </>
        )}
      </div>
    </div>
  )
}

function OrderFacts({ order }: { order: NonNullable<OrderRecord['order']> }): ReactNode {
  const { subject, names } = order
  return (
    <Section title="The order">
      <Facts
        of={[
          [
            'For',
            subject === null ? null : (
              <Link key="subject" to={linkTo('subject', { subject })}>
                {visibleText(subject)}
              </Link>
            ),
          ],
          [
            'Expected',
            <Money key="money" amount={order.expected_amount} currency={order.currency} />,
          ],
          ['Account', order.provider_account],
          ['Opened', <Moment key="opened" at={order.opened_at} show="both" />],
          ['Changed', <Moment key="updated" at={order.updated_at} show="both" />],
          ['Version', order.version],
          ...names.map(
            ({ kind, name }) =>
              [kind.replaceAll('_', ' '), <Id key={name} of={name} label={kind} />] as const,
          ),
        ]}
      />
    </Section>
  )
}
