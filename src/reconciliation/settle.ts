/** Waits until what a pass put into the inbox is decided: comparing sooner would call lag a contradiction. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Executor } from '../postgres/executor.ts'
import type { PassContext, SourceRun } from './pass-context.ts'

/** Numbers of events that were put in. */
export interface InjectedKeys {
  readonly first: bigint
  readonly last: bigint
}

/** Both together. */
export function spanOf(span: InjectedKeys | null, keys: readonly bigint[]): InjectedKeys | null {
  let { first, last } = span ?? { first: 0n, last: -1n }
  for (const key of keys) {
    if (last < first) first = last = key
    if (key < first) first = key
    if (key > last) last = key
  }
  return last < first ? null : { first, last }
}

const firstPauseMs = 20
const longestPauseMs = 250

/** Waits at most `withinMs`; answers whether all of them are decided then. */
export async function settle(
  context: PassContext,
  run: SourceRun,
  keys: InjectedKeys,
  withinMs: number,
): Promise<boolean> {
  const until = performance.now() + withinMs
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 2)) {
    await context.decide?.()
    const isDone = !(await areOpen(context.db, context.db.schema, keys))
    if (isDone || performance.now() >= until) return isDone
    await sleep(pauseMs, undefined, { signal: run.signal })
  }
}

/** Whether any is ready, in hand, or to be tried again; deferred, ignored and dead ones are decided. */
async function areOpen(
  tx: Pick<Executor, 'query'>,
  schema: string,
  { first, last }: InjectedKeys,
): Promise<boolean> {
  const between = 'where event_key between $1::bigint and $2::bigint'
  const [row] = await tx.query<{ open: boolean }>({
    text: `select exists (
        select from (
          select event_key from ${schema}inbox_ready ${between}
          union all select event_key from ${schema}inbox_delayed ${between}
          union all select event_key from ${schema}inbox_suspects ${between}
          union all select event_key from ${schema}inbox_gathers ${between} and waiting) u
        cross join lateral (
          select i.via from ${schema}inbox_events i where i.event_key = u.event_key offset 0) e
        where e.via = 'reconciliation') as open`,
    values: [first.toString(), last.toString()],
  })
  return row?.open ?? false
}
