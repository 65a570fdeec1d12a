/** Cuts a PostgreSQL connection's bytes into messages, in either direction. */

/** One message. `type` is empty for the untyped ones that open a connection. */
export interface Frame {
  readonly type: string
  /** The message without type and length. */
  readonly body: Buffer
  /** All of its bytes, to be passed on unchanged. */
  readonly bytes: Buffer
}

/** Collects bytes and gives out whole messages. */
export class FrameReader {
  #pending: Buffer = Buffer.alloc(0)
  #untyped: boolean

  /** A client's first message has no type byte. */
  constructor(side: 'client' | 'server') {
    this.#untyped = side === 'client'
  }

  /** Says that the next message has no type byte either: after an encryption request was refused. */
  expectUntyped(): void {
    this.#untyped = true
  }

  /** The next whole message, or null until more bytes come. */
  next(): Frame | null {
    const head = this.#untyped ? 0 : 1
    if (this.#pending.length < head + 4) return null
    const length = head + this.#pending.readUInt32BE(head)
    if (this.#pending.length < length) return null
    const bytes = this.#pending.subarray(0, length)
    this.#pending = this.#pending.subarray(length)
    this.#untyped = false
    const type = head === 0 ? '' : String.fromCharCode(bytes[0] ?? 0)
    return { type, body: bytes.subarray(head + 4), bytes }
  }

  /** Adds bytes that arrived. */
  push(bytes: Buffer): void {
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes])
  }
}

/** The zero-terminated strings at the beginning of a message. */
export function leadingStrings(body: Buffer, count: number): string[] {
  const strings: string[] = []
  let start = 0
  while (strings.length < count) {
    const end = body.indexOf(0, start)
    if (end === -1) break
    strings.push(body.toString('utf8', start, end))
    start = end + 1
  }
  return strings
}
