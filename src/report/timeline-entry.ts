/** One line of the story of an order. */
import type { Reference } from './reference.ts'
import type { IsoTime } from './row-values.ts'

/** Money that a line is about: minor units as text, exact at any size. */
export interface TimelineFigure {
  readonly name: string
  readonly amount: string
  readonly currency: string
}

/** One line of the story; the keys are what `--json` prints. */
export interface TimelineEntry {
  readonly at: IsoTime
  readonly what:
    | 'arrived'
    | 'redelivered'
    | 'decided'
    | 'recorded'
    | 'called'
    | 'looked'
    | 'found'
    | 'repaired'
    | 'verified'
    | 'closed'
    | 'acted'
  readonly text: string
  /** What belongs to it, one line each. */
  readonly details: readonly string[]
  readonly event_id: string | null
  readonly decision_id: string | null
  /** What it is about, where that has a page of its own; the order itself is not named again. */
  readonly links: readonly Reference[]
  readonly figures: readonly TimelineFigure[]
}
