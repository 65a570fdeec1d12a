/** The findings of events that never arrived: opened in the commit that puts them into the inbox. */
import type { Executor } from '../postgres/executor.ts'
import type { MadeEvent } from '../workflow/records.ts'
import type { NewEvent } from './inject.ts'
import type { PassContext, SourceRun, WalkTarget } from './pass-context.ts'
import type { Discrepancy } from './ports.ts'

/** Findings that are ready to be written with their events. */
export interface MissingFindings {
  /** Writes those of events that were new; answers how many were opened. */
  write(tx: Executor, stored: readonly NewEvent[]): Promise<number>
}

/** Prepares the findings of events that the inbox does not have. */
export async function missingEvents(
  { comparison, findings }: PassContext,
  { source }: SourceRun,
  { account }: WalkTarget,
  missing: readonly MadeEvent[],
  /** By event: what is told in the place of an event that never arrived. */
  instead: ReadonlyMap<string, Discrepancy> = new Map(),
): Promise<MissingFindings> {
  const drafts = new Map<string, Discrepancy>()
  for (const event of missing) {
    const { eventId } = event
    drafts.set(eventId, instead.get(eventId) ?? (await comparison.missing(source, account, event)))
  }
  return {
    async write(tx, stored) {
      // an event that came through another door meanwhile is not missing
      const found = stored.flatMap(({ eventId, eventKey }) => {
        const draft = drafts.get(eventId)
        return draft === undefined ? [] : [{ ...draft, eventKey }]
      })
      return found.length === 0 ? 0 : (await findings.found(tx, found)).opened
    },
  }
}
