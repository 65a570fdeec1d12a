/**
 * The servers that `accept` and `latency` compare: ours, the same without a database, ours as far as the
 * signature only, and the handler that most people write: Express, one transaction a request in which the
 * event is recorded and applied.
 */
import express from 'express'
import type { AddressInfo } from 'node:net'
import type pg from 'pg'
import Stripe from 'stripe'
import { partsOf } from '../src/hookledger.ts'
import { createDatabase, type PoolLike } from '../src/postgres/pool.ts'
import { migrate } from '../src/postgres/migrate.ts'
import { createHookledgerServer } from '../src/server/server.ts'
import { absentDatabase } from './absent-database.ts'
import { benchHookledger, benchSecret } from './license.ts'

/** A server to send deliveries to. */
export interface AcceptServer {
  readonly port: number
  stop(): Promise<void>
}

/** The kinds of servers. */
export type AcceptKind = 'hookledger' | 'no_database' | 'signature_only' | 'express_handler'

/** Starts a server of a kind over a pool; `schema` is made for it. */
export async function startAcceptServer(
  kind: AcceptKind,
  pool: pg.Pool,
  schema: string,
): Promise<AcceptServer> {
  if (kind === 'express_handler') {
    await migrateHandler(pool, schema)
    return startHandler(pool, schema)
  }
  if (kind === 'hookledger') {
    await migrate(createDatabase(pool, schema), { environment: 'test', partitionsAheadDays: 2 })
    return startOurs(pool, schema)
  }
  return startOurs(absentDatabase(), schema, kind === 'signature_only')
}

async function startOurs(
  pool: PoolLike,
  schema: string,
  onlySignature = false,
): Promise<AcceptServer> {
  const hookledger = benchHookledger(pool, schema)
  const parts = partsOf(hookledger)
  const { source } = parts.config.sources.get('stripe') ?? { source: undefined }
  const server = createHookledgerServer({
    limits: parts.config.limits,
    ready: () => Promise.resolve(true),
    hasSource: (name) => name === 'stripe',
    ingest: !onlySignature
      ? (request) => hookledger.ingest(request)
      : ({ headers, rawBody }) => {
          // all that ours does before it stores: the signature, and the names of the events
          const verified = source?.verify({ headers, rawBody }, Date.now()).ok === true
          const named = verified ? (source?.name({ headers, rawBody }) ?? []) : []
          const events = named.map(({ eventId }) => ({
            eventId,
            eventKey: null,
            duplicate: false,
            decision: null,
          }))
          return Promise.resolve({ status: 200, events })
        },
  })
  const { port } = await server.listen(0, '127.0.0.1')
  return {
    port,
    stop: async () => {
      await server.stop(1000)
      await hookledger.stop()
    },
  }
}

/** The handler's own tables. */
export async function migrateHandler(pool: pg.Pool, schema: string): Promise<void> {
  await pool.query(`create schema "${schema}"`)
  await pool.query(
    `create table "${schema}".processed_events
       (event_id text primary key, event_type text not null, received_at timestamptz not null default now())`,
  )
  await pool.query(
    `create table "${schema}".licenses (order_id text primary key, granted_at timestamptz not null default now())`,
  )
}

/** The handler: verify, record and apply in one transaction, answer 200. */
export async function startHandler(
  pool: pg.Pool,
  schema: string,
  onCommitted: (eventId: string) => void = () => {},
): Promise<AcceptServer> {
  const stripe = new Stripe('sk_test_bench')
  const app = express()
  app.post(
    '/webhooks/stripe',
    express.raw({ type: () => true, limit: '1mb' }),
    (request, response, next) => {
      const event = stripe.webhooks.constructEvent(
        request.body as Buffer,
        request.headers['stripe-signature'] ?? '',
        benchSecret,
      )
      handle(pool, schema, event).then(() => {
        onCommitted(event.id)
        response.json({ received: true })
      }, next)
    },
  )
  const server = app.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function handle(pool: pg.Pool, schema: string, event: Stripe.Event): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const recorded = await client.query(
      `insert into "${schema}".processed_events (event_id, event_type) values ($1, $2) on conflict (event_id) do nothing`,
      [event.id, event.type],
    )
    if (recorded.rowCount === 1) {
      const order = (event.data.object as { client_reference_id?: string | null })
        .client_reference_id
      await client.query(
        `insert into "${schema}".licenses (order_id) values ($1) on conflict do nothing`,
        [order],
      )
    }
    await client.query('commit')
    client.release()
  } catch (error) {
    client.release(true)
    throw error
  }
}
