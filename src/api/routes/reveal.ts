/**
 * Payloads: a right of their own. Who and why are recorded before a byte is read, in the database's own functions;
 * the bytes are answered exactly, as base64, so that nothing on the way takes them for a page or a number.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { HookledgerError } from '../../core/errors.ts'
import { sqlstateOf } from '../../postgres/sqlstate.ts'
import { requireEvent } from '../event-named.ts'
import { defineRoute, type ApiRoute } from '../route.ts'
import { exactNumber, idText, reasonText } from '../schemas.ts'

const bytesShape = z.strictObject({
  /** The exact bytes. */
  base64: z.string(),
  length: z.number().int(),
  /** Of these bytes, in hexadecimal. */
  sha256: z.string(),
})

function bytesOf(bytes: Uint8Array): z.input<typeof bytesShape> {
  return {
    base64: Buffer.from(bytes).toString('base64'),
    length: bytes.byteLength,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  }
}

/** The database says in its own way that there is no such thing. */
async function found<T>(what: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (sqlstateOf(error) !== 'P0002') throw error
    throw new HookledgerError('HKL_NOT_FOUND', `there is no such ${what}`)
  }
}

function gone(what: string): HookledgerError {
  return new HookledgerError(
    'HKL_INBOX_PAYLOAD_EXPIRED',
    `${what} is no longer kept, or was erased; that it was asked for is recorded`,
  )
}

/** The routes. */
export const revealRoutes: readonly ApiRoute[] = [
  defineRoute({
    method: 'POST',
    path: '/reveal/event',
    permission: 'reveal',
    summary: 'The body of an event, exactly as it arrived; the reading is recorded.',
    shape: {
      body: z.strictObject({ source: idText, event_id: idText, reason: reasonText }),
      answer: bytesShape,
    },
    handle: async ({ db, identity }, { body: { reason, ...named } }) => {
      const { event_key: key } = await requireEvent(db, named)
      const [row] = await db.query<{ body: Uint8Array | null }>({
        text: `select ${db.schema}read_payload($1::bigint, $2, $3) as body`,
        values: [key, reason, identity.actor],
      })
      if (row === undefined || row.body === null) throw gone('the body')
      return bytesOf(row.body)
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/reveal/operation',
    permission: 'reveal',
    summary: 'The request of an operation and what was answered; the reading is recorded.',
    shape: {
      body: z.strictObject({ operation_id: z.uuid(), reason: reasonText }),
      answer: z.strictObject({
        parts: z.array(
          bytesShape.extend({
            part: z.enum(['request', 'answer']),
            /** Number of the attempt; 0 of the request. */
            number: z.number().int(),
          }),
        ),
      }),
    },
    handle: async ({ db, identity }, { body: { operation_id: id, reason } }) => {
      const rows = await found('operation', () =>
        db.query<{ part: 'request' | 'answer'; number: number; bytes: Uint8Array }>({
          text: `select part, number, bytes from ${db.schema}read_operation($1::uuid, $2, $3)`,
          values: [id, reason, identity.actor],
        }),
      )
      if (rows.length === 0) throw gone('the request')
      return {
        parts: rows.map(({ part, number, bytes }) => ({ part, number, ...bytesOf(bytes) })),
      }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/reveal/evidence',
    permission: 'reveal',
    summary: "A provider's answer that was decided from; the reading is recorded.",
    shape: {
      body: z.strictObject({ evidence_id: exactNumber, reason: reasonText }),
      answer: bytesShape,
    },
    handle: async ({ db, identity }, { body: { evidence_id: id, reason } }) => {
      const [row] = await found('evidence', () =>
        db.query<{ body: Uint8Array | null }>({
          text: `select ${db.schema}read_evidence($1::bigint, $2, $3) as body`,
          values: [id, reason, identity.actor],
        }),
      )
      if (row === undefined || row.body === null) throw gone('the answer')
      return bytesOf(row.body)
    },
  }),
]
