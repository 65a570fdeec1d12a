/** Pages by key: there is a next one, or there is not; nobody counts a million rows to number them. */
import type { ReactNode } from 'react'
import type { Pager } from '../location.ts'
import { Icon } from './icons.tsx'

/** The foot of a list. */
export function PagerBar({
  pager,
  next,
  shown,
  aside,
}: {
  pager: Pager
  next: string | null
  /** How many rows are on this page. */
  shown: number
  aside?: ReactNode
}): ReactNode {
  const { cursor, number, previous } = pager
  if (cursor === undefined && next === null && aside === undefined) return null
  return (
    <div className="pager">
      <span className="muted">
        {shown === 0 && next !== null
          ? 'Nothing in what was looked through so far: the next page looks further'
          : `${shown} on this page${number > 1 ? `, page ${number}` : ''}`}
      </span>
      {aside}
      <nav className="pager-buttons" aria-label="Pages">
        {cursor !== undefined && (
          <button type="button" className="button small" onClick={() => pager.first()}>
            First
          </button>
        )}
        {previous !== null && (
          <button type="button" className="button small" onClick={previous}>
            <Icon name="left" /> Previous
          </button>
        )}
        <button
          type="button"
          className="button small"
          disabled={next === null}
          onClick={() => next !== null && pager.next(next)}
        >
          Next <Icon name="right" />
        </button>
      </nav>
    </div>
  )
}
