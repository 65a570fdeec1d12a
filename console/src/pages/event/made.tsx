/** What an event made happen: effects, which happen once, and calls to the outside. */
import type { ReactNode } from 'react'
import type { Column } from '../../components/data-table.tsx'
import { Money } from '../../components/money.tsx'
import { Rows } from '../../components/rows.tsx'
import { StateBadge } from '../../components/state-badge.tsx'
import { linkTo } from '../../links.ts'
import { visibleText } from '../../visible-text.ts'
import type { EventRecord } from '../event.tsx'

type Effect = EventRecord['effects'][number]
type Operation = EventRecord['operations'][number]

const effectColumns: readonly Column<Effect>[] = [
  { head: 'Effect', cell: ({ effect_type: type }) => visibleText(type) },
  {
    head: 'Reference',
    wide: true,
    cell: ({ effect_reference: reference }) =>
      reference === '' ? <span className="none">once for the order</span> : visibleText(reference),
  },
  {
    head: 'Amount',
    align: 'end',
    cell: ({ amount, currency }) => <Money amount={amount} currency={currency} />,
  },
]

/** The effects that its decisions recorded. */
export function Effects({
  effects,
  none,
}: {
  effects: readonly Effect[]
  /** Said where there are none. */
  none: string
}): ReactNode {
  return (
    <Rows
      title="Effects"
      none={none}
      columns={effectColumns}
      rows={effects}
      keyOf={(effect) => `${effect.effect_type} ${effect.effect_reference}`}
    />
  )
}

const operationColumns: readonly Column<Operation>[] = [
  { head: 'Operation', cell: ({ name }) => visibleText(name) },
  { head: 'To', cell: ({ destination }) => visibleText(destination) },
  { head: 'State', cell: ({ state }) => <StateBadge quiet state={state} /> },
  {
    head: 'Next',
    wide: true,
    cell: ({ next }) => <span className="wraps">{visibleText(next.text)}</span>,
  },
  { head: 'Attempts', align: 'end', cell: ({ attempts }) => attempts },
]

/** The calls that they asked for. */
export function Operations({
  operations,
  none,
}: {
  operations: readonly Operation[]
  none: string
}): ReactNode {
  return (
    <Rows
      title="Operations"
      none={none}
      columns={operationColumns}
      rows={operations}
      keyOf={({ operation_id: id }) => id}
      linkOf={({ operation_id }) => linkTo('operation', { operation_id })}
    />
  )
}
