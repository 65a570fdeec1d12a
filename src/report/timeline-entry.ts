/** One line of the story of an order. */
import type { IsoTime } from './row-values.ts'

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
}
