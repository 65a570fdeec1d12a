/**
 * Follows one request through undici: whether it was written, what came back, and that it ends exactly
 * once. A request that undici would begin a second time is cut instead: repeating is the dispatcher's.
 * Its maker ends the connection where the answer was not read to its end.
 */
import type { Dispatcher } from 'undici'
import { areStepsPlanned, reach } from '../../core/failpoints.ts'
import { failureText } from './failure-text.ts'

/** An answer, or its beginning. */
export interface Answered {
  readonly kind: 'answered'
  readonly status: number
  /** By name in lower case; the first where it came several times. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** `cut`: it was longer than asked for. `broken`: the rest did not come. */
  readonly end: 'complete' | 'cut' | 'broken'
}

/** No answer. `isWritten` false proves that the other side saw nothing of the request. */
export interface Unanswered {
  readonly kind: 'unanswered'
  readonly isWritten: boolean
  readonly error: string
}

/** What an exchange came to. */
export type ExchangeResult = Answered | Unanswered

type Controller = Dispatcher.DispatchController

/** One request under way; undici calls it, its maker awaits `result`. */
export class PendingExchange implements Dispatcher.DispatchHandler {
  readonly result: Promise<ExchangeResult>
  readonly #resolve: (result: ExchangeResult) => void
  readonly #maxBytes: number
  #controller: Controller | undefined
  #isWritten = false
  #isOver = false
  #head: { status: number; headers: Record<string, string> } | undefined
  #chunks: Buffer[] = []
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    let resolve: (result: ExchangeResult) => void = () => undefined
    this.result = new Promise((settle) => (resolve = settle))
    this.#resolve = resolve
  }

  /** Whether the result is known; whatever comes then changes nothing. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** The deadline, or the signal: what is known by now is the result. */
  end(): void {
    this.#break(this.#isWritten ? 'no answer in time' : 'not sent in time')
  }

  /** Something threw: as if the connection had broken. */
  fail(error: unknown): void {
    this.#break(failureText(error))
  }

  onRequestStart(controller: Controller): void {
    const isSecond = this.#controller !== undefined
    this.#controller = controller
    if (this.#isOver || isSecond) {
      this.#break('the connection broke')
      controller.abort(new Error('over'))
      return
    }
    // undici writes right after this returns: from here on nobody can say that it was not written.
    this.#isWritten = true
    if (areStepsPlanned()) setImmediate(() => this.#step('D2'))
  }

  onResponseStart(controller: Controller, status: number, headers: object): void {
    if (status < 200 || this.#isOver) return
    this.#head = { status, headers: firstValues(headers) }
    if (!areStepsPlanned()) return
    controller.pause()
    this.#step('D3', () => controller.resume())
  }

  onResponseData(_: Controller, chunk: Buffer): void {
    if (this.#isOver) return
    const room = this.#maxBytes - this.#bytes
    this.#chunks.push(chunk.subarray(0, room))
    this.#bytes += Math.min(chunk.length, room)
    if (chunk.length > room) this.#settle('cut')
  }

  onResponseEnd(): void {
    this.#settle('complete')
  }

  onResponseError(_: Controller, error: Error): void {
    this.fail(error)
  }

  #step(step: 'D2' | 'D3', then: () => void = () => undefined): void {
    Promise.resolve()
      .then(() => reach(step))
      .then(then, (error: unknown) => this.fail(error))
  }

  #break(error: string): void {
    if (this.#isOver) return
    if (this.#head === undefined)
      this.#over({ kind: 'unanswered', isWritten: this.#isWritten, error })
    else this.#settle('broken')
  }

  #settle(end: 'complete' | 'cut' | 'broken'): void {
    if (this.#head === undefined) return
    this.#over({ kind: 'answered', ...this.#head, body: Buffer.concat(this.#chunks), end })
  }

  #over(result: ExchangeResult): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#chunks = []
    this.#resolve(result)
  }
}

function firstValues(headers: object): Record<string, string> {
  const found: [string, string][] = []
  for (const [name, value] of Object.entries(headers)) {
    const first: unknown = Array.isArray(value) ? value[0] : value
    if (typeof first === 'string') found.push([name.toLowerCase(), first])
  }
  return Object.fromEntries(found)
}
