/**
 * A destination over real HTTP that does to its callers what destinations do: it works and never says so,
 * says so too late, says it wrongly, forgets. What it does with each request is scripted; what it did is
 * in its own log, which stays honest whatever it answers.
 */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { DestinationLog, operationOf, type Meaning } from './destination-log.ts'

/** Everything that it can do with a request. `refuses_at_door` and what follows never look at the key. */
export const behaviors = [
  'works',
  'works_and_says_nothing',
  'works_and_resets',
  'works_and_answers_late',
  'works_late',
  'works_and_drips',
  'works_and_floods',
  'works_and_cuts_its_answer',
  'works_and_answers_500',
  'answers_500',
  'answers_200_with_an_error',
  'refuses',
  'refuses_at_door',
  'says_nothing',
  'resets',
  'talks_garbage',
  'is_busy_with_it',
  'redirects',
  'asks_to_wait',
] as const

/** One of {@link behaviors}. */
export type Behavior = (typeof behaviors)[number]

/** What to do with one request: a name, or a name with what it needs. */
export type Act =
  | Behavior
  | { readonly does: 'asks_to_wait'; readonly status: 429 | 503; readonly retryAfter: string }
  | { readonly does: 'refuses' | 'refuses_at_door'; readonly status: number }
  | { readonly does: 'redirects'; readonly status: number; readonly to: string }

/** The request that a script decides about. */
export interface ScriptedCall {
  readonly key: string
  readonly operation: string
  /** How many requests there were for this operation before this one. */
  readonly earlier: number
  /** How many requests there were at all before this one. */
  readonly before: number
}

/** Decides what to do with a request. */
export type Script = (call: ScriptedCall) => Act

/** How it is. */
export interface AdversaryOptions {
  /** What it does; `works` unless told otherwise. `AdversarialDestination.script` changes it later. */
  readonly script?: Script
  /** Whether it knows a key again. Default true. */
  readonly honorsKeys?: boolean
  /** How long it knows a key, by its own clock. Default 24 h. */
  readonly remembersMs?: number
  /** Whether it answers a known key with the stored answer even where that was a failure. Default false. */
  readonly replaysFailures?: boolean
  /** Its clock, in milliseconds. Default the process's; `moveClock` moves it. */
  readonly now?: () => number
  /** How late an answer is that is late, in milliseconds. Default 1500. */
  readonly lateMs?: number
  /** When it is given instead, where a test wants to say so. */
  readonly lateUntil?: () => Promise<void>
  /** Between two bytes of a dripping answer. Default 1000. */
  readonly dripMs?: number
  /** What a lookup is answered with; default the truth. */
  readonly lookup?: () => 'truth' | 'no_answer' | 'garbage'
}

/** A running destination. */
export interface AdversarialDestination {
  readonly url: string
  /** GET with a key after it: 200 where the work of its operation was done, 404 where it was not. Below `url`. */
  readonly lookupUrl: string
  readonly log: DestinationLog
  script: Script
  /** Bytes that flooded answers came to. */
  readonly flooded: number
  /** Requests that arrived where only a followed redirect leads. */
  readonly internalHits: number
  moveClock(ms: number): void
  close(): Promise<void>
}

interface Remembered {
  readonly sha256: string
  readonly until: number
  /** The status of a stored failure; null where the work was done and was said to be. */
  readonly failure: number | null
}

const failure = '{"error":"it was not done"}'

/** Starts one on a free port of 127.0.0.1. */
export async function startAdversary(
  options: AdversaryOptions = {},
): Promise<AdversarialDestination> {
  const adversary = new Adversary(options)
  await adversary.listen()
  return adversary
}

class Adversary implements AdversarialDestination {
  readonly log = new DestinationLog()
  script: Script
  flooded = 0
  internalHits = 0
  readonly #options: AdversaryOptions
  readonly #server: Server
  readonly #internal: Server
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #remembered = new Map<string, Remembered>()
  /** Operations whose work was done, with the receipt; never forgotten. */
  readonly #done = new Map<string, string>()
  readonly #seen = new Map<string, number>()
  #calls = 0
  #moved = 0

