/**
 * What every contestant of `dispatch` does for an operation: one call by the same client, and one row
 * that says how it ended.
 */
import { Pool } from 'undici'
import type pg from 'pg'
import type { CheckoutEvent } from '../checkout-events.ts'

/** Where the calls go. */
export interface BenchDestination {
  /** `http://127.0.0.1:…` */
  readonly origin: string
  /** What it was asked since this was last called. */
  counts(): Promise<{ readonly calls: number; readonly operations: number }>
}

/** An operation as it stands in a queue. */
export interface QueuedOperation {
  readonly id: string
  readonly body: MailBody
}

/** What is sent: as much as a mail service is told. */
export interface MailBody {
  readonly to: string
  readonly template: string
  readonly order: string
  readonly text: string
}

/** How a call ended. */
export interface CallResult {
  readonly id: string
  readonly status: number
  readonly receipt: string
}

/** The path of the destination's only service. */
export const mailPath = '/mails'

/** The operation that an event asks for. */
export function operationOf(event: CheckoutEvent): QueuedOperation {
  const text = 'Thank you for your order. Your license key is on its way. '.repeat(7)
  const to = `${event.order}@example.com`
  return { id: event.id, body: { to, template: 'license', order: event.order, text } }
}

/** Connections to the destination, as many as calls may be under way. */
export function connect({ origin }: BenchDestination, connections: number): Pool {
  return new Pool(origin, { connections })
}

/** Calls. @throws Error unless the answer is 2xx: a queue would try again. */
export async function call(client: Pool, { id, body }: QueuedOperation): Promise<CallResult> {
  const answer = await client.request({
    method: 'POST',
    path: mailPath,
    headers: { 'content-type': 'application/json', 'idempotency-key': id },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  })
  const receipt = await answer.body.text()
  if (answer.statusCode >= 300) throw new Error(`answered ${answer.statusCode}`)
  return { id, status: answer.statusCode, receipt }
}

/** A schema with the table of results. */
export async function createResults(pool: pg.Pool, schema: string): Promise<void> {
  await pool.query(`create schema ${schema}`)
  await pool.query(
    `create table ${schema}.results (operation_id text primary key, status integer not null, receipt jsonb not null, answered_at timestamptz not null default now())`,
  )
}

/** Writes results, in one statement. */
export async function record(
  pool: Pick<pg.Pool | pg.PoolClient, 'query'>,
  schema: string,
  results: readonly CallResult[],
): Promise<void> {
  if (results.length === 1) {
    const [one] = results
    await pool.query(
      `insert into ${schema}.results (operation_id, status, receipt) values ($1, $2, $3) on conflict (operation_id) do nothing`,
      [one?.id, one?.status, one?.receipt],
    )
    return
  }
  await pool.query(
    `insert into ${schema}.results (operation_id, status, receipt)
     select * from unnest($1::text[], $2::integer[], $3::jsonb[]) on conflict (operation_id) do nothing`,
    [
      results.map(({ id }) => id),
      results.map(({ status }) => status),
      results.map(({ receipt }) => receipt),
    ],
  )
}

/** @throws Error unless every operation was called once and its result is written. */
export async function expectRecorded(
  pool: pg.Pool,
  schema: string,
  destination: BenchDestination,
  expected: number,
): Promise<void> {
  const { rows } = await pool.query<{ n: string }>(
    `select count(*) as n from ${schema}.results where status = 200 and receipt ->> 'id' = 'receipt-' || operation_id`,
  )
  await expectCalled(destination, expected, Number(rows[0]?.n))
}

/** @throws Error unless every operation was called once, and so many results are written. */
export async function expectCalled(
  destination: BenchDestination,
  expected: number,
  written: number,
): Promise<void> {
  const { calls, operations } = await destination.counts()
  if (calls === expected && operations === expected && written === expected) return
  throw new Error(
    `of ${expected} operations ${operations} were called, in ${calls} calls, and ${written} results were written`,
  )
}
