/**
 * The records of any sender, through functions of the user's: what they return is held to what a page can
 * be before anything moves by it, and what they throw becomes a `RecordsError`.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Name } from '../workflow/order.ts'
import type {
  EndpointState,
  Fact,
  MadeEvent,
  ProviderRecord,
  RecordKind,
  RecordPage,
  RecordQuery,
  RecordReference,
  Records,
} from '../workflow/records.ts'
import { RecordsError } from '../workflow/records.ts'
import type { CustomEvent, CustomPage, CustomRecord } from './custom-record-checks.ts'
import { checkedEvents, checkedFacts, checkedPage, checkedRecord } from './custom-record-checks.ts'
import { invalid } from './source-options.ts'

/** A kind of record that `list` knows. */
export interface CustomKind {
  readonly kind: string
  /** Whether its records are the events that the sender delivers, or objects as they are now. */
  readonly holds: 'events' | 'objects'
  /** How far back the list reaches, in milliseconds; for ever where absent. */
  readonly reachMs?: number | undefined
}

/** Options of `customRecords()`. */
export interface CustomRecordsOptions {
  /** In the order in which they are gone through: what names an order before what needs it. */
  readonly kinds: readonly CustomKind[]
  /**
   * Records made in `[from, to)`, a page at a time, in any order that does not change. An error of its own
   * means "later"; `RecordsError` can say more.
   */
  readonly list: (query: RecordQuery) => Promise<CustomPage> | CustomPage
  /** The record as it is now; null where the sender says that there is none. */
  readonly fetch: (
    reference: RecordReference,
    signal: AbortSignal,
  ) => Promise<CustomRecord | null> | CustomRecord | null
  /** The accounts to go through; the source's own alone where absent. */
  readonly accounts?:
    | ((own: string, signal: AbortSignal) => Promise<readonly string[]> | readonly string[])
    | undefined
  /** The events that led to an object's present state; none where absent. */
  readonly eventsOf?: ((record: ProviderRecord) => readonly CustomEvent[]) | undefined
  /** What an object claims about money; nothing where absent. */
  readonly factsOf?: ((record: ProviderRecord) => readonly Fact[]) | undefined
  /** The record of a payment, refund or dispute; the one of the kind `payment`, `refund` or `dispute` where absent. */
  readonly referenceOf?:
    | ((fact: Fact['fact'], id: string) => { readonly kind: string; readonly id: string } | null)
    | undefined
  /** How the sender delivers; not asked where absent. */
  readonly endpoints?: ((signal: AbortSignal) => Promise<readonly EndpointState[]>) | undefined
  /** What a destination is sent to refund a payment; null for one that cannot be refunded so. */
  readonly refundCall?: Records['refundCall']
}

/** Records through functions; `problem` is what is wrong with the options, at which the start stops. */
export interface CustomRecords extends Records {
  readonly problem?: HookledgerError | undefined
}

const maker = 'customRecords()'

/**
 * Records of a sender that Hookledger does not know, for `standardWebhooks({ records })`.
 * @example
 * customRecords({
 *   kinds: [{ kind: 'event', holds: 'events' }],
 *   list: async ({ from, to, cursor }) => {
 *     const page = await billing.events({ from, to, after: cursor })
 *     return { records: page.items.map(toRecord), next: page.next }
 *   },
 *   fetch: async ({ id }) => toRecord(await billing.event(id)),
 * })
 */
export function customRecords(options: CustomRecordsOptions): CustomRecords {
  try {
    return makeRecords(options, checkedKinds(options))
  } catch (error) {
    if (!(error instanceof HookledgerError)) throw error
    // configuration is read at import, where nothing may throw: the source that gets it says so
    const broken = (): never => {
      throw new RecordsError('refused', error.message, { cause: error })
    }
    const rejects = (): Promise<never> => Promise.resolve().then(broken)
    return Object.freeze({
      problem: error,
      kinds: [],
      accounts: rejects,
      list: rejects,
      fetch: rejects,
      eventsOf: broken,
      factsOf: broken,
      referenceOf: () => null,
      namedBy: () => null,
    })
  }
}

