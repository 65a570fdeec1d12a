/** What an order has: payments, entitlements, effects, operations, findings, each with its page. */
import type { ReactNode } from 'react'
import type { Column } from '../../components/data-table.tsx'
import { Moment } from '../../components/moment.tsx'
import { Money } from '../../components/money.tsx'
import { Rows } from '../../components/rows.tsx'
import { StateBadge } from '../../components/state-badge.tsx'
import { linkTo } from '../../links.ts'
import { visibleText } from '../../visible-text.ts'
import { wordsOf } from '../../words.ts'
import { Effects, Operations } from '../event/made.tsx'
import type { OrderRecord } from '../order.tsx'

/** The tables; findings only where there are any. */
export function OrderRows({ record }: { record: OrderRecord }): ReactNode {
  return (
    <div className="columns">
      <Rows
        title="Payments"
        none="Nothing was paid."
        columns={paymentColumns}
        rows={record.payments}
        keyOf={({ payment_id: id }) => id}
      />
      <Rows
        title="Entitlements"
        none="It entitles to nothing."
        columns={entitlementColumns}
        rows={record.entitlements}
        keyOf={({ subject, entitlement }) => `${subject} ${entitlement}`}
        linkOf={({ subject }) => linkTo('subject', { subject })}
      />
      <Effects effects={record.effects} none="Nothing was fulfilled." />
      <Operations operations={record.operations} none="Nothing was sent." />
      {record.findings.length > 0 && (
        <Rows
          title="Findings"
          columns={findingColumns}
          rows={record.findings}
          keyOf={({ finding_id: id }) => id}
          linkOf={({ finding_id }) => linkTo('finding', { finding_id })}
        />
      )}
    </div>
  )
}

const paymentColumns: readonly Column<OrderRecord['payments'][number]>[] = [
  {
    head: 'Payment',
    wide: true,
    cell: ({ payment_id: id }) => <span className="id-text">{visibleText(id)}</span>,
  },
  {
    head: 'Amount',
    align: 'end',
    cell: ({ amount, currency }) => <Money amount={amount} currency={currency} />,
  },
  {
    head: 'Counts',
    cell: ({ applied }) => (
      <StateBadge
        quiet
        state={applied ? 'yes' : 'kept, not applied'}
        tone={applied ? 'good' : 'warn'}
      />
    ),
  },
  { head: 'Recorded', align: 'end', cell: (each) => <Moment at={each.recorded_at} /> },
]

const entitlementColumns: readonly Column<OrderRecord['entitlements'][number]>[] = [
  { head: 'Who', wide: true, cell: ({ subject }) => visibleText(subject) },
  {
    head: 'What',
    cell: ({ entitlement, quantity }) =>
      `${visibleText(entitlement)}${quantity === null || quantity === '1' ? '' : ` × ${quantity}`}`,
  },
  {
    head: 'Is',
    cell: ({ active, stated }) => (
      <StateBadge
        quiet
        state={active ? 'active' : stated ? 'dormant' : 'revoked'}
        tone={active ? 'good' : 'calm'}
      />
    ),
  },
  { head: 'Until', align: 'end', cell: (each) => <Moment at={each.valid_until} /> },
]

const findingColumns: readonly Column<OrderRecord['findings'][number]>[] = [
  { head: 'Finding', cell: ({ kind }) => wordsOf(kind) },
  { head: 'State', cell: ({ state }) => <StateBadge quiet state={state} /> },
  { head: 'Owner', wide: true, cell: ({ owner }) => visibleText(owner) },
  { head: 'Due', align: 'end', cell: (each) => <Moment at={each.due_at} /> },
]
