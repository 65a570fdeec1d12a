/** What was asked for: the problem where there is one, something moving before the first answer, then the answer. */
import type { ReactNode } from 'react'
import { Loading } from './page.tsx'
import { ProblemBanner } from './problem.tsx'

/** Shows an answer. An older one stays on the screen below the problem of a newer request. */
export function Read<Data>({
  of: { data, error, refetch },
  lines,
  children,
}: {
  of: {
    readonly data: Data | undefined
    readonly error: Error | null
    refetch?(): unknown
  }
  /** How much room it is likely to take. */
  lines?: number
  children(data: Data): ReactNode
}): ReactNode {
  return (
    <>
      <ProblemBanner problem={error} again={refetch && (() => void refetch())} />
      {data === undefined
        ? error === null && <Loading {...(lines && { lines })} />
        : children(data)}
    </>
  )
}
