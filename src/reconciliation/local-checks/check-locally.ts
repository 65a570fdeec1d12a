/**
 * What only this database can tell, once a pass: orders decided in the window and a part of all the others in
 * turn, so that each comes up again; whatever waits, is silent or is there twice; and open findings again.
 */
import type { Executor } from '../../postgres/executor.ts'
import { IdSet, type CompareContext } from '../compare-context.ts'
import { reopenDismissed } from '../finding-acts.ts'
import { writeFindings, type Rechecked } from '../findings.ts'
import { inSlices } from '../in-slices.ts'
import { openFindings } from '../open-findings.ts'
import type { CompareReport, Discrepancy } from '../ports.ts'
import { readOnlySetup } from '../preview.ts'
import { closeDecidedEvents, overdueWaits } from './events.ts'
import { uncertainOperations } from './operations.ts'
import { checkOrders } from './orders.ts'
import { readByTime } from './read-by-time.ts'
import { silentSources } from './silence.ts'
import { twofold } from './twice.ts'

/** Orders that are judged in one statement. */
const ordersAtOnce = 500
/** Orders that come up in one pass besides those of its window. */
const inTurn = 5000

const orderKinds: readonly string[] = [
  'tampered',
  'entitlement_without_state',
  'effect_without_event',
  'order_stuck',
]

/** The window of a pass, by the database's clock. */
export interface LocalCheckInput {
  readonly from: Date
  readonly to: Date
  readonly signal: AbortSignal
}

/** Goes through orders in turn: it knows where it stopped, for as long as the process lives. */
export class LocalChecks {
  readonly #ctx: CompareContext
  #after = ''

  constructor(ctx: CompareContext) {
    this.#ctx = ctx
  }

  async run(input: LocalCheckInput): Promise<CompareReport> {
    const ctx = this.#ctx
    const reopened = await reopenDismissed(ctx.db, ctx.dueMs)
    const closedEvents = await closeDecidedEvents(ctx)
    const round = new Round(ctx, input.signal)
    await round.window(input.from, input.to)
    this.#after = await round.inTurn(this.#after)
    const open = await round.open()
    const twice = await twofold(ctx)
    const silent = await silentSources(ctx)
    for (const each of [
      ...(await overdueWaits(ctx.db)),
      ...(await uncertainOperations(ctx)),
      ...silent,
      ...(twice ?? []),
    ])
      round.keep(each)
    const agreed = [...open, ...(await round.gone(['source_silent', 'fulfilled_twice']))]
    const rechecked: Rechecked = { agreed, differing: [] }
    const counts = await writeFindings(ctx, [...round.found.values()], rechecked)
    const { opened, closed, ...rest } = counts
    return {
      compared: round.checked,
      ...rest,
      opened: opened + reopened,
      closed: closed + closedEvents,
    }
  }
}

/** One round of checks. */
class Round {
  readonly found = new Map<string, Discrepancy>()
  checked = 0
  readonly #ctx: CompareContext
  readonly #signal: AbortSignal
  readonly #seen = new IdSet()

  constructor(ctx: CompareContext, signal: AbortSignal) {
    this.#ctx = ctx
    this.#signal = signal
  }

  keep(each: Discrepancy): void {
    this.found.set(this.#ctx.findings.id(each.draft.kind, each.source, each.draft.about), each)
  }

  /** Orders that something was decided about in the window, and those that were opened long enough before. */
  async window(from: Date, to: Date): Promise<void> {
    const { db, settings } = this.#ctx
    const back = (date: Date): string =>
      new Date(date.getTime() - settings.stuckAfterMs).toISOString()
    const take = async (
      rows: readonly { readonly order_id: string }[],
      tx: Executor,
    ): Promise<boolean> => {
      await this.#check(
        tx,
        rows.map((row) => row.order_id),
      )
      return !this.#signal.aborted
    }
    await readByTime(db, decidedStatement(db.schema), [from.toISOString(), to.toISOString()], take)
    await readByTime(db, openedStatement(db.schema), [back(from), back(to)], take)
  }

  /** Some of all orders, from where the last round stopped; answers where this one did. */
  async inTurn(after: string): Promise<string> {
    const { db } = this.#ctx
    let last = after
    for (let left = inTurn; left > 0; left -= ordersAtOnce) {
      const ids = await db.transaction(
        async (tx) => {
          const rows = await tx.query<{ order_id: string }>({
            text: `select order_id from ${db.schema}orders where order_id > $1 collate "C" order by order_id limit ${ordersAtOnce}`,
            values: [last],
          })
          const found = rows.map((row) => row.order_id)
          await this.#check(tx, found)
          return found
        },
        { setup: readOnlySetup },
      )
      if (this.#signal.aborted) return last
      // past the last one the next round begins anew
      if (ids.length < ordersAtOnce) return ''
      last = ids.at(-1) ?? ''
    }
    return last
  }

  /** Orders of open findings, whichever window they are from: those that nothing is found of any more. */
  async open(): Promise<Rechecked['agreed']> {
    const over: { id: string; because: string }[] = []
    for await (const page of openFindings(this.#ctx.db, orderKinds)) {
      const ids = page.flatMap(({ orderId }) => orderId ?? [])
      await this.#ctx.db.transaction((tx) => this.#check(tx, ids), { setup: readOnlySetup })
      for (const { id } of page)
        if (!this.found.has(id)) over.push({ id, because: 'the rows say what was decided' })
    }
    return over
  }

  /** Open findings of these kinds of which nothing was found: what they were about is over. */
  async gone(kinds: readonly string[]): Promise<Rechecked['agreed']> {
    const over: { id: string; because: string }[] = []
    for await (const page of openFindings(this.#ctx.db, kinds)) {
      for (const { id, kind, evidence } of page) {
        if (this.found.has(id)) continue
        // one payment of two orders is what deciding found, and nothing here can tell of it
        if (kind === 'fulfilled_twice' && !('effect' in evidence)) continue
        over.push({
          id,
          because: kind === 'source_silent' ? 'it delivers again' : 'it is there once',
        })
      }
    }
    return over
  }

  async #check(tx: Executor, ids: readonly string[]): Promise<void> {
    const fresh = [...new Set(ids)].filter((id) => !this.#seen.has('', id))
    for (const some of inSlices(fresh, ordersAtOnce)) {
      for (const each of await checkOrders(this.#ctx, tx, some)) this.keep(each)
      for (const id of some) this.#seen.add('', id)
      this.checked += some.length
    }
  }
}

function decidedStatement(s: string): string {
  return `select d.order_id from ${s}ledger_decisions d
    where d.decided_at >= $1::timestamptz and d.decided_at < $2::timestamptz and d.order_id is not null`
}

function openedStatement(s: string): string {
  return `select o.order_id from ${s}orders o where o.opened_at >= $1::timestamptz and o.opened_at < $2::timestamptz`
}
