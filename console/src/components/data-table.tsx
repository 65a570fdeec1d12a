/**
 * A table of rows, dense on a wide screen and a list of cards on a narrow one. The whole row leads to its page
 * (the first cell holds the link, so that keyboards and screen readers have it too); j and k step through.
 */
import type { MouseEvent, ReactNode } from 'react'
import { Link } from 'wouter'
import { go } from '../location.ts'

/** A column. */
export interface Column<Row> {
  readonly head: string
  cell(row: Row): ReactNode
  /** Figures stand at the end. */
  readonly align?: 'end'
  /** Takes what room is left, and cuts its text; one or two columns of a table. */
  readonly wide?: boolean
  /** Left out on a narrow screen. */
  readonly spare?: boolean
}

/** Rows of one kind. */
export interface DataTableProps<Row> {
  /** What it lists, for who cannot see it: `Events`. */
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  keyOf(row: Row): string
  /** Where a row leads; null: nowhere. */
  linkOf?(row: Row): string | null
  /** Old rows while new ones are read. */
  readonly stale?: boolean
}

/** The table. Show an EmptyState in its place where there are no rows. */
export function DataTable<Row>(props: DataTableProps<Row>): ReactNode {
  const { label, columns, rows, keyOf, linkOf, stale = false } = props
  return (
    <div className="table-frame" aria-busy={stale}>
      <table className="table" role="table" aria-label={label}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <th key={column.head} role="columnheader" scope="col" className={classOf(column)}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <Row key={keyOf(row)} row={row} columns={columns} to={linkOf?.(row) ?? null} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Row<Item>({
  row,
  columns,
  to,
}: {
  row: Item
  columns: readonly Column<Item>[]
  to: string | null
}): ReactNode {
  const follow = (event: MouseEvent<HTMLElement>): void => {
    if (to === null || isForSomethingElse(event)) return
    go(to)
  }
  return (
    <tr role="row" className={to === null ? undefined : 'leads'} onClick={follow}>
      {columns.map((column, index) => (
        <td key={column.head} role="cell" className={classOf(column)} data-head={column.head}>
          {index === 0 && to !== null ? (
            <Link to={to} className="row-link">
              <>{column.cell(row)}</>
            </Link>
          ) : (
            column.cell(row)
          )}
        </td>
      ))}
    </tr>
  )
}

/** Somebody marks text, presses a button in the row, or opens another tab. */
function isForSomethingElse(event: MouseEvent<HTMLElement>): boolean {
  const target = event.target instanceof Element ? event.target : null
  return (
    event.defaultPrevented ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    (target?.closest('a, button, input, summary') ?? null) !== null ||
    (getSelection()?.toString() ?? '') !== ''
  )
}

function classOf<Row>({ align, wide, spare }: Column<Row>): string | undefined {
  const names = [align === 'end' && 'end', wide && 'wide', spare && 'spare'].filter(Boolean)
  return names.length === 0 ? undefined : names.join(' ')
}

/** Moves the focus to the next or previous row that leads somewhere. */
export function stepThroughRows(step: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLElement>('.row-link, .timeline-link')]
  if (links.length === 0) return
  const at = links.findIndex((link) => link === document.activeElement)
  const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step
  links[Math.min(Math.max(next, 0), links.length - 1)]?.focus()
}
