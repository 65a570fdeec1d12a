/** The ledger: what was decided, and what payments and effects came of it, each once. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { ItemOf } from '../api.ts'
import { Id } from '../components/copy-button.tsx'
import type { Column } from '../components/data-table.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import type { Filter } from '../components/filters.tsx'
import { ListView } from '../components/list-view.tsx'
import { Moment } from '../components/moment.tsx'
import { Money } from '../components/money.tsx'
import { Page, Tabs } from '../components/page.tsx'
import { StateBadge } from '../components/state-badge.tsx'
import { groupedText } from '../figures.ts'
import { linkTo } from '../links.ts'
import type { PageProps } from '../routes.tsx'
import { visibleText } from '../visible-text.ts'
import { wordsOf } from '../words.ts'

const order: Filter = { kind: 'text', name: 'order_id', label: 'Order' }

function OrderLink({ of }: { of: string | null }): ReactNode {
  if (of === null) return <span className="none">—</span>
  return (
    <Link to={linkTo('order', { order_id: of })}>
      <Id of={of} label="order id" copy={false} />
    </Link>
  )
}

type Effect = ItemOf<'GET /effects'>

const effectColumns: readonly Column<Effect>[] = [
  { head: 'Effect', cell: (effect) => wordsOf(effect.effect_type) },
  {
    head: 'Reference',
    wide: true,
    cell: ({ effect_reference: reference }) =>
      reference === '' ? (
        <span className="none">once</span>
      ) : (
        <Id of={reference} label="reference" copy={false} />
      ),
  },
  { head: 'Order', cell: (effect) => <OrderLink of={effect.order_id} /> },
  {
    head: 'Amount',
    align: 'end',
    cell: (effect) => <Money amount={effect.amount} currency={effect.currency} />,
  },
  { head: 'Made by decision', align: 'end', spare: true, cell: (effect) => effect.decision_id },
  {
    head: 'Absorbed since',
    align: 'end',
    cell: ({ absorbed }) =>
      absorbed === '0' ? <span className="none">—</span> : `${groupedText(absorbed)} ×`,
  },
  { head: 'Recorded', align: 'end', cell: (effect) => <Moment at={effect.recorded_at} /> },
]

function Effects(): ReactNode {
  return (
    <ListView
      route="GET /effects"
      label="Effects"
      columns={effectColumns}
      filters={[
        order,
        { kind: 'text', name: 'type', label: 'Effect', hint: 'license' },
        { kind: 'text', name: 'reference', label: 'Reference', hint: 're_…' },
      ]}
      exported="effects"
      keyOf={(effect) => `${effect.order_id} ${effect.effect_type} ${effect.effect_reference}`}
      linkOf={(effect) => linkTo('order', { order_id: effect.order_id })}
      empty={
        <EmptyState title="Nothing was fulfilled yet">
          An effect is a fulfillment that exists once: its key is the order, what it is, and a
          reference. Whatever comes later about the same finds it there, and is counted as absorbed.
        </EmptyState>
      }
    />
  )
}

type Decision = ItemOf<'GET /decisions'>

const decisionKinds = [
  'fulfilled',
  'moved',
  'reversed',
  'absorbed',
  'skipped',
  'deferred',
  'contradicted',
  'ignored',
  'dead',
  'opened',
  'adopted',
]

const decisionColumns: readonly Column<Decision>[] = [
  { head: 'Decision', cell: (decision) => decision.decision_id },
  { head: 'Kind', cell: (decision) => <StateBadge quiet state={decision.kind} /> },
  { head: 'Order', cell: (decision) => <OrderLink of={decision.order_id} /> },
  {
    head: 'From → to',
    cell: ({ from_state: from, to_state: to }) =>
      to === null || from === to ? (
        <span className="none">—</span>
      ) : (
        `${wordsOf(from ?? 'nothing')} → ${wordsOf(to)}`
      ),
  },
  {
    head: 'Because of',
    spare: true,
    cell: ({ event_type: type, source, event_id: id }) =>
      type === null || source === null || id === null ? (
        <span className="none">—</span>
      ) : (
        <Link to={linkTo('event', { source, event_id: id })}>{type}</Link>
      ),
  },
  { head: 'Reason', wide: true, cell: ({ reason }) => visibleText(reason) },
  { head: 'Decided', align: 'end', cell: (decision) => <Moment at={decision.decided_at} /> },
]

function Decisions(): ReactNode {
  return (
    <ListView
      route="GET /decisions"
      label="Decisions"
      columns={decisionColumns}
      filters={[
        { kind: 'choice', name: 'kind', label: 'Kind', choices: decisionKinds },
        order,
        { kind: 'text', name: 'workflow', label: 'Workflow' },
      ]}
      exported="decisions"
      keyOf={(decision) => decision.decision_id}
      linkOf={({ order_id: id }) => (id === null ? null : linkTo('order', { order_id: id }))}
      empty={
        <EmptyState title="Nothing was decided yet">
          Every event gets one final decision, with its reason. Decisions are never changed.
        </EmptyState>
      }
    />
  )
}

type Payment = ItemOf<'GET /payments'>

const paymentColumns: readonly Column<Payment>[] = [
  {
    head: 'Payment',
    wide: true,
    cell: (payment) => <Id of={payment.payment_id} label="payment id" copy={false} />,
  },
  { head: 'Order', cell: (payment) => <OrderLink of={payment.order_id} /> },
  {
    head: 'Amount',
    align: 'end',
    cell: (payment) => <Money amount={payment.amount} currency={payment.currency} />,
  },
  {
    head: 'Counts',
    cell: ({ applied }) => (
      <StateBadge
        quiet
        state={applied ? 'applied' : 'contradicted'}
        tone={applied ? 'good' : 'bad'}
      />
    ),
  },
  { head: 'Source', spare: true, cell: (payment) => payment.source },
  { head: 'Recorded', align: 'end', cell: (payment) => <Moment at={payment.recorded_at} /> },
]

function Payments(): ReactNode {
  return (
    <ListView
      route="GET /payments"
      label="Payments"
      columns={paymentColumns}
      filters={[
        order,
        {
          kind: 'choice',
          name: 'applied',
          label: 'Counts',
          choices: [
            { value: 'true', text: 'applied' },
            { value: 'false', text: 'contradicted' },
          ],
        },
      ]}
      exported="payments"
      keyOf={(payment) => `${payment.source} ${payment.payment_id}`}
      linkOf={(payment) => linkTo('order', { order_id: payment.order_id })}
      empty={
        <EmptyState title="No payment is known yet">
          Money that was captured for an order, under the provider’s id. A refund counts against the
          payment that it names.
        </EmptyState>
      }
    />
  )
}

const lists = [
  { name: 'Effects', key: 'effects', show: Effects },
  { name: 'Decisions', key: 'decisions', show: Decisions },
  { name: 'Payments', key: 'payments', show: Payments },
] as const

/** The page; which list, the address says. */
export function LedgerPage({ params }: PageProps): ReactNode {
  const chosen = lists.find(({ key }) => key === params['list']) ?? lists[0]
  const tabs = lists.map(({ name, key }) => ({ name, to: linkTo('ledger_list', { list: key }) }))
  return (
    <Page
      title="Ledger"
      lead="What happened, each thing once. Rows are only ever added: the database refuses anything else."
    >
      <Tabs label="Ledger" tabs={tabs} current={linkTo('ledger_list', { list: chosen.key })} />
      <chosen.show />
    </Page>
  )
}
