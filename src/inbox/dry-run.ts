/**
 * History decided again under the present code, without writing: everything runs in one read-only
 * transaction at one snapshot. Memory is bounded by a page, not by history: events are read in slices,
 * orders in groups, and only what belongs to another order than it did is remembered, up to a limit.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Executor } from '../postgres/executor.ts'
import { sqlstateOf } from '../postgres/sqlstate.ts'
import type { Resolved } from '../workflow/resolve-event.ts'
import { resolvedKind, resolvedText, type DryRunDifference } from './dry-run-compare.ts'
import { OrderHistory, type MovedEvent } from './dry-run-history.ts'
import {
  isExpired,
  nextFirst,
  readEvents,
  windowSince,
  withBodies,
  type HistoricEvent,
  type HistoryWindow,
} from './dry-run-reads.ts'
import { HistoryResolver, type DryRunContext } from './dry-run-resolve.ts'

/** What a dry run came to; the keys are what `--json` prints. */
export interface DryRunReport {
  readonly since: string
  readonly events: number
  readonly orders: number
  readonly differences: number
  /** Events of plain handlers, whose functions are not run. */
  readonly not_run: number
  /** Events whose body is no longer kept: they count as they were decided. */
  readonly expired: { readonly events: number; readonly examples: readonly string[] }
  /** Events that are decided from an answer of their provider which is not kept: they count as they were decided. */
  readonly unanswered: { readonly events: number; readonly examples: readonly string[] }
}

/** How a dry run tells what it finds, as it finds it. */
export interface DryRunControl {
  readonly onDifference: (difference: DryRunDifference) => void
  readonly onProgress?: ((report: DryRunReport) => void) | undefined
  readonly signal?: AbortSignal | undefined
  /** Events that belong to another order than they did: the most that are remembered. Default 100,000. */
  readonly mostMoved?: number | undefined
}

const eventsAtOnce = 200
const ordersAtOnce = 25
const shownExpired = 20

/**
 * Decides again what was decided since a moment.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID where this role may not read bodies, HKL_CLI_USAGE where
 * more belongs to other orders than can be remembered
 */
export async function dryRun(
  ctx: DryRunContext,
  since: Date,
  control: DryRunControl,
): Promise<DryRunReport> {
  const setup = [
    'set transaction isolation level repeatable read, read only',
    'set local statement_timeout = 600000',
    // a page is always found by keys, whatever the statistics say
    'set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off',
  ].join('; ')
  try {
    return await ctx.db.transaction((tx) => new DryRun(ctx, tx, since, control).run(), { setup })
  } catch (error) {
    if (sqlstateOf(error) !== '42501') throw error
    throw new HookledgerError(
      'HKL_CONFIG_INVALID',
      'a dry run reads stored bodies, and this database role may not: run it with the DATABASE_URL of a role that may act as the owner of the schema',
      { cause: error },
    )
  }
}

