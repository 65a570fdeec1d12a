/**
 * A pool whose statements can be held back one by one, so that two sides can be stepped against each
 * other at every statement.
 */
import type pg from 'pg'
import type { PoolLike } from '../../src/postgres/pool.ts'

/** A pool over another one. */
export interface SteppedPool extends PoolLike {
  /** How many statements were asked for so far. */
  readonly asked: number
  /** What was asked for, shortened. */
  readonly texts: readonly string[]
  /** Holds back the nth statement from now on (1 is the next), or the first that matches. Resolves once it is asked for. */
  holdAt(which: number | RegExp): Promise<void>
  /** Lets what is held back go, and everything after it. */
  go(): void
}

/** Wraps a pool. */
export function steppedPool(pool: pg.Pool): SteppedPool {
  const texts: string[] = []
  let isHeld: (text: string) => boolean = () => false
  let arrived: () => void = () => {}
  let released: Promise<void> = Promise.resolve()
  let go: () => void = () => {}

  const pass = async (statement: unknown): Promise<void> => {
    const text =
      typeof statement === 'string' ? statement : (statement as { readonly text: string }).text
    texts.push(text.replace(/\s+/g, ' ').slice(0, 120))
    if (!isHeld(text)) return
    arrived()
    await released
  }
  const wrap = (client: pg.PoolClient): pg.PoolClient =>
    new Proxy(client, {
      get(target, property) {
        if (property === 'query') {
          return async (...of: [string]) => {
            await pass(of[0])
            return target.query(...of)
          }
        }
        const value: unknown = Reflect.get(target, property, target)
        return typeof value === 'function' ? (value as () => unknown).bind(target) : value
      },
    })
  return {
    get asked() {
      return texts.length
    },
    texts,
    connect: (async () => wrap(await pool.connect())) as PoolLike['connect'],
    on: pool.on.bind(pool) as PoolLike['on'],
    holdAt(which) {
      const last = typeof which === 'number' ? texts.length + which : 0
      let held = false
      isHeld = (text) =>
        (held ||= typeof which === 'number' ? texts.length >= last : which.test(text))
      released = new Promise((resolve) => (go = resolve))
      return new Promise((resolve) => (arrived = resolve))
    },
    go() {
      isHeld = () => false
      go()
    },
  }
}
