/** The way of an event through the house, and how old the oldest unfinished thing is at each step of it. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Tone } from '../../words.ts'

/** A step. */
export interface Stage {
  readonly name: string
  /** Where its unfinished things are listed. */
  readonly to: string
  /** The figure: an age, or a word. */
  readonly age: string
  /** What the figure is of. */
  readonly about: string
  readonly tone: Tone
  /** Under the figure: `2 dead`, `3 past their deadline`. */
  readonly notes: readonly { readonly text: string; readonly tone: Tone }[]
}

/** The steps, from what arrives to what is compared with the provider. */
export function Stages({ stages }: { stages: readonly Stage[] }): ReactNode {
  return (
    <ol className="stages" aria-label="Oldest unfinished, by stage">
      {stages.map((stage) => (
        <li key={stage.name} className="stage" data-tone={stage.tone}>
          <Link to={stage.to} className="stage-link">
            <>
              <span className="stage-name">{stage.name}</span>
              <span className="stage-age">{stage.age}</span>
              <span className="stage-count">{stage.about}</span>
              {stage.notes.map(({ text, tone }) => (
                <span key={text} className="stage-note" data-tone={tone}>
                  {text}
                </span>
              ))}
            </>
          </Link>
        </li>
      ))}
    </ol>
  )
}
