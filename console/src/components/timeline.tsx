/** One story in order of time: what happened, at what moment, and what belongs to it. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { dateText } from '../moments.ts'
import type { Tone } from '../words.ts'

/** An entry. */
export interface TimelineItem {
  readonly key: string
  /** ISO. */
  readonly at: string
  /** The kind in one word, in the margin: `arrived`, `decided`. */
  readonly kind: string
  readonly tone?: Tone
  readonly title: ReactNode
  /** Where its title leads. */
  readonly to?: string | null
  /** What belongs to it, one line each. */
  readonly details?: readonly ReactNode[]
  /** What is shown when it is unfolded: evidence. */
  readonly more?: ReactNode
  /** On the word that unfolds it: `Evidence`. */
  readonly moreLabel?: string
}

/** The story, the oldest first; the days stand between, the clock in the margin. */
export function Timeline({
  items,
  label,
}: {
  items: readonly TimelineItem[]
  label: string
}): ReactNode {
  return (
    <ol className="timeline" aria-label={label}>
      {items.map((item, index) => (
        <Entry key={item.key} item={item} day={dayOf(item, items[index - 1])} />
      ))}
    </ol>
  )
}

function Entry({ item, day }: { item: TimelineItem; day: string | null }): ReactNode {
  const { at, kind, tone = 'calm', title, to, details = [], more } = item
  const date = new Date(at)
  return (
    <li className="timeline-item" data-tone={tone} data-day={day ?? undefined}>
      <div className="timeline-when">
        <time dateTime={at} title={at}>
          {timeText(date)}
        </time>
      </div>
      <div className="timeline-what">
        <p className="timeline-title">
          <span className="timeline-kind">{kind}</span>
          {to === null || to === undefined ? (
            <span>{title}</span>
          ) : (
            <Link to={to} className="timeline-link">
              <>{title}</>
            </Link>
          )}
        </p>
        {details.length > 0 && (
          <ul className="timeline-details">
            {details.map((detail, index) => (
              <li key={index}>{detail}</li>
            ))}
          </ul>
        )}
        {more !== undefined && (
          <details className="timeline-more">
            <summary>{item.moreLabel ?? 'More'}</summary>
            {more}
          </details>
        )}
      </div>
    </li>
  )
}

function dayOf(item: TimelineItem, before: TimelineItem | undefined): string | null {
  const day = dateText(new Date(item.at))
  return before !== undefined && dateText(new Date(before.at)) === day ? null : day
}

/** To the millisecond: what happened in one second has an order too. */
function timeText(at: Date): string {
  if (Number.isNaN(at.getTime())) return '—'
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, '0')}`
}
