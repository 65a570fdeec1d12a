/** Nothing here, and why that is so: what would be here, and how it comes. */
import type { ReactNode } from 'react'

/** An empty place that teaches. `hint`: a command or an address to copy. */
export function EmptyState({
  title,
  children,
  hint,
  action,
}: {
  title: string
  children?: ReactNode
  hint?: string
  action?: ReactNode
}): ReactNode {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children !== undefined && <div className="empty-text">{children}</div>}
      {hint !== undefined && <pre className="empty-hint">{hint}</pre>}
      {action}
    </div>
  )
}

/** The same for a list that has filters: nothing matches, take them away. */
export function NothingMatches({ clear }: { clear(): void }): ReactNode {
  return (
    <EmptyState
      title="Nothing matches these filters"
      action={
        <button type="button" className="button" onClick={clear}>
          Clear the filters
        </button>
      }
    />
  )
}
