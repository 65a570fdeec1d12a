/**
 * The success page's door: asks the provider about one record, puts what happened through the common
 * path and decides it at once where it can. It answers only for the order and the subject that the caller
 * names; about anything else it says `unknown` and gives no hint.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Signals } from '../core/signals.ts'
import type { Database } from '../postgres/executor.ts'
import { describeDatabaseError, sqlstateOf } from '../postgres/sqlstate.ts'
import type { InboxEvent } from '../workflow/event.ts'
import {
  RecordsError,
  type MadeEvent,
  type ProviderRecord,
  type RecordReference,
  type Records,
} from '../workflow/records.ts'
import type { Registry } from '../workflow/registry.ts'
import { resolveEvent } from '../workflow/resolve-event.ts'
import {
  readOrderFor,
  unfinishedAmong,
  type ConfirmedEntitlement,
  type ConfirmedOrder,
} from './confirm-reads.ts'
import { withLooks } from './confirm-looks.ts'
import type { LedgerPort } from './ledger-port.ts'
import { bytesOf, storeMadeEvents } from './made-events.ts'
import { namesOf, settleAll } from './plan-batch.ts'
import type { EventReading } from './read-claimed.ts'
import type { SourceNamespace } from './source.ts'

/** What is asked, with every default filled in. */
export interface ConfirmQuestion {
  readonly namespace: SourceNamespace
  readonly records: Records
  readonly reference: RecordReference
  readonly order: string
  readonly subject: string
  /** Milliseconds for all of it. */
  readonly timeoutMs: number
}

/** The answer. */
export type Confirmation =
  /** What the provider knows is decided: the order's state, and what the subject may use because of it. */
  | {
      readonly outcome: 'decided'
      readonly state: string
      readonly entitlements: readonly ConfirmedEntitlement[]
    }
  /** Not yet: the provider did not answer in time, or what it said could not be decided at once. */
  | { readonly outcome: 'pending' }
  /** Nothing that this subject may know about this order. */
  | { readonly outcome: 'unknown' }

/** What confirming needs of the other parts. */
export interface ConfirmContext {
  readonly db: Database
  readonly ledger: Pick<LedgerPort, 'nameKey' | 'lookupNames'>
  readonly reading: EventReading
  readonly registry: Registry
  readonly signals: Signals
  /**
   * Works off exactly these events, if they are ready, and asks at once for what they wait for, until a moment
   * by `performance.now()`.
   */
  readonly workOff: (keys: readonly bigint[], until: number) => Promise<void>
}

const unknown: Confirmation = Object.freeze({ outcome: 'unknown' })
const pending: Confirmation = Object.freeze({ outcome: 'pending' })

/** Asks, stores, decides, answers. Rejects only where the database cannot be read. */
export async function confirmOrder(
  ctx: ConfirmContext,
  question: ConfirmQuestion,
): Promise<Confirmation> {
  const until = performance.now() + question.timeoutMs
  const before = await readOrderFor(ctx.db, question)
  if (before !== null && before.subject !== null && before.subject !== question.subject)
    return unknown
  if (before === null && !mayBeOpened(ctx.registry)) return unknown
  const asked = await ask(ctx, question)
  if (asked === 'no_answer') return notYet(ctx, question)
  if (asked === null || asked.account !== question.reference.account) return unknown
  const mine = await aboutOrder(ctx, question, asked)
  if (mine === null) return unknown
  const keys = await store(ctx, question, mine)
  if (keys === null || !(await decided(ctx, keys, until))) return notYet(ctx, question)
  return answered(await readOrderFor(ctx.db, question), question)
}

/** Whether any workflow lets an event open its order: only then can there be one to come. */
function mayBeOpened({ workflows }: Registry): boolean {
  return [...workflows.values()].some(({ opens }) => opens === 'event')
}

/** The record as the provider has it; a provider that does not answer in time is left alone. */
async function ask(
  { signals }: ConfirmContext,
  { records, reference, timeoutMs }: ConfirmQuestion,
): Promise<ProviderRecord | 'no_answer' | null> {
  const deadline = AbortSignal.timeout(timeoutMs)
  try {
    return await within(records.fetch(reference, deadline), deadline)
  } catch (error) {
    tell(signals, 'the provider was not asked', error)
    if (needsAPerson(error)) warn(signals, error.message)
    return 'no_answer'
  }
}

/** The first of the two: what is asked may not listen to the signal. */
async function within<T>(asked: Promise<T>, deadline: AbortSignal): Promise<T> {
  const late = new Promise<never>((_, reject) => {
    deadline.addEventListener('abort', () =>
      reject(new RecordsError('unavailable', 'the provider did not answer in time')),
    )
  })
  asked.catch(() => {}) // one that fails when nobody waits any more
  return Promise.race([asked, late])
}

/**
 * The events of a record that the present code takes to be about the order; null: none is. Of those that only
 * say "look again" the ones that add to what is known: a page that is loaded again asks for nothing.
 */
