/** An `ingest` that answers 200 and keeps what it was given. */
import type { Ingest } from '../../src/http/node.ts'

/** What was ingested. */
export interface Recorded {
  readonly source: string
  readonly rawBody: Buffer
  readonly header: (name: string) => string | undefined
}

/** The `ingest`, and what it was given. */
export function recordedIngest(): { ingest: Ingest; received: Recorded[] } {
  const received: Recorded[] = []
  return {
    received,
    ingest: ({ source, headers, rawBody }) => {
      received.push({ source, rawBody: Buffer.from(rawBody), header: headers })
      return Promise.resolve({ status: 200 })
    },
  }
}

/** Bytes that every careless handling changes: invalid UTF-8, NUL, CR, a byte order mark. */
export const hostileBytes: Buffer = Buffer.concat([
  Buffer.from([0xef, 0xbb, 0xbf]),
  Buffer.from('{"a":"\\u0000\\ud800",\r\n "b":1e400}'),
  Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28]),
])
