/** A state in one word, with its tone as a dot: the word tells it, the color only repeats it. */
import type { ReactNode } from 'react'
import { toneOf, wordsOf, type Tone } from '../words.ts'

/** The state of something; `tone` where the name alone does not say how bad it is. */
export function StateBadge({
  state,
  tone,
  quiet = false,
}: {
  state: string
  tone?: Tone
  /** Dot and word without a ground: in tables. */
  quiet?: boolean
}): ReactNode {
  return (
    <span className={quiet ? 'state quiet' : 'state'} data-tone={tone ?? toneOf(state)}>
      {wordsOf(state)}
    </span>
  )
}

/** A small label that is no state: a class, a role, `new`. */
export function Tag({ children, tone }: { children: ReactNode; tone?: Tone }): ReactNode {
  return (
    <span className="tag" data-tone={tone}>
      {children}
    </span>
  )
}
