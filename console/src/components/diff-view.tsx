/** What there is and what there will be, line against line; marked by signs, and by color only besides. */
import type { ReactNode } from 'react'
import { diffLines } from '../diff.ts'
import { visibleText } from '../visible-text.ts'

/** The difference of two lists of lines; unchanged ones are kept as the frame of the others. */
export function DiffView({
  before,
  after,
  label,
}: {
  before: readonly string[]
  after: readonly string[]
  label: string
}): ReactNode {
  const lines = diffLines(before, after)
  const changed = lines.some(({ mark }) => mark !== 'same')
  if (!changed) return <p className="muted">Nothing would change.</p>
  return (
    <div className="diff" role="group" aria-label={label} tabIndex={0}>
      {lines.map(({ mark, text }, index) => (
        <div key={index} className="diff-line" data-mark={mark}>
          <span className="diff-mark" aria-hidden="true">
            {mark === 'new' ? '+' : mark === 'gone' ? '−' : ' '}
          </span>
          {mark !== 'same' && (
            <span className="unseen">{mark === 'new' ? 'will be: ' : 'is now: '}</span>
          )}
          <span>{visibleText(text)}</span>
        </div>
      ))}
    </div>
  )
}
