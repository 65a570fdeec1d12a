/**
 * What a destination of the tests saw and did, in the order in which it did: written by the destination
 * alone, never changed afterwards, and never read or written by the product. It is honest even where the
 * destination's answers are not.
 */

/** What an answer says of the work of its own request: `nothing` where it leaves that open. */
export type Meaning = 'done' | 'not_done' | 'nothing'

/** One line of the log. `call` numbers the requests; `at` is monotonic, in milliseconds. */
export type LogEntry = {
  readonly call: number
  /** What the request was recognized by: the key that was sent. */
  readonly key: string
  readonly at: number
} & (
  | { readonly kind: 'received'; readonly sha256: string; readonly behavior: string }
  /** The work was done, by this call. */
  | { readonly kind: 'applied' }
  /** The key was known: nothing was done again. */
  | { readonly kind: 'replayed' }
  /** The key was known with other bytes: refused. */
  | { readonly kind: 'mismatched' }
  /** The head of an answer was handed to the connection while the caller was still there. */
  | { readonly kind: 'answered'; readonly status: number; readonly means: Meaning }
  /** The connection was broken off, by this side or by the caller, before there was an answer. */
  | { readonly kind: 'unanswered' }
  | { readonly kind: 'looked_up'; readonly status: number; readonly means: Meaning }
)

/** One request, folded from its lines. */
export interface LoggedCall {
  readonly call: number
  readonly key: string
  readonly sha256: string
  readonly behavior: string
  readonly receivedAt: number
  readonly work: 'applied' | 'replayed' | 'mismatched' | 'none'
  /** Null where the caller was gone, or the connection was broken off. */
  readonly answer: {
    readonly status: number
    readonly means: Meaning
    readonly at: number
  } | null
}

/** An append-only log. */
export class DestinationLog {
  readonly #entries: LogEntry[] = []

  /** Everything so far, in order. */
  get entries(): readonly LogEntry[] {
    return this.#entries
  }

  /** Writes one line. */
  write(entry: DistributiveOmit<LogEntry, 'at'>): void {
    this.#entries.push(Object.freeze({ ...entry, at: performance.now() }) as LogEntry)
  }

  /** The requests for work, in the order in which they came. */
  calls(): readonly LoggedCall[] {
    return foldCalls(this.#entries)
  }

  /** How often the work of each operation was done, under all of its keys. */
  applications(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { kind, key } of this.#entries)
      if (kind === 'applied') counts.set(operationOf(key), (counts.get(operationOf(key)) ?? 0) + 1)
    return counts
  }

  /** How many requests met each behavior. */
  hits(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { behavior } of this.calls()) counts.set(behavior, (counts.get(behavior) ?? 0) + 1)
    return counts
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

/** The operation that a key was made for: `<id>`, or `<id>:<generation>`. */
export function operationOf(key: string): string {
  return key.split(':')[0] ?? key
}

/** Folds lines into requests. */
export function foldCalls(entries: readonly LogEntry[]): readonly LoggedCall[] {
  const calls = new Map<number, LoggedCall>()
  for (const entry of entries) {
    if (entry.kind === 'received') {
      const { call, key, sha256, behavior, at } = entry
      const first = { call, key, sha256, behavior, receivedAt: at }
      calls.set(call, { ...first, work: 'none', answer: null })
      continue
    }
    const known = calls.get(entry.call)
    if (known === undefined || entry.kind === 'looked_up' || entry.kind === 'unanswered') continue
    calls.set(
      entry.call,
      entry.kind === 'answered'
        ? { ...known, answer: { status: entry.status, means: entry.means, at: entry.at } }
        : { ...known, work: entry.kind },
    )
  }
  return [...calls.values()]
}
