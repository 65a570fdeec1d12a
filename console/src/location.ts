/**
 * Where the reader is: the raw path below the base, and the query. Filters and pages of lists live in the
 * query, so that an address can be sent to somebody and the back button undoes a filter.
 */
import { useMemo } from 'react'
import { navigate, useHistoryState, useLocationProperty } from 'wouter/use-browser-location'
import { consoleBase } from './api.ts'
import { pathBelow, queryText } from './paths.ts'

/** The raw path below the base: `/orders/A%2F1`. */
export function usePath(): string {
  return useLocationProperty(() => pathBelow(consoleBase, location.pathname))
}

/** Goes to an address below the base. */
export function go(to: string, options: { replace?: boolean; state?: unknown } = {}): void {
  navigate(consoleBase + to, options)
}

/** The query of the address, and how to change it; a change leads to the first page of a list. */
export interface UrlQuery {
  readonly values: Readonly<Record<string, string>>
  /** Empty values are taken out. `replace`: while somebody types. */
  set(changes: Readonly<Record<string, string | null>>, options?: { replace?: boolean }): void
}

/** The query as values; of a name given twice the last one counts. */
export function useUrlQuery(): UrlQuery {
  const search = useLocationProperty(() => location.search)
  return useMemo(
    () => ({
      values: Object.fromEntries(new URLSearchParams(search)),
      set(changes, options = {}) {
        const now = Object.fromEntries(new URLSearchParams(location.search))
        const next = { ...now, cursor: null, ...changes }
        navigate(location.pathname + queryText(next), options)
      },
    }),
    [search],
  )
}

/** Paging by key: the address holds where the page begins, the history how one came there. */
export interface Pager {
  readonly cursor: string | undefined
  /** 1 for the first page; of a page that was opened by its address it is not known, and 0. */
  readonly number: number
  next(cursor: string): void
  /** To the first page. */
  first(): void
  /** Null where it is not known: somebody opened the address of a later page. */
  readonly previous: (() => void) | null
}

/** The pager of the list on this page. */
export function usePager(): Pager {
  const search = useLocationProperty(() => location.search)
  const state = useHistoryState<{ trail?: readonly string[] } | null>()
  const cursor = new URLSearchParams(search).get('cursor') ?? undefined
  const trail = state?.trail ?? []
  const to = (next: string | null, steps: readonly string[]): void => {
    const values = Object.fromEntries(new URLSearchParams(location.search))
    navigate(location.pathname + queryText({ ...values, cursor: next }), {
      state: { trail: steps },
    })
  }
  return {
    cursor,
    number: cursor === undefined ? 1 : trail.length,
    next: (next) => to(next, [...(cursor === undefined ? [''] : trail), next]),
    first: () => to(null, []),
    previous:
      cursor === undefined || trail.length < 2
        ? null
        : () => {
            const back = trail.at(-2) ?? ''
            to(back === '' ? null : back, back === '' ? [] : trail.slice(0, -1))
          },
  }
}