  constructor(options: AdversaryOptions) {
    this.#options = options
    this.script = options.script ?? ((): Act => 'works')
    this.#server = createServer((request, response) => void this.#serve(request, response))
    this.#internal = createServer((request, response) => {
      this.internalHits += 1
      request.resume()
      response.writeHead(200).end('{"internal":true}')
    })
  }

  get url(): string {
    return `http://127.0.0.1:${portOf(this.#server)}/operations`
  }

  get lookupUrl(): string {
    return `${this.url}/lookup/`
  }

  async listen(): Promise<void> {
    await Promise.all([this.#server, this.#internal].map(listenLocally))
  }

  moveClock(ms: number): void {
    this.#moved += ms
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer)
    await Promise.all(
      [this.#server, this.#internal].map((server) => {
        const closed = new Promise((resolve) => server.close(resolve))
        server.closeAllConnections()
        return closed
      }),
    )
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {})
    const body = await readWhole(request)
    if (body === null) return
    if (request.method === 'GET') {
      const asked = /[^/]*$/.exec(request.url ?? '')?.[0] ?? ''
      return this.#lookUp(decodeURIComponent(asked), response)
    }
    const header = request.headers['idempotency-key']
    const key = typeof header === 'string' ? header : ''
    const operation = operationOf(key)
    const earlier = this.#seen.get(operation) ?? 0
    this.#seen.set(operation, earlier + 1)
    const before = this.#calls++
    const given = this.script({ key, operation, earlier, before })
    const act = typeof given === 'string' ? { does: given } : given
    const sha256 = createHash('sha256').update(body).digest('hex')
    const call = new Call(this.log, before, key, response)
    this.log.write({ kind: 'received', call: before, key, sha256, behavior: act.does })
    this.#act(call, act, sha256)
  }

  #act(call: Call, act: Exclude<Act, string> | { readonly does: Behavior }, sha256: string): void {
    switch (act.does) {
      case 'says_nothing':
        return call.stayOpen()
      case 'resets':
        return call.reset()
      case 'talks_garbage':
        return call.garbage()
      case 'is_busy_with_it':
        return call.answer(409, 'nothing', '{"error":"a request with this key is in progress"}')
      case 'redirects':
        return call.answer('status' in act ? act.status : 307, 'nothing', '', {
          location: 'to' in act ? act.to : `http://127.0.0.1:${portOf(this.#internal)}/metadata`,
        })
      case 'asks_to_wait':
        return call.answer('status' in act ? act.status : 429, 'not_done', '', {
          'retry-after': 'retryAfter' in act ? act.retryAfter : '1',
        })
      case 'refuses_at_door':
        return call.answer('status' in act ? act.status : 403, 'nothing', '{"error":"who are you"}')
      case 'works_late':
        // the request is in its hands, and it gets to it when the caller may have given up
        return this.#later(() => this.#work(call, sha256, () => this.#confirm(call)))
      default:
        return this.#work(call, sha256, act.does, 'status' in act ? act.status : 422)
    }
  }

  /** Knows the key, or works; then answers as the behavior wants. */
  #work(call: Call, sha256: string, how: Behavior | (() => void), refusal: number = 422): void {
    const known = this.#recall(call.key)
    if (known !== undefined && known.sha256 !== sha256) {
      call.note('mismatched')
      return call.answer(422, 'not_done', '{"error":"this key came with another body"}')
    }
    if (known !== undefined) {
      call.note('replayed')
      if (known.failure !== null) return call.answer(known.failure, this.#meaningOf(call), failure)
      return this.#reply(call, typeof how === 'string' ? repliesWhenKnown(how) : how)
    }
    const fails = how === 'answers_500' || how === 'answers_200_with_an_error' || how === 'refuses'
    const status = how === 'refuses' ? refusal : how === 'answers_200_with_an_error' ? 200 : 500
    if (fails) {
      if (this.#options.replaysFailures === true) this.#remember(call.key, sha256, status)
      return call.answer(status, 'not_done', failure)
    }
    call.note('applied')
    this.#done.set(operationOf(call.key), `r_${call.number}`)
    const failed = how === 'works_and_answers_500' && this.#options.replaysFailures === true
    this.#remember(call.key, sha256, failed ? 500 : null)
    this.#reply(call, how)
  }

  #reply(call: Call, how: Behavior | (() => void)): void {
    if (typeof how !== 'string') return how()
    switch (how) {
      case 'works_and_says_nothing':
        return call.stayOpen()
      case 'works_and_resets':
        return call.reset()
      case 'works_and_answers_late':
        return this.#later(() => this.#confirm(call))
      case 'works_and_drips':
        return call.drip(this.#options.dripMs ?? 1000, this.#timers)
      case 'works_and_floods':
        return call.flood((bytes) => (this.flooded += bytes))
      case 'works_and_cuts_its_answer':
        return call.cut()
      case 'works_and_answers_500':
        return call.answer(500, 'nothing', '{"error":"something broke"}')
      default:
        return this.#confirm(call)
    }
  }

  #confirm(call: Call): void {
    const receipt = this.#done.get(operationOf(call.key)) ?? null
    call.answer(200, 'done', JSON.stringify({ id: receipt, status: 'done' }))
  }

  #meaningOf(call: Call): Meaning {
    return this.#done.has(operationOf(call.key)) ? 'nothing' : 'not_done'
  }

  #recall(key: string): Remembered | undefined {
    if (this.#options.honorsKeys === false || key === '') return undefined
    const known = this.#remembered.get(key)
    return known !== undefined && known.until > this.#now() ? known : undefined
  }

  #remember(key: string, sha256: string, failure: number | null): void {
    const until = this.#now() + (this.#options.remembersMs ?? 24 * 3_600_000)
    this.#remembered.set(key, { sha256, until, failure })
  }

  #now(): number {
    return (this.#options.now ?? Date.now)() + this.#moved
  }

  #later(work: () => void): void {
    const { lateUntil } = this.#options
    if (lateUntil !== undefined) return void lateUntil().then(work)
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      work()
    }, this.#options.lateMs ?? 1500)
    this.#timers.add(timer)
  }

  #lookUp(key: string, response: ServerResponse): void {
    const receipt = this.#done.get(operationOf(key))
    const says = this.#options.lookup?.() ?? 'truth'
    const status =
      says === 'no_answer' ? 500 : receipt === undefined && says === 'truth' ? 404 : 200
    const means = says !== 'truth' ? 'nothing' : receipt === undefined ? 'not_done' : 'done'
    this.log.write({ kind: 'looked_up', call: -1, key, status, means })
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(says === 'garbage' ? '<html>' : JSON.stringify({ id: receipt ?? null }))
  }
}

