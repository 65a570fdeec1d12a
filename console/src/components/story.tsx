/** The story that the API tells (of an order, an event, an operation) as a timeline with links and amounts. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { linkOf } from '../links.ts'
import { visibleText } from '../visible-text.ts'
import type { Tone } from '../words.ts'
import { Money } from './money.tsx'
import { Timeline, type TimelineItem } from './timeline.tsx'

/** An entry as the API tells it. */
export interface StoryEntry {
  readonly at: string
  readonly what: string
  readonly text: string
  readonly details: readonly string[]
  readonly decision_id: string | null
  readonly links: readonly { readonly kind: string; readonly id: string }[]
  readonly figures: readonly {
    readonly name: string
    readonly amount: string
    readonly currency: string
  }[]
}

const tones: Readonly<Record<string, Tone>> = {
  decided: 'good',
  found: 'bad',
  repaired: 'busy',
  verified: 'good',
  closed: 'good',
  acted: 'busy',
}

/** What a line says can be worse than its kind. */
const refused = /contradict|dead|refused|failed|uncertain/
const waiting = /waits|deferred/

function toneOf({ what, text }: StoryEntry): Tone {
  if (what === 'decided' && refused.test(text)) return 'bad'
  if (what === 'decided' && waiting.test(text)) return 'warn'
  if (what === 'called' && refused.test(text)) return 'warn'
  return tones[what] ?? 'calm'
}

/** The story, the oldest first. */
export function Story({
  entries,
  label,
  own,
  evidenceOf,
}: {
  entries: readonly StoryEntry[]
  label: string
  /** What the page itself is about: it is not linked to itself. */
  own?: { readonly kind: string; readonly id: string }
  /** What is unfolded below an entry; undefined: nothing. */
  evidenceOf?(entry: StoryEntry): ReactNode
}): ReactNode {
  return (
    <Timeline
      label={label}
      items={entries.map((entry, index) => {
        const more = evidenceOf?.(entry)
        const links = entry.links.filter(({ kind, id }) => kind !== own?.kind || id !== own.id)
        const item = itemOf(entry, links, index)
        return more === undefined ? item : { ...item, more, moreLabel: 'Evidence' }
      })}
    />
  )
}

/** The first thing that a line is about is where its text leads. */
function itemOf(entry: StoryEntry, links: StoryEntry['links'], index: number): TimelineItem {
  const { at, what, text, details, figures } = entry
  const [first, ...others] = links
  // what a detail names is told by it already
  const left = figures.filter(({ name }) => !details.some((detail) => detail.includes(name)))
  return {
    key: `${at} ${index}`,
    at,
    kind: what,
    tone: toneOf(entry),
    title: visibleText(text),
    to: first === undefined ? null : linkOf(first.kind, first.id),
    details: [
      ...details.map((detail) => visibleText(detail)),
      ...left.map(({ name, amount, currency }) => (
        <>
          {visibleText(name)} <Money amount={amount} currency={currency} />
        </>
      )),
      ...(others.length === 0 ? [] : [<StoryLinks key="links" links={others} />]),
    ],
  }
}

function StoryLinks({ links }: { links: StoryEntry['links'] }): ReactNode {
  return (
    <span className="story-links">
      {links.map(({ kind, id }) => {
        const to = linkOf(kind, id)
        return to === null ? null : (
          <Link key={`${kind} ${id}`} to={to} title={`${kind} ${visibleText(id)}`}>
            <>{kind}</>
          </Link>
        )
      })}
    </span>
  )
}
