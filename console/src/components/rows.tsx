/** A part of a page that is a table, or a sentence where there is nothing. */
import type { ReactNode } from 'react'
import { DataTable, type DataTableProps } from './data-table.tsx'
import { Section } from './page.tsx'

/** The part; its title names the table, too, unless `label` does. */
export function Rows<Row>({
  title,
  aside,
  none = 'None.',
  ...table
}: Omit<DataTableProps<Row>, 'label'> & {
  readonly title: string
  readonly label?: string
  /** At the end of its head. */
  readonly aside?: ReactNode
  /** Said where there is nothing. */
  readonly none?: ReactNode
}): ReactNode {
  return (
    <Section title={title} aside={aside} flush>
      {table.rows.length === 0 ? (
        <p className="nothing">{none}</p>
      ) : (
        <DataTable label={title} {...table} />
      )}
    </Section>
  )
}
