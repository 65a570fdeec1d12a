/**
 * The provider's objects, which tell what events cannot: each is decided on a copy of its order, and what
 * would change something here is put into the inbox as the webhook would have carried it.
 */
import type { Executor } from '../postgres/executor.ts'
import { injectEvents, type NewEvent } from './inject.ts'
import { missingEvents } from './missing-events.ts'
import type { PassContext, SourceRun, WalkTarget } from './pass-context.ts'
import type { WindowSeen } from './ports.ts'
import { requireStorable } from './storable-event.ts'
import type { Injections } from './walk-events.ts'
import type { PreparePage } from './walk.ts'

/** What is remembered of the pages until the end of the pass. */
export interface PageMemory {
  readonly seen: WindowSeen
  readonly settledBefore: Date
  /** A record of this time could not be judged now, and is to be looked at again. */
  readonly heldUp: (createdAt: Date) => void
}

/** How the pages of a kind of objects are stored; `seen` remembers what is to be compared later. */
export function objectPages(
  context: PassContext,
  run: SourceRun,
  target: WalkTarget,
  injections: Injections,
  memory: PageMemory,
): PreparePage {
  const { source } = run
  return async (records) => {
    const looked = await context.comparison.look(source, target.account, records, memory)
    for (const { record, isHeldUp } of looked) if (isHeldUp) memory.heldUp(record.createdAt)
    const missing = looked.flatMap(({ inject }) => inject.map(({ made }) => made))
    missing.forEach(requireStorable)
    const differs = new Map(looked.flatMap((each) => [...each.differs]))
    const findings = await missingEvents(context, run, target, missing, differs)
    let stored: readonly NewEvent[] = []
    let opened = 0
    return {
      async write(tx: Executor) {
        const events = missing.map((event) => ({ sourceId: target.sourceId, event }))
        stored = await injectEvents(tx, context.db.schema, events, 'reconciliation')
        injections.written(stored)
        opened = await findings.write(tx, stored)
      },
      stored() {
        injections.committed(stored, opened)
        const injecting = looked.filter(({ inject }) => inject.length > 0).length
        return {
          records: records.length,
          injected: stored.length,
          known: records.length - injecting,
        }
      },
    }
  }
}
