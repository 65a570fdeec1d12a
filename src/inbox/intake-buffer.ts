/**
 * Buffers in which the bodies of a batch are joined, used again from batch to batch: a new one of some
 * hundred kilobytes each time is what garbage collection of a busy receiver consists of.
 */
import { Buffer } from 'node:buffer'

/** Smaller ones are not made, larger ones not kept; in bytes. */
const smallest = 64 * 1024
const largestKept = 4 * 1024 * 1024

/** As many as flushes are usually in flight. */
const mostKept = 2

/** Lends buffers. One that is not given back is simply lost. */
export class BodyBuffers {
  readonly #kept: Buffer[] = []

  /** The parts joined, in a buffer that nobody else uses until it is given back. */
  join(parts: readonly Uint8Array[]): Buffer {
    const size = parts.reduce((sum, { byteLength }) => sum + byteLength, 0)
    const buffer = this.#take(size)
    let end = 0
    for (const part of parts) {
      buffer.set(part, end)
      end += part.byteLength
    }
    return buffer.subarray(0, end)
  }

  /** Takes back what `join` lent, once the statement that carried it was answered. */
  giveBack(joined: Buffer): void {
    const whole = Buffer.from(joined.buffer)
    if (whole.byteLength <= largestKept && this.#kept.length < mostKept) this.#kept.push(whole)
  }

  #take(size: number): Buffer {
    const kept = this.#kept.pop()
    if (kept !== undefined && kept.byteLength >= size) return kept
    // with room to grow, and never from the pool that Node shares among small buffers
    return Buffer.allocUnsafeSlow(Math.max(smallest, Math.ceil(size * 1.25)))
  }
}