/** What a behavior that fails without working answers for a key whose work was done before. */
function repliesWhenKnown(how: Behavior): Behavior {
  return how === 'answers_500' ? 'works_and_answers_500' : how
}

/** One request and its connection. */
class Call {
  readonly number: number
  readonly key: string
  readonly #log: DestinationLog
  readonly #response: ServerResponse

  constructor(log: DestinationLog, number: number, key: string, response: ServerResponse) {
    this.#log = log
    this.number = number
    this.key = key
    this.#response = response
    response.once('close', () => {
      if (!response.headersSent) this.#line('unanswered')
    })
  }

  note(work: 'applied' | 'replayed' | 'mismatched'): void {
    this.#line(work)
  }

  answer(
    status: number,
    means: Meaning,
    body: string,
    headers: Readonly<Record<string, string>> = {},
  ): void {
    if (!this.#head(status, means, { 'content-type': 'application/json', ...headers })) return
    this.#response.end(body)
  }

  /** Nothing more until the caller goes away. */
  stayOpen(): void {}

  reset(): void {
    socketOf(this.#response)?.resetAndDestroy()
  }

  garbage(): void {
    socketOf(this.#response)?.end('220 this is not what you expect\r\n')
  }

  /** A head that promises more than comes. */
  cut(): void {
    if (!this.#head(200, 'done', { 'content-length': '1000' })) return
    this.#response.write('{"id":')
    setImmediate(() => socketOf(this.#response)?.end())
  }

  drip(everyMs: number, timers: Set<NodeJS.Timeout>): void {
    if (!this.#head(200, 'done', { 'content-length': '100000' })) return
    const timer = setInterval(() => this.#response.write(' '), everyMs)
    timers.add(timer)
    this.#response.once('close', () => {
      clearInterval(timer)
      timers.delete(timer)
    })
  }

  /** Ten gigabytes, or as much as the caller puts up with. */
  flood(sent: (bytes: number) => void): void {
    if (!this.#head(200, 'done', { 'content-length': String(10 * 1024 ** 3) })) return
    const chunk = Buffer.alloc(64 * 1024, 'x')
    const pour = (): void => {
      while (!this.#response.destroyed) {
        sent(chunk.length)
        if (!this.#response.write(chunk)) return void this.#response.once('drain', pour)
      }
    }
    pour()
  }

  #head(status: number, means: Meaning, headers: Readonly<Record<string, string>>): boolean {
    const socket = socketOf(this.#response)
    if (socket === null || socket.destroyed || !socket.writable) return false
    this.#log.write({ kind: 'answered', call: this.number, key: this.key, status, means })
    this.#response.writeHead(status, { ...headers })
    this.#response.flushHeaders()
    return true
  }

  #line(kind: 'applied' | 'replayed' | 'mismatched' | 'unanswered'): void {
    this.#log.write({ kind, call: this.number, key: this.key })
  }
}

function socketOf(response: ServerResponse): Socket | null {
  return response.socket
}

/** The body, or null where the caller went away before its end. */
async function readWhole(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer)
  } catch {
    return null
  }
  return request.complete ? Buffer.concat(chunks) : null
}

async function listenLocally(server: Server): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}