function makeRecords(options: CustomRecordsOptions, kinds: readonly RecordKind[]): CustomRecords {
  const { endpoints, refundCall } = options
  const holdsOf = (kind: string): RecordKind['holds'] | undefined =>
    kinds.find((each) => each.kind === kind)?.holds
  return Object.freeze({
    kinds,
    accounts: (own: string, signal: AbortSignal) =>
      asking('accounts', async () => [
        ...new Set([own, ...((await options.accounts?.(own, signal)) ?? [])]),
      ]),
    list: (query: RecordQuery): Promise<RecordPage> =>
      asking(`list of ${query.kind}`, async () => checkedPage(query, await options.list(query))),
    fetch: (reference: RecordReference, signal: AbortSignal): Promise<ProviderRecord | null> =>
      asking(`fetch of ${reference.kind}`, async () => {
        const found = await options.fetch(reference, signal)
        return found === null ? null : checkedRecord(reference, found)
      }),
    eventsOf: (record: ProviderRecord): readonly MadeEvent[] =>
      holdsOf(record.kind) === 'events'
        ? [listedEvent(record)]
        : checkedEvents(record, () => options.eventsOf?.(record) ?? []),
    factsOf: (record: ProviderRecord): readonly Fact[] =>
      checkedFacts(record, () => options.factsOf?.(record) ?? []),
    referenceOf: (fact: Fact['fact'], id: string, account: string) => {
      const named =
        options.referenceOf === undefined ? { kind: fact, id } : options.referenceOf(fact, id)
      return named === null || holdsOf(named.kind) === undefined ? null : { ...named, account }
    },
    namedBy: (name: Name, account: string) =>
      holdsOf(name.kind) === 'objects' ? { kind: name.kind, id: name.value, account } : null,
    ...(endpoints !== undefined && {
      endpoints: (_own: string, signal: AbortSignal) =>
        asking('endpoints', () => endpoints(signal)),
    }),
    ...(refundCall !== undefined && { refundCall }),
  })
}

/** A sender's event is listed as it is delivered: its JSON is the body, with the type in it. */
function listedEvent({ id, createdAt, object }: ProviderRecord): MadeEvent {
  const { type } = object
  return {
    eventId: id,
    eventType: typeof type === 'string' && type !== '' ? type : 'unknown',
    occurredAt: createdAt,
    apiVersion: null,
    body: object,
  }
}

/** Whatever a function of the user's throws: only its name is passed on, its text may quote a body. */
async function asking<T>(what: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof RecordsError) throw error
    const named = error instanceof Error ? error.name : typeof error
    throw new RecordsError(
      'unavailable',
      `${maker}: ${what} failed (${named}); asked again later`,
      {
        cause: error,
      },
    )
  }
}

function checkedKinds({ kinds, list, fetch }: CustomRecordsOptions): readonly RecordKind[] {
  for (const [name, value] of Object.entries({ list, fetch })) {
    if (typeof value !== 'function') throw invalid(maker, name, 'must be a function')
  }
  if (!Array.isArray(kinds) || kinds.length === 0) {
    throw invalid(maker, 'kinds', 'must name at least one kind of record that list knows')
  }
  const checked = (kinds as readonly CustomKind[]).map(({ kind, holds, reachMs }, index) => {
    const option = `kinds[${index}]`
    if (typeof kind !== 'string' || !/^[\w.-]{1,100}$/.test(kind)) {
      throw invalid(maker, `${option}.kind`, 'must be a name of letters, digits, dots and dashes')
    }
    if (holds !== 'events' && holds !== 'objects') {
      throw invalid(maker, `${option}.holds`, "must be 'events' or 'objects'")
    }
    if (reachMs !== undefined && !(Number.isInteger(reachMs) && reachMs > 0)) {
      throw invalid(maker, `${option}.reachMs`, 'must be a whole number of milliseconds')
    }
    return Object.freeze({ kind, holds, reachMs: reachMs ?? null })
  })
  if (new Set(checked.map(({ kind }) => kind)).size < checked.length) {
    throw invalid(maker, 'kinds', 'names a kind twice')
  }
  return Object.freeze(checked)
}
