/**
 * A mail service with an API of one call, `POST /emails`: it honors an `Idempotency-Key` for 24 hours with
 * the answer that it stored, and fails as planned. Whatever the connection does, an email is sent once
 * and entirely or not at all. `GET /emails` shows what it sent.
 */
import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isAfterTheWork, type MailFault, type MailFaultPlan } from './mail-faults.ts'
import { MailLog } from './mail-log.ts'

/** How a mail service is made. */
export interface MailDoubleOptions {
  /** Where its log is kept; in memory only when absent. */
  readonly dataDir?: string
  /** Milliseconds since 1970. */
  readonly clock?: () => number
}

/** How long a key is honored, from its email on. */
export const honoredMs: number = 24 * 3_600_000
/** The longest body in bytes. */
const bodyLimit = 64 * 1024
const longestKey = 255
/** So many emails are shown. */
const shownEmails = 1000
/** What `Retry-After` says, in seconds. */
const retryAfterSeconds = 1

interface Answer {
  readonly status: number
  readonly body: object
  readonly headers?: Readonly<Record<string, string>>
}

interface Call {
  readonly number: number
  readonly key: string
  readonly sha256: string
  readonly body: Buffer
}

/** The service. */
export class MailDouble {
  readonly log: MailLog
  readonly #clock: () => number
  #plan: MailFaultPlan | null = null
  #calls: number

  constructor({ dataDir, clock = Date.now }: MailDoubleOptions = {}) {
    this.log = new MailLog(dataDir)
    this.#clock = clock
    this.#calls = this.log.counts().calls
  }

  /** From now on calls meet what the plan says; null: none goes wrong. */
  misbehave(plan: MailFaultPlan | null): void {
    this.#plan = plan
  }

  /** Answers one request; rejects only when the log cannot be written. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').split('?')[0]
    if (path !== '/emails') return send(response, failure(404, 'POST an email to /emails'))
    if (request.method === 'GET') return send(response, this.#shown())
    if (request.method !== 'POST') return send(response, failure(405, 'POST an email'))
    const closed = new Promise<void>((resolve) => response.once('close', resolve))
    const body = await readBody(request)
    // a caller that went away before its request was whole has not called
    if (body === null) return
    if (body.length > bodyLimit) return send(response, failure(413, 'the email is too long'))
    const call = this.#receive(request, body)
    const fault = this.#plan?.({ sha256: call.sha256, calls: this.#callsOf(call) }) ?? null
    const answer = fault !== null && !isAfterTheWork(fault) ? null : this.#serve(call)
    finish(request, response, fault, answer)
    await closed
    const status = response.writableFinished ? response.statusCode : null
    this.log.append({ kind: 'answer', at: this.#clock(), call: call.number, status, fault })
  }

  close(): void {
    this.log.close()
  }

  #receive(request: IncomingMessage, body: Buffer): Call {
    const header = request.headers['idempotency-key']
    const key = typeof header === 'string' ? header : ''
    const sha256 = createHash('sha256').update(body).digest('hex')
    const number = ++this.#calls
    const logged = key === '' ? null : key.slice(0, longestKey)
    this.log.append({ kind: 'call', at: this.#clock(), call: number, key: logged, sha256 })
    return { number, key, sha256, body }
  }

  #callsOf({ key }: Call): number {
    return this.log.find(key)?.calls ?? 1
  }

  /** No turn of the event loop between looking the key up and sending: two calls cannot both find it new. */
  #serve(call: Call): Answer {
    const { key, sha256 } = call
    if (key === '' || key.length > longestKey)
      return failure(400, `Idempotency-Key must be 1 to ${longestKey} characters`)
    const known = this.log.find(key)?.emails.at(-1)
    if (known !== undefined && this.#clock() - known.at < honoredMs) {
      if (known.sha256 !== sha256)
        return failure(422, 'this Idempotency-Key came with another body before')
      this.log.append({ kind: 'absorbed', at: this.#clock(), call: call.number, key })
      return accepted(known.answer, { 'idempotent-replayed': 'true' })
    }
    const email = emailOf(call.body)
    if (email === null) return failure(422, 'an email is a JSON object with an address in "to"')
    const answer = { id: `email_${call.number}` }
    const at = this.#clock()
    this.log.append({ kind: 'email', at, call: call.number, key, sha256, answer, email })
    return accepted(answer)
  }

  #shown(): Answer {
    const emails = this.log.emails.slice(-shownEmails).map(({ at, key, email }) => ({
      at: new Date(at).toISOString(),
      operation: key,
      calls: this.log.find(key)?.calls,
      ...email,
    }))
    return { status: 200, body: { ...this.log.counts(), sent: emails.reverse() } }
  }
}

/** Ends a call as the fault says, without one with the answer. */
function finish(
  request: IncomingMessage,
  response: ServerResponse,
  fault: MailFault | null,
  answer: Answer | null,
): void {
  switch (fault) {
    case 'rate_limited':
      return send(response, {
        ...failure(429, 'too many emails at once'),
        headers: { 'retry-after': String(retryAfterSeconds) },
      })
    case 'failed_before':
    case 'failed_after':
      return send(response, failure(500, 'the mail service failed'))
    case 'reset_before':
    case 'answer_lost':
      return void request.socket.resetAndDestroy()
    case 'timed_out':
      return // the caller ends it, or the server when it closes
    default:
      if (answer !== null) send(response, answer)
  }
}

function accepted(answer: object, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status: 202, body: answer, headers }
}

function failure(status: number, error: string): Answer {
  return { status, body: { error } }
}

function send(response: ServerResponse, { status, body, headers }: Answer): void {
  if (response.destroyed) return
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(`${JSON.stringify(body, null, 2)}\n`)
}

function emailOf(body: Buffer): Readonly<Record<string, unknown>> | null {
  try {
    const email = JSON.parse(body.toString('utf8')) as Readonly<Record<string, unknown>> | null
    return typeof email?.['to'] === 'string' && /^[^\s@]+@[^\s@]+$/.test(email['to']) ? email : null
  } catch {
    return null
  }
}

/** The whole body, of one that is too long its beginning; null for one that was cut. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length
      chunks.push(chunk)
      if (size > bodyLimit) return Buffer.concat(chunks)
    }
  } catch {
    return null
  }
  return request.complete ? Buffer.concat(chunks) : null
}