async function aboutOrder(
  ctx: ConfirmContext,
  { records, namespace, order }: ConfirmQuestion,
  record: ProviderRecord,
): Promise<readonly MadeEvent[] | null> {
  const { ledger, registry, db } = ctx
  let made: readonly MadeEvent[]
  try {
    made = records.eventsOf(record)
  } catch (error) {
    tell(ctx.signals, 'the events of a record could not be made', error)
    return null
  }
  const sourceId = await sourceIdOf(db, namespace)
  const events = made.map((each) => asInboxEvent(ctx, namespace, sourceId, each))
  const first = events.map((event) =>
    resolveEvent(event, { registry, environment: namespace.environment, mayIgnore: true }),
  )
  const bound = await db.transaction((tx) => ledger.lookupNames(tx, namesOf(first)))
  const { resolved } = settleAll(first, bound, (name) => ledger.nameKey(name))
  const mine = resolved.flatMap((each) => {
    const event = made[events.indexOf(each.event)]
    return each.kind === 'claim' && each.orderId === order && event !== undefined
      ? [{ claim: each, event }]
      : []
  })
  return mine.length === 0 ? null : withLooks(ctx.db, mine)
}

function asInboxEvent(
  { reading }: ConfirmContext,
  namespace: SourceNamespace,
  sourceId: number,
  made: MadeEvent,
): InboxEvent {
  const { identity, accountAllowed } = reading.sources.identify(namespace)
  return {
    key: 0n,
    sourceId,
    source: identity,
    accountAllowed,
    eventId: made.eventId,
    eventType: made.eventType,
    receivedAt: new Date(),
    occurredAt: made.occurredAt,
    synthetic: true,
    content: reading.parse(bytesOf(made)),
  }
}

/** Zero where nothing of this namespace ever came: then no name of it is known either. */
async function sourceIdOf(
  db: Database,
  { provider, account, environment }: SourceNamespace,
): Promise<number> {
  const [row] = await db.query<{ source_id: number }>({
    text: `select source_id from ${db.schema}sources where provider = $1 and provider_account = $2 and environment = $3`,
    values: [provider, account, environment],
  })
  return row?.source_id ?? 0
}

/** Null where somebody who stores the same was waited for in vain. */
async function store(
  { db, signals }: ConfirmContext,
  { namespace }: ConfirmQuestion,
  events: readonly MadeEvent[],
): Promise<readonly bigint[] | null> {
  try {
    return await storeMadeEvents(db, 'confirm', namespace, events)
  } catch (error) {
    if (sqlstateOf(error) !== '55P03') throw error
    tell(signals, 'what the provider said was not stored', error)
    return null
  }
}

/** Milliseconds between two looks at what another worker has in hand. */
const lookEveryMs = 50

/** Whether every event is decided, here or by a worker, before the time is up. */
async function decided(
  ctx: ConfirmContext,
  keys: readonly bigint[],
  until: number,
): Promise<boolean> {
  for (let open = keys; ;) {
    const working = ctx.workOff(open, until).catch((error: unknown) => {
      tell(ctx.signals, 'what the provider said was not decided at once', error)
    })
    // a worker of the app may hold the order: what is begun here ends by itself
    await Promise.race([
      working,
      sleep(Math.max(0, until - performance.now()), undefined, { ref: false }),
    ])
    open = await unfinishedAmong(ctx.db, keys)
    if (open.length === 0) return true
    if (performance.now() + lookEveryMs >= until) return false
    await sleep(lookEveryMs)
  }
}

/** Pending is an answer about the order too: who is known not to be meant gets none. */
async function notYet({ db }: ConfirmContext, question: ConfirmQuestion): Promise<Confirmation> {
  const order = await readOrderFor(db, question)
  if (order === null) return pending
  const isOthers =
    order.subject === null
      ? order.hasOthers && !order.hasSubject
      : order.subject !== question.subject
  return isOthers ? unknown : pending
}

function answered(order: ConfirmedOrder | null, { subject }: ConfirmQuestion): Confirmation {
  if (order === null) return unknown
  // an order without a subject of its own is the subject's whom it entitles
  const isTheirs = order.subject === subject || (order.subject === null && order.hasSubject)
  if (!isTheirs) return unknown
  return { outcome: 'decided', state: order.state, entitlements: order.entitlements }
}

/** Whether asking again cannot help: the answer would be pending for ever, and nobody would know why. */
function needsAPerson(error: unknown): error is RecordsError {
  return error instanceof RecordsError && ['refused', 'garbage'].includes(error.trouble)
}

const warned = new WeakSet<Signals>()

/** Where nothing listens, the process itself says it, once. */
function warn(signals: Signals, message: string): void {
  if (signals.has('worker.loop.failed') || warned.has(signals)) return
  warned.add(signals)
  process.emitWarning(`confirm answers pending, as the provider was not asked: ${message}`, {
    type: 'HookledgerWarning',
  })
}

function tell(signals: Signals, what: string, error: unknown): void {
  const why =
    sqlstateOf(error) !== undefined
      ? describeDatabaseError(error)
      : error instanceof Error
        ? error.message
        : 'an error that cannot be told'
  signals.emit('worker.loop.failed', { loop: 'confirm', message: `${what}: ${why}` })
}
