/** What a batch tells of itself where traces are on: read and made beside the work, and never in its way. */
import type { BatchTrace, TraceContext, Tracing } from '../core/tracing.ts'
import type { Executor } from '../postgres/executor.ts'
import type { InboxEvent } from '../workflow/event.ts'
import type { WorkedBatch } from './decided-batch.ts'
import type { Settled } from './outcome-parts.ts'
import type { ClaimedEvent } from './read-claimed.ts'

/** What is known of a batch while it runs. */
export class BatchTracer {
  readonly #tracing: Tracing
  readonly #claimedAt = Date.now()
  #readAt = 0
  #events: ReadonlyMap<bigint, InboxEvent> = new Map()
  #contexts: ReadonlyMap<string, TraceContext> = new Map()
  #spans: BatchTrace | null = null

  constructor(tracing: Tracing) {
    this.#tracing = tracing
  }

  /** Its events were read: the contexts that were stored with them. */
  async read(schema: string, tx: Executor, open: readonly ClaimedEvent[]): Promise<void> {
    this.#events = new Map(open.map(({ event }) => [event.key, event]))
    const rows = await tx.query<{ key: string; trace: string }>({
      text: `select e.event_key::text as key, e.trace from unnest($1::bigint[]) as k(event_key)
        cross join lateral (
          select event_key, trace from ${schema}inbox_events i where i.event_key = k.event_key offset 0) e
        where e.trace is not null`,
      repeated: true,
      values: [open.map(({ event }) => event.key.toString())],
    })
    this.#contexts = new Map(rows.map(({ key, trace }) => [key, trace]))
    this.#readAt = Date.now()
  }

  /** What was decided, before it is written. */
  decided({ settled, retried, asking }: WorkedBatch): void {
    const traced = (
      key: bigint,
      outcome: string,
      orderId: string | null,
      error: string | null,
    ): Parameters<Tracing['batch']>[0] => {
      const event = this.#events.get(key)
      if (event === undefined) return []
      const context = this.#contexts.get(key.toString()) ?? null
      const source = event.source.name ?? event.source.provider
      return [{ key, source, eventId: event.eventId, context, outcome, orderId, error }]
    }
    this.#spans = this.#tracing.batch(
      [
        ...settled.flatMap(({ row, outcome: { kind, orderId } }) =>
          traced(row.key, kind, orderId, kind === 'dead' ? 'dead' : null),
        ),
        ...retried.flatMap(({ row }) => traced(row.key, 'retried', null, 'retried')),
        ...asking.flatMap(({ row }) => traced(row.key, 'asked', null, null)),
      ],
      { claimedAt: this.#claimedAt, readAt: this.#readAt, decidedAt: Date.now() },
    )
  }

  /** Of the span that decided an event. */
  contextOf(key: bigint): TraceContext | null {
    return this.#spans?.contextOf(key) ?? null
  }

  /** What was settled, with the spans that decided it: for the log. */
  traced(settled: readonly Settled[]): readonly Settled[] {
    return settled.map((each) => ({ ...each, trace: this.contextOf(each.row.key) }))
  }

  /** The batch is committed, or rolled back. */
  end(error: 'rolled_back' | null): void {
    this.#spans?.end(error)
    this.#spans = null
  }
}
