/**
 * A provider's records as a test wants them: what it has, what it answers wrongly, and what it was asked.
 * Newest first, as providers list; pages are cut behind a record's id.
 */
import {
  RecordsError,
  type Fact,
  type MadeEvent,
  type ProviderRecord,
  type RecordPage,
  type RecordQuery,
  type RecordReference,
  type Records,
} from '../../src/workflow/records.ts'

/** An answer in the place of the true one; null lets the true one through. */
export type Fault = (query: RecordQuery) => RecordPage | Promise<RecordPage> | null

/** Records that a test scripts. */
export interface ScriptedRecords extends Records {
  /** What the provider has; a test adds and removes. */
  readonly held: ProviderRecord[]
  /** Every list call in its order. */
  readonly asked: RecordQuery[]
  readonly fetched: RecordReference[]
  /** One for each of the next calls of `list`. */
  readonly faults: Fault[]
  /** Called when a page has been made and before it is given. */
  beforeAnswer: ((query: RecordQuery) => Promise<void> | void) | null
}

/** What of it a test decides. */
export interface ScriptedOptions {
  readonly account?: string
  readonly accounts?: readonly string[]
  readonly pageSize?: number
  readonly reachMs?: number | null
  readonly kinds?: Records['kinds']
  readonly eventsOf?: (record: ProviderRecord) => readonly MadeEvent[]
  readonly factsOf?: (record: ProviderRecord) => readonly Fact[]
}

/** Creates scripted records; an `event` is its own webhook. */
export function scriptedRecords(options: ScriptedOptions = {}): ScriptedRecords {
  const { pageSize = 3, reachMs = null } = options
  const records: ScriptedRecords = {
    held: [],
    asked: [],
    fetched: [],
    faults: [],
    beforeAnswer: null,
    kinds: options.kinds ?? [{ kind: 'event', holds: 'events', reachMs }],
    accounts: async (own) => options.accounts ?? [own],
    async list(query) {
      query.signal.throwIfAborted()
      records.asked.push(query)
      const fault = records.faults.shift()
      const wrong = await fault?.(query)
      const page = wrong ?? truePage(records.held, query, pageSize)
      await records.beforeAnswer?.(query)
      return page
    },
    async fetch(reference) {
      records.fetched.push(reference)
      return (
        records.held.find((each) => each.kind === reference.kind && each.id === reference.id) ??
        null
      )
    },
    eventsOf: (record) =>
      record.kind === 'event' ? [eventOf(record)] : (options.eventsOf?.(record) ?? []),
    factsOf: (record) => options.factsOf?.(record) ?? [],
    referenceOf: (fact, id, account) =>
      records.kinds.some(({ kind }) => kind === fact) ? { kind: fact, id, account } : null,
    namedBy: () => null,
  }
  return records
}

function truePage(
  held: readonly ProviderRecord[],
  { kind, account, from, to, cursor }: RecordQuery,
  pageSize: number,
): RecordPage {
  const all = held
    .filter((each) => each.kind === kind && each.account === account)
    .filter(({ createdAt }) => createdAt >= from && createdAt < to)
    .sort((a, b) => b.createdAt.getTime() - a.createdAt.getTime() || (a.id < b.id ? 1 : -1))
  const start = cursor === null ? 0 : all.findIndex(({ id }) => id === cursor) + 1
  if (cursor !== null && start === 0)
    throw new RecordsError('cursor_lost', 'no record has the id of the cursor')
  const page = all.slice(start, start + pageSize)
  const next = start + pageSize < all.length ? (page.at(-1)?.id ?? null) : null
  return { records: page, next }
}

function eventOf({ id, createdAt, object }: ProviderRecord): MadeEvent {
  return {
    eventId: id,
    eventType: String(object['type']),
    occurredAt: createdAt,
    apiVersion: null,
    body: object,
  }
}

/** An event of the provider's list: its body, and how long ago it was made. */
export function listed(
  body: { readonly id: string; readonly type: string },
  agoMs: number,
  account = 'acct_1',
): ProviderRecord {
  return {
    kind: 'event',
    id: body.id,
    createdAt: new Date(Math.floor((Date.now() - agoMs) / 1000) * 1000),
    account,
    object: body as unknown as Record<string, unknown>,
  }
}

/** Fails the next calls as a provider does that is not available. */
export function unavailable(times: number, retryAfterMs: number | null = 1): Fault[] {
  return Array.from({ length: times }, () => () => {
    throw new RecordsError('unavailable', 'the provider answered 503', { retryAfterMs })
  })
}

/** An answer that cannot be one. */
export const garbage: Fault = () => {
  throw new RecordsError('garbage', 'the answer was HTML under status 200')
}
