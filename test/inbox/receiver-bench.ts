/** A receiver over a migrated database of its own, and signed Stripe deliveries for it. */
import type pg from 'pg'
import { defaultLimits } from '../../src/core/limits.ts'
import type { Limits } from '../../src/core/limits.ts'
import { createSignals } from '../../src/core/signals.ts'
import type { SignalMap, SignalName, Signals } from '../../src/core/signals.ts'
import type { IngestOutcome, IngestRequest } from '../../src/inbox/receiver.ts'
import { Receiver } from '../../src/inbox/receiver.ts'
import type { InboxSource } from '../../src/inbox/source.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { stripe } from '../../src/providers/stripe.ts'
import { signStripe } from '../../src/testing/sign.ts'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import type { TestDatabase } from '../support/test-database.ts'

/** The source's signing secret. */
export const secret: string = `whsec_${'k'.repeat(32)}`

/** The source `stripe` of account acct_main, environment test. */
export const stripeSource: InboxSource = {
  ...stripe({ account: 'acct_main', signingSecrets: [secret], connect: true }),
  account: 'acct_main',
  environment: 'test',
}

/** What a test works with. */
export interface ReceiverBench {
  readonly database: TestDatabase
  readonly pool: pg.Pool
  readonly receiver: Receiver
  readonly signals: Signals
  rows<R extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<R[]>
  /** The rows of a table of ours. */
  count(table: string): Promise<number>
  close(): Promise<void>
}

/** What a bench can be given. */
export interface BenchOptions {
  /** Another way to the database than its own URL: a proxy's, say. */
  readonly through?: (database: TestDatabase) => string
  readonly pool?: pg.PoolConfig
  readonly limits?: Partial<Limits>
  readonly sources?: ReadonlyMap<string, InboxSource>
  readonly lanes?: number
}

/** A receiver over a fresh database. */
export async function createReceiverBench(options: BenchOptions = {}): Promise<ReceiverBench> {
  const database = await createHookledgerDatabase()
  const admin = database.pool({ max: 3 })
  const pool = database.pool({
    connectionString: options.through?.(database) ?? database.url,
    connectionTimeoutMillis: 2000,
    ...options.pool,
  })
  const signals = createSignals()
  const receiver = receiverOver(pool, signals, options)
  const rows = async <R extends pg.QueryResultRow>(text: string, values: unknown[] = []) =>
    (await admin.query<R>(text, values)).rows
  return {
    database,
    pool,
    receiver,
    signals,
    rows,
    count: async (table) => {
      const [row] = await rows<{ n: number }>(`select count(*)::int as n from hookledger.${table}`)
      return row?.n ?? -1
    },
    close: async () => {
      await receiver.stop()
      await database.drop()
    },
  }
}

/** Another receiver over a pool, as another process would have it. */
export function receiverOver(
  pool: pg.Pool,
  signals: Signals = createSignals(),
  options: BenchOptions = {},
): Receiver {
  return new Receiver({
    database: createDatabase(pool, 'hookledger'),
    sources: options.sources ?? new Map([['stripe', stripeSource]]),
    limits: { ...defaultLimits, ...options.limits },
    signals,
    ...(options.lanes !== undefined && { intake: { lanes: options.lanes } }),
  })
}

/** A signed request with exactly this body. */
export function signed(body: string | Uint8Array, with_: string = secret): IngestRequest {
  const rawBody = typeof body === 'string' ? Buffer.from(body, 'utf8') : body
  return { source: 'stripe', headers: signStripe(rawBody, with_), rawBody }
}

/** The body of an event as Stripe writes it. */
export function eventBody(id: string, fields: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({
    id,
    object: 'event',
    api_version: '2026-10-28.endive',
    created: 1_790_000_000,
    livemode: false,
    type: 'checkout.session.completed',
    data: { object: { id: `cs_${id}`, object: 'checkout.session' } },
    ...fields,
  })
}

/** The stored events of an outcome; throws, with what was said, when it is a refusal. */
export function storedEvents(
  outcome: IngestOutcome,
): Extract<IngestOutcome, { status: 200 }>['events'] {
  if (outcome.status === 200) return outcome.events
  throw new Error(`not stored: ${outcome.status} ${outcome.code}`)
}

/** Everything emitted under a name from now on. */
export function heard<N extends SignalName>(signals: Signals, name: N): SignalMap[N][] {
  const details: SignalMap[N][] = []
  signals.on(name, (detail) => details.push(detail))
  return details
}

/** Waits until a condition holds; throws after ten seconds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 10_000
  while (!(await condition())) {
    if (performance.now() > end) throw new Error('it did not come true')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
