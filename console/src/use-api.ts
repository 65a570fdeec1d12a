/** The API in a component: what is read is read again by the refresh; an act makes everything be read anew. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import type { UseQueryResult } from '@tanstack/react-query'
import { useCallback, useState } from 'react'
import { get, post } from './api.ts'
import type { Answer, GetName, Input, PostName } from './api.ts'
import { usePager, type Pager } from './location.ts'
import type { Problem } from './problem.ts'
import { refreshWait } from './refresh-times.ts'
import { useRefresh } from './refresh.tsx'

/** How a reading differs from the others. */
export interface GetOptions {
  /** False: not yet (a search without words). */
  readonly enabled?: boolean
  /** False: read once (what is dear, or cannot change). A number: at the earliest every so many seconds. */
  readonly refresh?: boolean | number
}

/** Reads a route. While the next page of the same thing is read, the one before stays on the screen. */
export function useGet<Name extends GetName>(
  name: Name,
  input: Input<Name>,
  options: GetOptions = {},
): UseQueryResult<Answer<Name>, Problem> {
  const { seconds } = useRefresh()
  const { params, query } = input as { params?: unknown; query?: unknown }
  const { enabled = true, refresh = true } = options
  const own = JSON.stringify(params ?? null)
  return useQuery<Answer<Name>, Problem, Answer<Name>, readonly unknown[]>({
    queryKey: [name, own, query ?? null],
    queryFn: ({ signal }) => get(name, input, signal),
    enabled,
    refetchInterval: ({ state }) => {
      if (refresh === false) return false
      // neither moves between two readings: a wait that is another at each look would never end
      const { dataUpdatedAt: read, errorUpdatedAt: failed } = state
      const wait = refreshWait(seconds, read === 0 ? 0 : failed - read)
      return wait === false || refresh === true ? wait : Math.max(wait, refresh * 1000)
    },
    placeholderData: (before, { queryKey } = {} as never) =>
      queryKey?.[1] === own ? before : undefined,
  })
}

/** A page of a list, as the address says, with its pager. */
export function useList<Name extends GetName>(
  name: Name,
  input: Input<Name>,
  options: GetOptions = {},
): { list: UseQueryResult<Answer<Name>, Problem>; pager: Pager } {
  const pager = usePager()
  const { params, query } = input as { params?: object; query?: object }
  const asked = { ...(params && { params }), query: { ...query, cursor: pager.cursor } }
  return { list: useGet(name, asked as unknown as Input<Name>, options), pager }
}

/** An act of the API, and how the last one went. */
export interface Act<Name extends PostName> {
  readonly data?: Answer<Name> | undefined
  readonly error: Problem | null
  readonly isPending: boolean
  /** Does it; what is on the screen has been read anew when it resolves. @throws Problem */
  readonly mutateAsync: (input: Input<Name>) => Promise<Answer<Name>>
}

/** Does something: call `mutateAsync(input)`. Whatever is on the screen is read again when it is done. */
export function useAct<Name extends PostName>(name: Name): Act<Name> {
  const queries = useQueryClient()
  const [last, setLast] = useState<Omit<Act<Name>, 'mutateAsync'>>({
    error: null,
    isPending: false,
  })
  const mutateAsync = useCallback(
    async (input: Input<Name>) => {
      setLast({ error: null, isPending: true })
      try {
        const data = await post(name, input)
        setLast({ data, error: null, isPending: false })
        return data
      } catch (error) {
        setLast({ error: error as Problem, isPending: false })
        throw error
      } finally {
        await queries.invalidateQueries()
      }
    },
    [name, queries],
  )
  return { ...last, mutateAsync }
}
