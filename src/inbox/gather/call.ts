/**
 * One request to the provider, with an end: whatever the workflow's code does, an outcome comes back by the
 * deadline. Nothing is locked meanwhile, and nothing of it is repeated behind anybody's back.
 */
import type { RetryAfter } from '../../core/errors.ts'
import { toJson } from '../../core/json.ts'
import type { FetchFailure, ProviderApi } from '../../workflow/provider-api.ts'
import type { FetchOutcome, GatherContext, LeasedFetch } from './gather-context.ts'

/** After the deadline a request that ignores its signal is no longer waited for, in milliseconds. */
const graceMs = 250

/** The requests of one gatherer that are under way, so that all of them can be ended. */
export class RequestsUnderWay {
  readonly #ends = new Set<() => void>()
  #stopped = false

  get stopped(): boolean {
    return this.#stopped
  }

  add(end: () => void): void {
    this.#ends.add(end)
  }

  delete(end: () => void): void {
    this.#ends.delete(end)
  }

  /** Ends what is under way, and lets nothing more begin. */
  stop(): void {
    this.#stopped = true
    for (const end of this.#ends) end()
  }
}

/** Asks the provider. Never rejects. */
export async function makeRequest(
  ctx: GatherContext,
  fetch: LeasedFetch,
  underWay: RequestsUnderWay,
): Promise<FetchOutcome> {
  const { settings } = ctx
  // a process that was stopped meanwhile must not ask under a lease that others take for lost
  const left = settings.leaseMs - (performance.now() - fetch.leasedAt)
  if (underWay.stopped || left < settings.callMs) return { kind: 'released' }
  const api = ctx.apiOf(fetch.source.name)
  try {
    return answeredWith(ctx, fetch, await withDeadline(ctx, fetch, api, underWay))
  } catch (error) {
    if (error instanceof Stopped) return { kind: 'released' }
    return outcomeOf(fetch, failureOf(error, api), settings.maxRetryMs)
  }
}

/** Thrown where this process stops before there is an answer. */
class Stopped extends Error {}

/** Thrown where there is no answer in time. */
class TooLate extends Error {}

async function withDeadline(
  ctx: GatherContext,
  fetch: LeasedFetch,
  api: ProviderApi | undefined,
  underWay: RequestsUnderWay,
): Promise<unknown> {
  const { callMs } = ctx.settings
  const controller = new AbortController()
  const { signal } = controller
  let hard: NodeJS.Timeout | undefined
  let isStopped = false
  let rejectLate: (error: Error) => void = () => {}
  const late = new Promise<never>((_, reject) => (rejectLate = reject))
  late.catch(() => {})
  const end = (error: Error): void => {
    controller.abort(error)
    hard ??= setTimeout(() => {
      rejectLate(error)
    }, graceMs)
  }
  const stop = (): void => {
    isStopped = true
    end(new Stopped())
  }
  underWay.add(stop)
  const soft = setTimeout(() => {
    end(new TooLate(`no answer within ${callMs} ms`))
  }, callMs)
  try {
    return await Promise.race([run(fetch, api, signal), late])
  } catch (error) {
    if (isStopped) throw new Stopped()
    if (signal.aborted) throw new TooLate(`no answer within ${callMs} ms`)
    throw error
  } finally {
    clearTimeout(soft)
    clearTimeout(hard)
    underWay.delete(stop)
  }
}

async function run(
  fetch: LeasedFetch,
  api: ProviderApi | undefined,
  signal: AbortSignal,
): Promise<unknown> {
  const { handler, source, kind, objectId, event, order } = fetch
  const input = {
    source: source.name,
    account: source.account,
    api: api?.client(source.account, signal) as never,
    signal,
  }
  if (handler.mirror !== undefined)
    return handler.mirror.fetch({ object: Object.freeze({ kind, value: objectId }), ...input })
  if (event === null) throw new Error('the body of the event is no longer kept, or cannot be read')
  return handler.gather?.({ event, order, ...input })
}

/** What an answer is once it is bytes that a worker can read. */
function answeredWith(ctx: GatherContext, fetch: LeasedFetch, value: unknown): FetchOutcome {
  const isMirror = fetch.handler.mirror !== undefined
  // an object that is gone ends access: a forgotten `return` must not
  if (isMirror && value === undefined)
    return failed('fetch answered undefined: return the object, or null where there is none')
  let body: Uint8Array
  try {
    // through JSON's own reading of it, so that what has a `toJSON` is what the worker will see
    body = Buffer.from(toJson({ value: isMirror && value === null ? null : value }))
  } catch {
    return failed('the answer is no plain data: return what JSON can hold')
  }
  if (body.length > ctx.answerBytes) {
    const most = `${ctx.answerBytes} bytes (limits.bodyBytes)`
    return failed(`the answer has ${body.length} bytes, more than ${most}: return what is needed`)
  }
  const content = ctx.reading.parse(body)
  if (!content.readable) return failed(`the answer is ${content.reason}`)
  const lost = lostIn(value, content.value['value'], isMirror)
  if (lost !== null) return failed(lost)
  return { kind: 'answered', isFound: !isMirror || value !== null, body }
}

/** Why an answer is not what it would be read as; null: it is. An object must be gone only where the code says so. */
function lostIn(value: unknown, kept: unknown, isMirror: boolean): string | null {
  if (value === null || value === undefined) return null
  const asks = isMirror ? 'fetch' : 'gather'
  const wanted = isMirror ? 'the object as plain data, or null where there is none' : 'plain data'
  const isHollow =
    typeof kept === 'object' &&
    kept !== null &&
    !Array.isArray(kept) &&
    Object.keys(kept).length === 0 &&
    !isPlain(value)
  if (kept === undefined || kept === null || isHollow)
    return `${asks} answered ${wordFor(value)}, of which JSON keeps nothing: return ${wanted}`
  if (isMirror && typeof kept !== 'object')
    return `fetch answered ${wordFor(value)}: return ${wanted}`
  return null
}

function isPlain(value: unknown): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/** What it is, never what it says. */
function wordFor(value: unknown): string {
  if (typeof value !== 'object' || value === null) return `a ${typeof value}`
  const name: unknown = value.constructor?.name
  return typeof name === 'string' && /^\w{1,60}$/.test(name) ? `a value of ${name}` : 'an object'
}

function failed(text: string): FetchOutcome {
  return { kind: 'failed', failure: { kind: 'unknown' }, text }
}

function outcomeOf(
  fetch: LeasedFetch,
  failure: FetchFailure & { readonly text: string },
  longestMs: number,
): FetchOutcome {
  const { text } = failure
  if (failure.kind === 'later') {
    const asked: unknown = failure.retryAfterMs
    // no answer can put a request off for longer than the longest pause
    const retryAfterMs = typeof asked === 'number' && asked >= 0 ? Math.min(asked, longestMs) : null
    return { kind: 'failed', failure: { ...failure, retryAfterMs }, text: text.slice(0, 300) }
  }
  if (failure.kind !== 'gone') return { kind: 'failed', failure, text: text.slice(0, 300) }
  if (fetch.handler.mirror !== undefined)
    return { kind: 'answered', isFound: false, body: Buffer.from('{"value":null}') }
  // what `gather` answers has a type that knows nothing of this: its code may catch it and answer null
  return failed(`${text.slice(0, 200)}: catch this in gather, and answer what decide can take`)
}

/** What went wrong, by the source's own word where it has an API. Never throws. */
export function failureOf(
  error: unknown,
  api: ProviderApi | undefined,
): FetchFailure & { readonly text: string } {
  try {
    return meaningOf(error, api)
  } catch {
    // what was thrown is the workflow's, and its fields may throw themselves
    return unreadable
  }
}

const unreadable = { kind: 'unknown', text: 'a failure that its source cannot read' } as const

function meaningOf(
  error: unknown,
  api: ProviderApi | undefined,
): FetchFailure & { readonly text: string } {
  if (error instanceof TooLate) return later(error.message)
  if (isRetryAfter(error))
    return { ...later('asked to come back later'), retryAfterMs: error.delayMs }
  if (api !== undefined) {
    const failure: unknown = api.failureOf(error)
    return isFailure(failure) ? failure : unreadable
  }
  const name = error instanceof Error && /^\w{1,60}$/.test(error.name) ? error.name : 'error'
  // fetch() of Node says no more than this of a connection that failed
  if (error instanceof TypeError && error.message === 'fetch failed') return later('no connection')
  if (name === 'AbortError' || name === 'TimeoutError') return later('no answer in time')
  return { kind: 'unknown', text: `${name} in the code that asks` }
}

const failureKinds: ReadonlySet<string> = new Set(['gone', 'later', 'refused', 'unknown'])

function isFailure(value: unknown): value is FetchFailure & { readonly text: string } {
  if (typeof value !== 'object' || value === null) return false
  const { kind, text } = value as Record<string, unknown>
  return typeof kind === 'string' && failureKinds.has(kind) && typeof text === 'string'
}

function isRetryAfter(error: unknown): error is RetryAfter {
  return (
    error instanceof Error &&
    error.constructor?.name === 'RetryAfter' &&
    typeof (error as RetryAfter).delayMs === 'number'
  )
}

function later(text: string): Extract<FetchFailure, { kind: 'later' }> & { readonly text: string } {
  return { kind: 'later', retryAfterMs: null, isRateLimit: false, text }
}
