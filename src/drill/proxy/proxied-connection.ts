/**
 * One client's connection through the commit proxy. Client messages go to the server one unit at a
 * time: the next waits for the answer to the last. A client that pipelines sees the same results, and
 * the proxy knows the transaction status in which each commit is made.
 */
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { CommitDetector } from './commit-detector.ts'
import type { CommitPoint } from './commit-detector.ts'
import type { CommitFaultMode, CommitRecord, Striker } from './commit-record.ts'
import { FrameReader } from './wire-frames.ts'
import type { Frame } from './wire-frames.ts'

/** What a connection needs of its proxy. */
export interface ProxyContext {
  readonly number: number
  readonly target: { readonly host: string; readonly port: number }
  strikers(): Iterable<Striker>
  latencyMs(): number
  record(entry: CommitRecord): void
  closed(): void
}

const encryptionRequests = new Set([80_877_103, 80_877_104])

interface Strike {
  readonly striker: Striker
  readonly mode: CommitFaultMode
  readonly record: CommitRecord
  readonly held: Buffer[]
}

/** A pair of sockets and what passes between them. */
export class ProxiedConnection {
  readonly #client: Socket
  readonly #server: Socket
  readonly #context: ProxyContext
  readonly #fromClient: FrameReader = new FrameReader('client')
  readonly #fromServer: FrameReader = new FrameReader('server')
  readonly #detector: CommitDetector = new CommitDetector()
  #delivery: Promise<void> = Promise.resolve()
  #queue: Frame[] = []
  /** The server has not yet said that it is ready (for the first time, or after a whole unit). */
  #busy = true
  /** Commits that are with the server. */
  #pending: CommitRecord[] = []
  /** What the server said in this unit so far. */
  #error: string | null = null
  #tag: string | null = null
  /** Set from the moment the struck commit is sent on until its outcome is known: answers are held. */
  #strike: Strike | null = null
  #isHole = false

  constructor(client: Socket, context: ProxyContext) {
    this.#client = client
    this.#context = context
    this.#server = connect(context.target.port, context.target.host)
    for (const socket of [client, this.#server]) {
      socket.setNoDelay(true)
      socket.on('error', () => {})
    }
    client.on('data', (bytes) => this.#arrive(bytes))
    this.#server.on('data', (bytes) => this.#answer(bytes))
    client.on('close', () => {
      this.#server.destroy()
      context.closed()
    })
    this.#server.on('close', () => {
      client.destroy()
      // The server died with the commit in its hands: struck, outcome unknown.
      if (this.#strike) this.#strike.striker.struck(this.#strike.record)
      this.#strike = null
    })
  }

  /** Cuts both sides without a farewell. */
  cut(): void {
    this.#client.resetAndDestroy()
    this.#server.resetAndDestroy()
  }

  #arrive(bytes: Buffer): void {
    const due = performance.now() + this.#context.latencyMs()
    this.#delivery = this.#delivery.then(async () => {
      const wait = due - performance.now()
      if (wait > 0) await sleep(wait)
      this.#fromClient.push(bytes)
      for (let frame = this.#fromClient.next(); frame; frame = this.#fromClient.next()) {
        if (frame.type === '') this.#open(frame)
        else this.#queue.push(frame)
      }
      this.#drain()
    })
  }

  /** The untyped messages that open a connection: startup, a request to encrypt, a request to cancel. */
  #open(frame: Frame): void {
    const code = frame.body.readUInt32BE(0)
    if (encryptionRequests.has(code)) {
      // Encrypted, nothing could be understood: refused, and clients that may go on in plain do.
      this.#client.write('N')
      this.#fromClient.expectUntyped()
      return
    }
    this.#server.write(frame.bytes)
  }

  #drain(): void {
    for (let frame = this.#queue[0]; frame; frame = this.#queue[0]) {
      if (this.#isHole || this.#client.destroyed) return
      // COPY data and passwords belong to what the server is busy with.
      if (this.#busy && !'dcfp'.includes(frame.type)) return
      this.#queue.shift()
      if (!this.#forward(frame)) return
      if (frame.type === 'Q' || frame.type === 'S' || frame.type === 'F') this.#busy = true
    }
  }

  /** Sends a message on, unless it is a commit that must not arrive. */
  #forward(frame: Frame): boolean {
    const point = this.#detector.clientSends(frame)
    const strike = point ? this.#note(point) : null
    if (strike?.mode === 'drop-before') {
      this.cut()
      strike.record.committed = false
      strike.striker.struck(strike.record)
      return false
    }
    this.#strike ??= strike
    this.#server.write(frame.bytes)
    return true
  }

  #note(point: CommitPoint): Strike | null {
    const record: CommitRecord = {
      connection: this.#context.number,
      kind: point.kind,
      statements: point.statements,
      action: 'passed',
      committed: null,
      answer: null,
    }
    this.#pending.push(record)
    this.#context.record(record)
    // One strike at a time: what else this unit commits goes with it.
    if (this.#strike) return null
    for (const striker of this.#context.strikers()) {
      const mode = striker.wants(point)
      if (mode === null) continue
      record.action = mode
      return { striker, mode, record, held: [] }
    }
    return null
  }

  #answer(bytes: Buffer): void {
    if (this.#isHole) return
    this.#fromServer.push(bytes)
    for (let frame = this.#fromServer.next(); frame; frame = this.#fromServer.next()) {
      if (this.#isHole || this.#client.destroyed) return
      this.#follow(frame)
      if (this.#strike) this.#strike.held.push(frame.bytes)
      else this.#client.write(frame.bytes)
      if (frame.type === 'Z') this.#ready(frame.body.toString('latin1', 0, 1))
    }
    this.#drain()
  }

  #follow(frame: Frame): void {
    if (frame.type === 'E') this.#error = `ERROR ${sqlstate(frame.body)}`
    if (frame.type !== 'C') return
    this.#tag = frame.body.toString('utf8').replace(/\0.*$/s, '')
    if (this.#tag !== 'COMMIT' && this.#tag !== 'ROLLBACK') return
    const record = this.#pending.find((entry) => entry.kind === 'explicit' && entry.answer === null)
    if (!record) return
    record.answer = this.#tag
    // A COMMIT of a failed block is answered ROLLBACK.
    record.committed = this.#tag === 'COMMIT'
  }

  #ready(status: string): void {
    for (const record of this.#pending.filter((entry) => entry.answer === null)) {
      record.answer = this.#error ?? this.#tag
      record.committed = this.#error === null
    }
    this.#pending = []
    this.#error = null
    this.#tag = null
    this.#busy = false
    this.#detector.serverReady(status)
    if (this.#strike) this.#finish(this.#strike)
  }

  #finish(strike: Strike): void {
    this.#strike = null
    if (!strike.record.committed) {
      strike.record.action = 'passed'
      strike.striker.missed()
      for (const bytes of strike.held) this.#client.write(bytes)
      return
    }
    if (strike.mode === 'black-hole') this.#isHole = true
    else this.cut()
    strike.striker.struck(strike.record)
  }
}

/** The field `C` of an ErrorResponse. */
function sqlstate(body: Buffer): string {
  const field = body
    .toString('latin1')
    .split('\0')
    .find((text) => text.startsWith('C'))
  return field?.slice(1) ?? 'unknown'
}
