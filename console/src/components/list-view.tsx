/**
 * A whole list: filters in the address, rows, keyset pages, export, failures, and an empty state that teaches.
 * A page that lists something is columns, filters and words; all else is here.
 */
import type { ReactNode } from 'react'
import { addressOf, type GetName, type Input, type ItemOf } from '../api.ts'
import { useUrlQuery } from '../location.ts'
import { useList, type GetOptions } from '../use-api.ts'
import { DataTable, type Column } from './data-table.tsx'
import { NothingMatches } from './empty-state.tsx'
import { FilterBar, useFilterValues, type Filter } from './filters.tsx'
import { Icon } from './icons.tsx'
import { Loading } from './page.tsx'
import { PagerBar } from './pager.tsx'
import { ProblemBanner } from './problem.tsx'

/** A list of what `route` answers. */
export interface ListViewProps<Name extends GetName> {
  readonly route: Name
  /** What it lists: `Events`. */
  readonly label: string
  readonly columns: readonly Column<ItemOf<Name>>[]
  keyOf(row: ItemOf<Name>): string
  linkOf?(row: ItemOf<Name>): string | null
  readonly filters?: readonly Filter[]
  /** Parameters of the route, and query values that no filter changes. */
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | boolean>>
  /** Shown where there is nothing and no filter is held. */
  readonly empty: ReactNode
  /** The name of its CSV export: `events` for `GET /export/events.csv`. */
  readonly exported?: string
  readonly options?: GetOptions
}

const noFilters: readonly Filter[] = []

/** The list. */
export function ListView<Name extends GetName>(props: ListViewProps<Name>): ReactNode {
  const { route, label, columns, keyOf, linkOf, filters = noFilters, params, query } = props
  const held = useFilterValues(filters)
  const { set } = useUrlQuery()
  const asked = { ...(params && { params }), query: { ...query, ...held } }
  const { list, pager } = useList(route, asked as unknown as Input<Name>, props.options)
  const page = list.data as { items: readonly ItemOf<Name>[]; next: string | null } | undefined
  const bar = filters.length > 0 || props.exported !== undefined
  return (
    <div className="list">
      {bar && (
        <FilterBar filters={filters}>
          {props.exported !== undefined && (
            <ExportLink list={props.exported} query={{ ...query, ...held }} />
          )}
        </FilterBar>
      )}
      <ProblemBanner problem={list.error} again={() => void list.refetch()} />
      {page === undefined ? (
        list.error === null && <Loading lines={8} />
      ) : page.items.length === 0 && page.next === null && pager.cursor === undefined ? (
        Object.keys(held).length === 0 ? (
          props.empty
        ) : (
          <NothingMatches
            clear={() => set(Object.fromEntries(filters.map(({ name }) => [name, null])))}
          />
        )
      ) : (
        <>
          <DataTable
            label={label}
            columns={columns}
            rows={page.items}
            keyOf={keyOf}
            {...(linkOf && { linkOf })}
            stale={list.isPlaceholderData}
          />
          <PagerBar pager={pager} next={page.next} shown={page.items.length} />
        </>
      )}
    </div>
  )
}

/** The same rows as CSV, up to the limit that the API sets. */
export function ExportLink({
  list,
  query,
}: {
  list: string
  query: Readonly<Record<string, string | number | boolean>>
}): ReactNode {
  const name = `GET /export/${list}.csv` as GetName
  return (
    <a
      className="button plain small"
      href={addressOf(name, { query } as unknown as Input<GetName>)}
      download={`${list}.csv`}
    >
      <Icon name="download" /> CSV
    </a>
  )
}
