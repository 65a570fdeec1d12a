/**
 * Faults that a test or the simulation plants into the API: what really happens to calls, at the four
 * places where it makes a difference to the caller's retry.
 */

import type { ListFault } from './list-faults.ts'

/** Which calls a fault meets. */
export interface FaultMatch {
  method?: 'GET' | 'POST' | 'DELETE'
  /** The whole path (`/v1/refunds`), or a pattern. */
  path?: string | RegExp
  account?: string
  idempotencyKey?: string
  /** Only lists that go on after a record (true), or only first pages and single objects (false). */
  continued?: boolean
}

/**
 * Where in the call the fault sits:
 * - `before`: nothing happens and nothing is stored (a rate limit, a gateway, a cut line);
 * - `during`: the endpoint has begun; a `respond` is stored as its answer and the work is not done;
 * - `done`: the work is done, and `respond` is stored as its answer (Stripe's indeterminate 500);
 * - `answer`: the work is done and its true answer stored, but the caller gets `respond`, a cut or nothing in time.
 */
export type FaultPhase = 'before' | 'during' | 'done' | 'answer'

/** A fault to plant. */
export interface FaultRule {
  match?: FaultMatch
  /** `before` when absent. */
  phase?: FaultPhase
  /** Wait so many milliseconds at that place; the call then goes on unless something else is asked for. */
  delayMs?: number
  /** Answer this; a body that is an object is sent as JSON. */
  respond?: { status: number; body?: object | string; headers?: Record<string, string> }
  /** Cut the connection without an answer. */
  reset?: boolean
  /** Answer with a page that is wrong in this way; calls that are no list are answered as ever. */
  list?: ListFault
  /** Answer reads with every amount as a text: no integer that anybody could count with. */
  garble?: 'amounts'
  /** Only the first matching call. */
  once?: boolean
}

/** A planted fault. */
export interface Fault {
  /** How many calls it has met. */
  readonly hits: number
  remove(): void
}

/** What is known of a call when faults are looked up. */
export interface FaultTarget {
  method: string
  path: string
  account: string
  idempotencyKey: string | null
  isContinued: boolean
}

/** The faults planted now; the oldest that matches wins. */
export class Faults {
  readonly #planted: { rule: FaultRule; hits: number }[] = []

  plant(rule: FaultRule): Fault {
    const planted = { rule, hits: 0 }
    this.#planted.push(planted)
    return {
      get hits() {
        return planted.hits
      },
      remove: () => this.#remove(planted),
    }
  }

  /** The fault that meets the call, counted as a hit. */
  meet(target: FaultTarget): FaultRule | undefined {
    const planted = this.#planted.find(({ rule }) => matches(rule.match ?? {}, target))
    if (!planted) return undefined
    planted.hits++
    if (planted.rule.once) this.#remove(planted)
    return planted.rule
  }

  #remove(planted: { rule: FaultRule; hits: number }): void {
    const at = this.#planted.indexOf(planted)
    if (at !== -1) this.#planted.splice(at, 1)
  }
}

function matches(match: FaultMatch, target: FaultTarget): boolean {
  if (match.method !== undefined && match.method !== target.method) return false
  if (match.account !== undefined && match.account !== target.account) return false
  if (match.idempotencyKey !== undefined && match.idempotencyKey !== target.idempotencyKey)
    return false
  if (match.continued !== undefined && match.continued !== target.isContinued) return false
  if (match.path === undefined) return true
  if (typeof match.path === 'string') return match.path === target.path
  // A pattern with the `g` flag remembers where it stopped: search from the start every time.
  return new RegExp(match.path.source, match.path.flags.replace('g', '')).test(target.path)
}
