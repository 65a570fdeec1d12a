/**
 * The micro-batch. A flush starts at once and gathers only while others are in flight; there is no
 * timer. A delivery is answered as stored only after the commit that holds it was confirmed, and as
 * not stored when its deadline passes first. One that cannot be written, or waits for somebody else's
 * transaction, is parted from its batch so that it holds up nobody.
 */
import type { Limits } from '../core/limits.ts'
import type { Signals } from '../core/signals.ts'
import type { Database } from '../postgres/executor.ts'
import { BodyBuffers } from './intake-buffer.ts'
import type { Awaited } from './intake-deadlines.ts'
import { Deadlines } from './intake-deadlines.ts'
import type { IncomingDelivery } from './intake-statement.ts'
import type { StoreContext, StoredBatch, StoredEvent } from './intake-store.ts'
import { storeBatch, storeFailure } from './intake-store.ts'
import { NamespaceRegistry } from './source.ts'

/** Why a delivery was not stored. Each is worth another delivery by the provider. */
export type NotStored = 'overloaded' | 'unavailable' | 'unstorable' | 'stopped'

/** What became of a delivery. */
export type IntakeResult =
  | { readonly stored: true; readonly events: readonly StoredEvent[] }
  | { readonly stored: false; readonly reason: NotStored }

/** What the micro-batch needs. */
export interface IntakeOptions {
  readonly database: Database
  readonly limits: Pick<Limits, 'intakeBatch' | 'intakeQueue' | 'lockTimeoutMs'>
  readonly signals: Signals
  /** Milliseconds from submission until a delivery is answered, stored or not. */
  readonly answerWithinMs: number
  /** Statements in flight at most; a further one starts only while the others are slow. Default 4. */
  readonly lanes?: number
  /** Bytes of bodies that may wait; past it deliveries are refused as overloaded. Default 64 MiB. */
  readonly queueBytes?: number
  /** Bytes of bodies in one statement, unless a single delivery has more. Default 8 MiB. */
  readonly batchBytes?: number
}

interface Pending extends Awaited {
  readonly delivery: IncomingDelivery
  readonly settle: (result: IntakeResult) => void
}

/** A flush that takes longer lets another one start beside it. */
const slowFlushMs = 20

/** The first pause before a failed batch is tried again; it doubles up to `longestPauseMs`. */
const firstPauseMs = 20
const longestPauseMs = 500

