/**
 * The provider's event list: every event that the inbox does not have is put into it under its own id. A
 * webhook that comes at the same moment, or later, finds it there.
 */
import type { Executor } from '../postgres/executor.ts'
import type { MadeEvent } from '../workflow/records.ts'
import { injectEvents, knownEvents, type NewEvent } from './inject.ts'
import { missingEvents } from './missing-events.ts'
import type { PassContext, SourceRun, WalkTarget } from './pass-context.ts'
import { requireStorable } from './storable-event.ts'
import type { PreparePage } from './walk.ts'

/** What is told of events that were put in. */
export interface Injections {
  /** Inside the transaction, which may still be rolled back. */
  written(events: readonly NewEvent[]): void
  /** It was committed; so many findings were opened with it. */
  committed(events: readonly NewEvent[], opened: number): void
}

/** How the pages of an event list are stored. */
export function eventPages(
  context: PassContext,
  run: SourceRun,
  target: WalkTarget,
  injections: Injections,
): PreparePage {
  const { source } = run
  const { schema } = context.db
  const isWanted = ({ eventType }: MadeEvent): boolean =>
    context.settings.events === 'all' || context.handles(source.name, eventType)
  return async (records) => {
    const made = records.flatMap((record) => source.source.records.eventsOf(record))
    const wanted = made.filter(isWanted)
    wanted.forEach(requireStorable)
    const known = await knownEvents(
      context.db,
      schema,
      target.sourceId,
      wanted.map(({ eventId }) => eventId),
    )
    const missing = wanted.filter(({ eventId }) => !known.has(eventId))
    const findings = await missingEvents(
      context,
      run,
      target,
      missing.filter(({ eventType }) => context.handles(source.name, eventType)),
    )
    let stored: readonly NewEvent[] = []
    let opened = 0
    return {
      async write(tx: Executor) {
        const events = missing.map((event) => ({ sourceId: target.sourceId, event }))
        stored = await injectEvents(tx, schema, events, 'reconciliation')
        injections.written(stored)
        opened = await findings.write(tx, stored)
      },
      stored() {
        injections.committed(stored, opened)
        return {
          records: records.length,
          injected: stored.length,
          known: Math.max(0, records.length - stored.length),
        }
      },
    }
  }
}
