/**
 * Stores one batch: the intake statement, and for duplicates a second one that reads what is known of
 * them. It either answers for every delivery of the batch or throws; after a throw the same batch may
 * be given again, whatever became of the first try.
 */
import { reach } from '../core/failpoints.ts'
import type { Database } from '../postgres/executor.ts'
import type { BodyBuffers } from './intake-buffer.ts'
import { isPreparedElsewhere } from '../postgres/prepared.ts'
import { classify, sqlstateOf } from '../postgres/sqlstate.ts'
import type { IncomingDelivery, IncomingEvent, IntakeEntry, IntakeRow } from './intake-statement.ts'
import { intakeStatement, readIntakeRow } from './intake-statement.ts'
import type { NamespaceRegistry } from './source.ts'

/** What became of one event of a stored delivery. */
export interface StoredEvent {
  readonly eventId: string
  /** The inbox's number of the event; null when it was stored but could not be read back. */
  readonly eventKey: bigint | null
  /** Whether the event was known before this delivery. */
  readonly duplicate: boolean
  /** The kind of the event's final decision; null while there is none. */
  readonly decision: string | null
}

/** A batch that was stored; `known` settles when what is known of its duplicates was read. */
export interface StoredBatch {
  /** Per delivery its events; null where one of them is a duplicate: ask `known`. */
  readonly fresh: readonly (readonly StoredEvent[] | null)[]
  /** Per delivery its events; never rejects. */
  known(): Promise<readonly (readonly StoredEvent[])[]>
  readonly newEvents: number
  readonly duplicates: number
}

/** Where and how a batch is stored. */
export interface StoreContext {
  readonly database: Database
  readonly namespaces: NamespaceRegistry
  readonly buffers: BodyBuffers
  /** Becomes false for good when the connections turn out not to keep prepared statements. */
  prepared: boolean
}

interface Slot {
  readonly delivery: number
  readonly event: IncomingEvent
  sourceId: number
  eventKey: bigint | null
  duplicate: boolean
  decision: string | null
}

/** Thrown when a namespace's row was not there; it is registered again by the next try. */
export class NamespaceLost extends Error {}

/**
 * Stores the batch in one transaction that is flushed when this resolves.
 *
 * @param lockTimeoutMs how long to wait for another transaction that inserts one of the identities
 */
export async function storeBatch(
  context: StoreContext,
  batch: readonly IncomingDelivery[],
  lockTimeoutMs: number,
): Promise<StoredBatch> {
  const slots = slotsOf(batch)
  await context.namespaces.ensure(slots.map(({ event }) => event.namespace))
  fill(context.namespaces, slots, await runIntake(context, batch, lockTimeoutMs))
  const duplicates = slots.filter(({ duplicate }) => duplicate)
  const repeated = new Set(duplicates.map(({ delivery }) => delivery))
  return {
    fresh: group(batch.length, slots).map((events, delivery) =>
      repeated.has(delivery) ? null : events,
    ),
    newEvents: slots.length - duplicates.length,
    duplicates: duplicates.length,
    known: async () => {
      await readKnown(
        context.database,
        duplicates.filter(({ eventKey }) => eventKey === null),
      )
      return group(batch.length, slots)
    },
  }
}

async function runIntake(
  { database, buffers, prepared }: StoreContext,
  batch: readonly IncomingDelivery[],
  lockTimeoutMs: number,
): Promise<IntakeEntry[]> {
  const { schema } = database
  await reach('R4')
  const bodies = buffers.join(batch.map(({ rawBody }) => rawBody))
  const statement = intakeStatement(batch, { schema, lockTimeoutMs, bodies, prepared })
  const answer = database.query<IntakeRow>(statement)
  answer.catch(() => {}) // a step below may throw while the statement is on its way
  // One statement inserts identities and deliveries and commits: these steps lie while it is in flight.
  await reach('R5')
  await reach('R6')
  await reach('R7')
  const [row] = await answer
  buffers.giveBack(bodies)
  await reach('R8')
  return readIntakeRow(row)
}

function slotsOf(batch: readonly IncomingDelivery[]): Slot[] {
  return batch.flatMap(({ events }, delivery) =>
    events.map((event) => ({
      delivery,
      event,
      sourceId: 0,
      eventKey: null,
      duplicate: true,
      decision: null,
    })),
  )
}

/** @throws NamespaceLost when nothing was written for an event, since its namespace has no row. */
function fill(namespaces: NamespaceRegistry, slots: Slot[], entries: readonly IntakeEntry[]): void {
  const taken = new Set<bigint>()
  let lost = false
  slots.forEach((slot, index) => {
    const { sourceId, eventKey } = entries[index] ?? { sourceId: null, eventKey: null }
    if (sourceId === null) {
      namespaces.forget(slot.event.namespace)
      lost = true
      return
    }
    slot.sourceId = sourceId
    if (eventKey === null) return
    slot.eventKey = eventKey
    // a batch can contain its own duplicates: the first in it is the one that was stored
    slot.duplicate = taken.has(eventKey)
    taken.add(eventKey)
  })
  if (lost) throw new NamespaceLost('a source is missing from the database')
}

function group(count: number, slots: readonly Slot[]): StoredEvent[][] {
  const groups: StoredEvent[][] = Array.from({ length: count }, () => [])
  for (const { delivery, event, eventKey, duplicate, decision } of slots) {
    groups[delivery]?.push({ eventId: event.eventId, eventKey, duplicate, decision })
  }
  return groups
}

interface KnownRow {
  readonly position: string
  readonly event_key: string
  readonly kind: string | null
}

/**
 * A second statement, because the first one's snapshot does not see what another receiver committed
 * while it waited. The deliveries are stored by now, so a failure here takes nothing back.
 */
async function readKnown(database: Database, slots: readonly Slot[]): Promise<void> {
  if (slots.length === 0) return
  const { schema } = database
  let rows: KnownRow[]
  try {
    rows = await database.query<KnownRow>({
      text: `select k.position, e.event_key, d.kind
from unnest($1::integer[], $2::text[]) with ordinality k(source_id, event_id, position)
join ${schema}inbox_events e on e.source_id = k.source_id and e.event_id = k.event_id
left join ${schema}ledger_decisions d on d.event_key = e.event_key and d.final`,
      values: [slots.map(({ sourceId }) => sourceId), slots.map(({ event }) => event.eventId)],
    })
  } catch {
    return
  }
  for (const { position, event_key, kind } of rows) {
    const slot = slots[Number(position) - 1]
    if (slot === undefined) continue
    slot.eventKey = BigInt(event_key)
    slot.decision = kind
  }
}

/**
 * What a failed try of a batch means. poison, contended: one delivery cannot be written, or waits for
 * another transaction; it is found by halves. again: the same batch on a new connection. stop: nothing
 * can be stored until somebody changes the database or its permissions.
 */
export type StoreFailure = 'poison' | 'contended' | 'again' | 'stop'

/** Classifies what `storeBatch` threw. */
export function storeFailure(context: StoreContext, error: unknown): StoreFailure {
  if (error instanceof NamespaceLost) return 'again'
  const state = sqlstateOf(error)
  if (state === '55P03') return 'contended'
  if (isPreparedElsewhere(state)) {
    context.prepared = false
    return 'again'
  }
  const failure = classify(error)
  if (failure === 'poison') return 'poison'
  // an outcome that is not known, too: the same batch again finds its rows and writes them once
  return failure === 'fatal' ? 'stop' : 'again'
}
