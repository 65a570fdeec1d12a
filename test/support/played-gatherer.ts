/**
 * A gatherer played by SQL, one step at a time, so that a test decides which request is sent when, and in which
 * order their answers come. It keeps the fence and the numbers as the real one does.
 */
import { createHash } from 'node:crypto'
import type { Probe } from './probe.ts'

/** A request that was sent, and what it will be answered with. */
export interface Sent {
  readonly orderId: string
  readonly kind: string
  readonly objectId: string
  readonly number: bigint
  readonly orderVersion: string | null
}

/** Sends the request that is due for an object: its number is taken in a commit of its own. */
export async function sendRequest(bench: Probe, kind: string, objectId: string): Promise<Sent> {
  const [row] = await bench.rows<{ order_id: string; sent: string; version: string | null }>(
    `update looked_at l set sent = sent + 1
     where l.kind = $1 and l.object_id = $2
       and exists (select 1 from fetches f where f.order_id = l.order_id and f.kind = l.kind and f.object_id = l.object_id)
     returning order_id, sent, (select o.version from orders o where o.order_id = l.order_id) as version`,
    [kind, objectId],
  )
  if (row === undefined) throw new Error(`nothing is to be asked about ${kind} ${objectId}`)
  const { order_id: orderId, version } = row
  return { orderId, kind, objectId, number: BigInt(row.sent), orderVersion: version }
}

/** Stores an answer (null: gone) under the fence, and makes ready what waited for it. */
export async function storeAnswer(bench: Probe, sent: Sent, value: unknown): Promise<void> {
  const body = Buffer.from(JSON.stringify({ value }))
  const { orderId, kind, objectId, number, orderVersion } = sent
  const sha256 = createHash('sha256').update(body).digest()
  const key = [orderId, kind, objectId, number.toString()]
  const client = await bench.pool.connect()
  try {
    await client.query('begin')
    const { rows } = await client.query<{ evidence_id: string }>(
      `insert into evidence (order_id, source_id, kind, object_id, number, workflow, event_key, order_version, is_found, requested_at, body_sha256, body_bytes, body)
       select l.order_id, l.source_id, l.kind, l.object_id, $4, l.workflow, (select f.event_key from fetches f
           where f.order_id = l.order_id and f.source_id = l.source_id and f.kind = l.kind and f.object_id = l.object_id),
         $5, $6, now(), $7, $8, $9
       from looked_at l where l.order_id = $1 and l.kind = $2 and l.object_id = $3 returning evidence_id`,
      [...key, orderVersion, value !== null, sha256, body.length, body],
    )
    await client.query(
      `update looked_at set answered = $4, evidence_id = $5, answered_at = clock_timestamp()
       where order_id = $1 and kind = $2 and object_id = $3 and answered < $4`,
      [...key, rows[0]?.evidence_id],
    )
    await client.query(
      `with woken as (
         update inbox_gathers set waiting = false
         where order_id = $1 and kind = $2 and object_id = $3 and waiting and wanted <= $4
         returning event_key, received_on, attempts, deadline_at, waits_for, overdue)
       insert into inbox_ready (event_key, received_on, attempts, deadline_at, waits_for, overdue)
       select * from woken order by event_key`,
      key,
    )
    await client.query(
      `delete from fetches where order_id = $1 and kind = $2 and object_id = $3 and wanted <= $4`,
      key,
    )
    await client.query('commit')
  } finally {
    client.release()
  }
}

/** Both in one go. */
export async function answerNow(
  bench: Probe,
  kind: string,
  objectId: string,
  value: unknown,
): Promise<void> {
  await storeAnswer(bench, await sendRequest(bench, kind, objectId), value)
}
