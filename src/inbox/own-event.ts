/**
 * Events of the reserved source `hookledger`: what a person (or a rule) did, under an id that can be
 * stored once. Whoever comes second with the same id finds it there, and does nothing.
 */
import { hash } from 'node:crypto'
import type { Database, Executor } from '../postgres/executor.ts'
import type { Environment } from '../workflow/event.ts'

/** The provider, and the account, under which they are stored. */
export const ownSource = 'hookledger'

/** An act as an event. */
export interface OwnEvent {
  readonly eventId: string
  readonly eventType: string
  readonly via: 'replay' | 'repair'
  /** JSON text. */
  readonly body: string
}

/**
 * Stores an event and its body in the transaction that `tx` is in, without making it ready: whoever
 * calls writes its final decision in the same transaction. Null: one with this id is there. Waits for
 * another transaction that is storing the same id.
 */
export async function storeOwnEvent(
  db: Database,
  tx: Executor,
  environment: Environment,
  { eventId, eventType, via, body }: OwnEvent,
): Promise<bigint | null> {
  const s = db.schema
  const namespace = [ownSource, environment]
  // the anti-join comes first because a conflict burns one of two billion numbers
  await tx.query({
    text: `insert into ${s}sources (provider, provider_account, environment)
      select $1, $1, $2 where not exists (
        select 1 from ${s}sources where provider = $1 and provider_account = $1 and environment = $2)
      on conflict (provider, provider_account, environment) do nothing`,
    values: namespace,
  })
  const bytes = Buffer.from(body, 'utf8')
  const [row] = await tx.query<{ event_key: string }>({
    text: `with stored as (
        insert into ${s}inbox_events (source_id, event_id, event_type, via, body_sha256, body_bytes)
        select n.source_id, $3, $4, $5, $6::bytea, $7::integer
        from ${s}sources n where n.provider = $1 and n.provider_account = $1 and n.environment = $2
        on conflict (source_id, event_id) do nothing returning event_key),
      kept as (
        insert into ${s}payloads (event_key, received_on, body)
        select event_key, (now() at time zone 'UTC')::date, $8::bytea from stored)
      select event_key::text as event_key from stored`,
    values: [
      ...namespace,
      eventId,
      eventType,
      via,
      hash('sha256', bytes, 'buffer'),
      bytes.byteLength,
      bytes,
    ],
  })
  return row === undefined ? null : BigInt(row.event_key)
}
