/** The sign of the house: two sides of a book, and what joins them. */
import type { ReactNode } from 'react'

/** In the size of the text beside it. */
export function Mark(): ReactNode {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="7" />
      <path d="M9.5 8.5v15M9.5 16h13M22.5 8.5v15" />
      <circle cx="16" cy="16" r="3.2" />
    </svg>
  )
}