/** Stores deliveries in batches. */
export class Intake {
  readonly #context: StoreContext
  readonly #limits: IntakeOptions['limits']
  readonly #signals: Signals
  readonly #answerWithinMs: number
  readonly #lanes: number
  readonly #queueBytes: number
  readonly #batchBytes: number
  #queue: Pending[] = []
  /** Parts of batches that failed for one delivery in them. */
  readonly #parted: Pending[][] = []
  readonly #unanswered = new Deadlines<Pending>((late) => {
    this.#expire(late)
  })
  #head = 0
  #waitingBytes = 0
  #active = 0
  #lastFlushAt = 0
  #parting = false
  #scheduled = false
  #stopped = false
  #idle: Promise<void> | undefined
  #onIdle: (() => void) | undefined

  constructor(options: IntakeOptions) {
    this.#context = {
      database: options.database,
      namespaces: new NamespaceRegistry(options.database),
      buffers: new BodyBuffers(),
      prepared: true,
    }
    this.#limits = options.limits
    this.#signals = options.signals
    this.#answerWithinMs = options.answerWithinMs
    this.#lanes = options.lanes ?? 4
    this.#queueBytes = options.queueBytes ?? 64 * 1024 * 1024
    this.#batchBytes = options.batchBytes ?? 8 * 1024 * 1024
  }

  /** Stores a delivery. Resolves, never rejects, within `answerWithinMs`. */
  submit(delivery: IncomingDelivery): Promise<IntakeResult> {
    if (this.#stopped) return refused('stopped')
    const full =
      this.#unanswered.size >= this.#limits.intakeQueue ||
      this.#waitingBytes + delivery.rawBody.byteLength > this.#queueBytes
    if (full && this.#unanswered.size > 0) return refused('overloaded')
    return new Promise((resolve) => {
      const pending: Pending = {
        delivery,
        deadline: performance.now() + this.#answerWithinMs,
        settle: resolve,
      }
      this.#waitingBytes += delivery.rawBody.byteLength
      this.#unanswered.add(pending)
      this.#queue.push(pending)
      this.#schedule()
    })
  }

  /** Takes nothing more and resolves when everything taken was answered. */
  stop(): Promise<void> {
    this.#stopped = true
    this.#idle ??= new Promise((resolve) => {
      if (this.#unanswered.size === 0) resolve()
      else this.#onIdle = resolve
    })
    return this.#idle
  }

  /**
   * Starts a lane once the requests that the event loop is reading in this turn are all here. One lane
   * is cheapest while the database is quick; another starts when none got an answer for a while, so
   * that slow flushes overlap and a connection that fell silent holds up only its own batch.
   */
  #schedule(): void {
    if (this.#scheduled || !this.#mayStart()) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      if (this.#waiting() > 0 && this.#mayStart()) void this.#runLane()
    })
  }

  #mayStart(): boolean {
    if (this.#active === 0) return true
    return this.#active < this.#lanes && performance.now() - this.#lastFlushAt > slowFlushMs
  }

  async #runLane(): Promise<void> {
    this.#active++
    for (let batch = this.#take(); batch.length > 0; batch = this.#take()) {
      this.#lastFlushAt = performance.now()
      const slow = setTimeout(() => {
        this.#schedule()
      }, slowFlushMs + 1)
      await this.#flush(batch)
      clearTimeout(slow)
    }
    this.#active--
  }

  #waiting(): number {
    return this.#queue.length - this.#head
  }

  /** The next batch in order of arrival, at least one delivery. */
  #take(): Pending[] {
    const batch: Pending[] = []
    let rows = 0
    let bytes = 0
    for (; this.#head < this.#queue.length; this.#head++) {
      const pending = this.#queue[this.#head]
      if (pending === undefined || !this.#unanswered.has(pending)) continue
      rows += pending.delivery.events.length
      bytes += pending.delivery.rawBody.byteLength
      const fits = rows <= this.#limits.intakeBatch && bytes <= this.#batchBytes
      if (batch.length > 0 && !fits) break
      batch.push(pending)
    }
    if (this.#head === this.#queue.length || this.#head > 4096) {
      this.#queue.splice(0, this.#head)
      this.#head = 0
    }
    return batch
  }

  /** Stores a batch, again and again until its deadlines, or parts it. */
  async #flush(taken: readonly Pending[]): Promise<void> {
    for (let tries = 0; ; tries++) {
      const batch = taken.filter((pending) => this.#unanswered.has(pending))
      if (batch.length === 0) return
      try {
        // alone, a delivery can afford to wait for the transaction that holds its identity
        const lockTimeoutMs = Math.ceil(this.#limits.lockTimeoutMs / (batch.length > 1 ? 4 : 1))
        const storing = storeBatch(this.#context, deliveriesOf(batch), lockTimeoutMs)
        const stored = await this.#orLastDeadline(batch, storing)
        if (stored === undefined) return
        const { newEvents: events, duplicates } = stored
        this.#signals.emit('inbox.events.stored', { events, duplicates })
        // the database is given its next work first, here and by a worker that the signal woke: it works
        // while these are answered
        setImmediate(() => {
          this.#answer(batch, stored)
        })
        return
      } catch (error) {
        const failure = storeFailure(this.#context, error)
        if (failure === 'stop') return this.#refuse(batch, 'unavailable')
        if (failure === 'poison' && batch.length === 1) return this.#refuse(batch, 'unstorable')
        if (failure === 'poison' || failure === 'contended') return this.#part(batch)
        if (tries > 0) await pause(Math.min(longestPauseMs, firstPauseMs * 2 ** (tries - 1)))
      }
    }
  }

  /**
   * Undefined when everything in the batch was answered before the database said a word: a connection
   * that fell silent must not keep a lane, whatever timeouts the pool has.
   */
  async #orLastDeadline<T>(batch: readonly Pending[], work: Promise<T>): Promise<T | undefined> {
    const last = batch.reduce((latest, { deadline }) => Math.max(latest, deadline), 0)
    let timer: NodeJS.Timeout | undefined
    const silence = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => {
        resolve(undefined)
      }, last - performance.now())
    })
    try {
      return await Promise.race([work, silence])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Halves a batch and leaves it to a lane of its own, so that the others flow. */
  #part(batch: Pending[]): void {
    const half = Math.ceil(batch.length / 2)
    this.#parted.push(batch.slice(0, half))
    if (batch.length > 1) this.#parted.push(batch.slice(half))
    if (!this.#parting) void this.#runParted()
  }

  async #runParted(): Promise<void> {
    this.#parting = true
    for (let batch = this.#parted.shift(); batch !== undefined; batch = this.#parted.shift()) {
      await this.#flush(batch)
    }
    this.#parting = false
  }

  #answer(batch: readonly Pending[], stored: StoredBatch): void {
    let repeated = false
    stored.fresh.forEach((answer, index) => {
      const pending = batch[index]
      if (pending === undefined) return
      if (answer === null) repeated = true
      else this.#settle(pending, { stored: true, events: answer })
    })
    if (repeated) void this.#answerDuplicates(batch, stored)
  }

  async #answerDuplicates(batch: readonly Pending[], stored: StoredBatch): Promise<void> {
    const known = await stored.known()
    batch.forEach((pending, index) => {
      this.#settle(pending, { stored: true, events: known[index] ?? [] })
    })
  }

  #refuse(batch: readonly Pending[], reason: NotStored): void {
    for (const pending of batch) this.#settle(pending, { stored: false, reason })
  }

  #settle(pending: Pending, result: IntakeResult): void {
    if (!this.#unanswered.delete(pending)) return // its deadline was first
    this.#waitingBytes -= pending.delivery.rawBody.byteLength
    pending.settle(result)
    if (this.#unanswered.size === 0) this.#onIdle?.()
  }

  #expire(late: readonly Pending[]): void {
    this.#refuse(late, 'unavailable')
    this.#queue = this.#queue.slice(this.#head).filter((pending) => this.#unanswered.has(pending))
    this.#head = 0
  }
}

function deliveriesOf(batch: readonly Pending[]): IncomingDelivery[] {
  return batch.map(({ delivery }) => delivery)
}

function refused(reason: NotStored): Promise<IntakeResult> {
  return Promise.resolve({ stored: false, reason })
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
