/**
 * What the simulated provider saw and did, one entry each, appended and never changed: every API call,
 * every event it made, every attempt to deliver one. It is the provider's own testimony, to be compared
 * with what the other side claims. No bodies, no keys, no secrets.
 */
import { join } from 'node:path'
import { openJournal, type Journal } from './journal.ts'

/** An API call, with the answer that the caller was given. */
export interface ApiCallEntry {
  kind: 'api_call'
  /** Milliseconds since 1970, when it was answered. */
  at: number
  requestId: string
  method: string
  /** Without the query string. */
  path: string
  account: string | null
  /** HTTP status; null when the connection was cut instead. */
  status: number | null
  idempotencyKey: string | null
  /** Whether the answer came from the idempotency store. */
  replayed: boolean
  /** Whether the endpoint did its work in this call. */
  executed: boolean
}

/** An event made. */
export interface EventEntry {
  kind: 'event'
  at: number
  account: string
  eventId: string
  type: string
  objectId: string | null
}

/** One attempt to deliver an event. */
export interface DeliveryEntry {
  kind: 'delivery'
  /** When the attempt ended. */
  at: number
  eventId: string
  /** Which copy of the event, from 0; more than one is a duplicate sent on purpose. */
  copy: number
  /** Which attempt of this copy, from 1. */
  attempt: number
  /** HTTP status; null when no answer came. */
  status: number | null
  /** Why no answer came (`timeout`, `ECONNREFUSED`). */
  error: string | null
  durationMs: number
}

/** An event that will never be delivered: lost on purpose, or given up. */
export interface DroppedEntry {
  kind: 'dropped'
  at: number
  eventId: string
  reason: 'lost' | 'gave_up'
}

/** Any entry. */
export type LogEntry = ApiCallEntry | EventEntry | DeliveryEntry | DroppedEntry

/** The log, in memory and (with a data directory) in `stripe-log.jsonl`. */
export class ProviderLog {
  readonly #entries: LogEntry[] = []
  readonly #journal: Journal | undefined
  readonly #acknowledged = new Set<string>()
  readonly #dropped = new Set<string>()

  constructor(dataDir?: string) {
    if (dataDir === undefined) return
    this.#journal = openJournal(join(dataDir, 'stripe-log.jsonl'), (entry) =>
      this.#keep(entry as LogEntry),
    )
  }

  /** Writes an entry. */
  append(entry: LogEntry): void {
    this.#journal?.append(entry)
    this.#keep(entry)
  }

  /** All entries, or those of one kind, oldest first. */
  entries(): readonly LogEntry[]
  entries<K extends LogEntry['kind']>(kind: K): Extract<LogEntry, { kind: K }>[]
  entries(kind?: LogEntry['kind']): readonly LogEntry[] {
    return kind === undefined ? this.#entries : this.#entries.filter((entry) => entry.kind === kind)
  }

  /** Whether a receiver answered 2xx to a delivery of the event. */
  isAcknowledged(eventId: string): boolean {
    return this.#acknowledged.has(eventId)
  }

  /** Whether the event was lost on purpose or given up. */
  isDropped(eventId: string): boolean {
    return this.#dropped.has(eventId)
  }

  close(): void {
    this.#journal?.close()
  }

  #keep(entry: LogEntry): void {
    this.#entries.push(entry)
    if (entry.kind === 'dropped') this.#dropped.add(entry.eventId)
    if (entry.kind === 'delivery' && isSuccess(entry.status)) this.#acknowledged.add(entry.eventId)
  }
}

/** Whether an HTTP status acknowledges a delivery: 2xx only, a redirect is a failure. */
export function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status < 300
}
