/**
 * A pool that changes statements on their way: what the engine would be without a condition that it has. It
 * counts what it changed, since a change that finds nothing to change proves nothing.
 */
import type pg from 'pg'
import type { PoolLike } from '../../src/postgres/pool.ts'

/** A pool over another one. */
export interface RewrittenPool extends PoolLike {
  /** How often each rewrite found what it changes, in their order. */
  readonly applied: readonly number[]
}

/** Wraps a pool; each rewrite is a text, and what stands in its place. */
export function rewrittenPool(
  pool: pg.Pool,
  rewrites: readonly (readonly [from: string, to: string])[],
): RewrittenPool {
  const applied = rewrites.map(() => 0)
  const rewrite = (text: string): string =>
    rewrites.reduce((given, [from, to], at) => {
      if (!given.includes(from)) return given
      applied[at] = (applied[at] ?? 0) + 1
      return given.replaceAll(from, to)
    }, text)
  const wrap = (client: pg.PoolClient): pg.PoolClient =>
    new Proxy(client, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property, target)
        if (typeof value !== 'function') return value
        if (property !== 'query') return (value as () => unknown).bind(target)
        return (statement: string | { readonly text: string }, ...rest: [never]) =>
          target.query(
            (typeof statement === 'string'
              ? rewrite(statement)
              : { ...statement, text: rewrite(statement.text) }) as never,
            ...rest,
          )
      },
    })
  return {
    applied,
    connect: (async () => wrap(await pool.connect())) as PoolLike['connect'],
    on: pool.on.bind(pool) as PoolLike['on'],
  }
}
