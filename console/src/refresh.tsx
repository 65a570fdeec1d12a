/** How often what is shown is read again. It stops by itself while the page is hidden. */
import { createContext, useContext, useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { refreshOf, type RefreshSeconds } from './refresh-times.ts'
import { recall, remember } from './remembered.ts'

interface Refresh {
  readonly seconds: RefreshSeconds
  set(seconds: RefreshSeconds): void
}

const Context = createContext<Refresh>({ seconds: 5, set: () => {} })

/** Holds the choice for everything below it. */
export function RefreshProvider({ children }: { children: ReactNode }): ReactNode {
  const [seconds, setSeconds] = useState(() => refreshOf(recall('refresh')))
  const value = useMemo<Refresh>(
    () => ({
      seconds,
      set(next) {
        setSeconds(next)
        remember('refresh', String(next))
      },
    }),
    [seconds],
  )
  return <Context value={value}>{children}</Context>
}

/** The choice, and how to change it. */
export function useRefresh(): Refresh {
  return useContext(Context)
}