class DryRun {
  readonly #ctx: DryRunContext
  readonly #tx: Executor
  readonly #control: DryRunControl
  readonly #resolver: HistoryResolver
  readonly #moved = new Map<string, MovedEvent[]>()
  readonly #waiting: string[] = []
  readonly #report: {
    since: string
    events: number
    orders: number
    differences: number
    not_run: number
    expired: { events: number; examples: string[] }
    unanswered: { events: number; examples: string[] }
  }

  constructor(ctx: DryRunContext, tx: Executor, since: Date, control: DryRunControl) {
    this.#ctx = ctx
    this.#tx = tx
    this.#control = control
    this.#resolver = new HistoryResolver(ctx, tx)
    this.#report = {
      since: since.toISOString(),
      events: 0,
      orders: 0,
      differences: 0,
      not_run: 0,
      expired: { events: 0, examples: [] },
      unanswered: { events: 0, examples: [] },
    }
  }

  async run(): Promise<DryRunReport> {
    const window = await windowSince(this.#ctx.db, this.#tx, new Date(this.#report.since))
    if (window === null) return this.#report
    await this.#eachEvent(window)
    await this.#lookAgain()
    await this.#eachOrder(window)
    return this.#report
  }

  /** First every event: which order it belongs to now decides whose history it is a part of. */
  async #eachEvent(window: HistoryWindow): Promise<void> {
    const { db, reading } = this.#ctx
    for (let after = '0'; ;) {
      this.#control.signal?.throwIfAborted()
      const page = await nextFirst(db, this.#tx, 'event_key', window, after, eventsAtOnce)
      const last = page.at(-1)
      if (last === undefined) return
      after = last.decision_id
      const events = (
        await readEvents(
          db,
          this.#tx,
          page.map(({ about }) => about),
          reading,
        )
      ).filter(({ isOwn }) => !isOwn)
      for await (const slice of withBodies(db, this.#tx, events, reading)) await this.#slice(slice)
      this.#control.onProgress?.(this.#report)
    }
  }

  async #slice(slice: readonly HistoricEvent[]): Promise<void> {
    const { expired } = this.#report
    this.#report.events += slice.length
    for (const { event } of slice.filter(isExpired)) note(expired, event.eventId)
    const kept = slice.filter((each) => !isExpired(each))
    const { resolved } = await this.#resolver.resolve(kept)
    this.#requireRoom(0)
    for (const each of kept) {
      const now = resolved.get(each.event.key.toString())
      if (now === undefined) continue
      if (now.kind === 'claim') {
        if (now.orderId !== each.orderId) this.#move(now.orderId, each)
      } else if (each.orderId === null) {
        if (now.kind === 'waiting') this.#remember(each)
        else this.#withoutOrder(each, now)
      } else if (now.kind === 'plain') this.#report.not_run += 1
    }
  }

  #move(orderId: string, { event, receivedMs, orderId: from, kind }: HistoricEvent): void {
    const events = this.#moved.get(orderId) ?? []
    const recorded = `${kind} about ${from === null ? 'no order' : `order ${from}`}`
    events.push({ key: event.key.toString(), at: receivedMs, recorded })
    this.#moved.set(orderId, events)
    this.#requireRoom(1)
  }

  #remember({ event }: HistoricEvent): void {
    this.#waiting.push(event.key.toString())
    this.#requireRoom(1)
  }

  #remembered = 0

  #requireRoom(more: number): void {
    const most = this.#control.mostMoved ?? 100_000
    this.#remembered += more
    if (this.#remembered + this.#resolver.taught <= most) return
    throw new HookledgerError(
      'HKL_CLI_USAGE',
      `more than ${most} events wait for an order, or belong to another one under the present code: give a later --since`,
    )
  }

  /** An event without an order then and now. */
  #withoutOrder({ event, source, kind }: HistoricEvent, now: Resolved): void {
    if (now.kind === 'plain') {
      this.#report.not_run += 1
      if (['handled', 'ignored', 'dead'].includes(kind)) return
    }
    if (kind === resolvedKind(now)) return
    // a wait that ended as its types say
    if (kind === 'ignored' && now.kind === 'waiting') {
      if (now.waits.every(({ candidate }) => candidate.handler.unclaimed === 'ignore')) return
    }
    this.#tell({
      order_id: null,
      event: { id: event.eventId, type: event.eventType, source },
      decision_id: null,
      recorded: kind,
      now: resolvedText(now),
      details: [],
    })
  }

  /** Waiting events again, once every name is known that the present code teaches. */
  async #lookAgain(): Promise<void> {
    const { db, reading } = this.#ctx
    for (let at = 0; at < this.#waiting.length; at += eventsAtOnce) {
      const keys = this.#waiting.slice(at, at + eventsAtOnce)
      const events = await readEvents(db, this.#tx, keys, reading)
      for await (const slice of withBodies(db, this.#tx, events, reading)) {
        const { resolved } = await this.#resolver.resolve(slice)
        for (const each of slice) {
          const now = resolved.get(each.event.key.toString())
          if (now?.kind === 'claim') this.#move(now.orderId, each)
          else if (now !== undefined) this.#withoutOrder(each, now)
        }
      }
    }
  }

  /** Then every order with a decision in the window, and those that only the present code leads to. */
  async #eachOrder(window: HistoryWindow): Promise<void> {
    const { db } = this.#ctx
    const { unanswered } = this.#report
    const history = new OrderHistory(
      this.#ctx,
      this.#tx,
      this.#resolver,
      window,
      (difference) => this.#tell(difference),
      ({ event }) => note(unanswered, event.eventId),
    )
    for (let after = '0'; ;) {
      this.#control.signal?.throwIfAborted()
      const page = await nextFirst(db, this.#tx, 'order_id', window, after, ordersAtOnce)
      const last = page.at(-1)
      if (last === undefined) break
      after = last.decision_id
      await this.#group(
        history,
        page.map(({ about }) => about),
      )
    }
    const others = [...this.#moved.keys()]
    for (let at = 0; at < others.length; at += ordersAtOnce)
      await this.#group(history, others.slice(at, at + ordersAtOnce))
  }

  async #group(history: OrderHistory, ids: readonly string[]): Promise<void> {
    await history.decide(ids, new Map(ids.map((id) => [id, this.#moved.get(id) ?? []])))
    for (const id of ids) this.#moved.delete(id)
    this.#report.orders += ids.length
    this.#control.onProgress?.(this.#report)
  }

  #tell(difference: DryRunDifference): void {
    this.#report.differences += 1
    this.#control.onDifference(difference)
  }
}

/** Counts an event, and shows the first of them. */
function note(counted: { events: number; examples: string[] }, eventId: string): void {
  counted.events += 1
  if (counted.examples.length < shownExpired) counted.examples.push(eventId)
}
