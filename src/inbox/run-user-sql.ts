/**
 * Users' own functions inside the engine's transaction: plain handlers, and the `apply` of effects.
 * A failure names its event, so that the rest of the batch goes on without it.
 */
import type { Executor } from '../postgres/executor.ts'
import type { InboxEvent } from '../workflow/event.ts'
import { printable } from '../workflow/checked-text.ts'
import { operationsOf, viewEffects } from '../workflow/fold-context.ts'
import { reversedSuffix, type LedgerEffect, type OrderLedger } from '../workflow/order.ts'
import type { AppOperation, HandlerOutbox } from '../workflow/outbox-port.ts'
import type { Registry } from '../workflow/registry.ts'
import type { Resolved } from '../workflow/resolve-event.ts'
import type { ApplyInput, UserExecutor } from '../workflow/workflow.ts'
import { EventFailure } from './batch-failure.ts'
import { userPlannerSetup } from './claim.ts'
import type { OutboxWrites } from './outbox-writes.ts'
import type { Settled } from './outcome-parts.ts'
import { userExecutor, type HeldExecutor } from './user-executor.ts'

type Plain = Extract<Resolved, { kind: 'plain' }>

/**
 * Runs one function of the user's, at the longest `withinMs`: one that never returns must hold up
 * neither the batch nor this worker. It cannot be stopped, but its db refuses whatever it still tries.
 */
async function runOne<T>(
  tx: Executor,
  key: bigint,
  withinMs: number,
  run: (db: HeldExecutor) => Promise<T>,
): Promise<T> {
  const db = userExecutor(tx)
  let timer: NodeJS.Timeout | undefined
  try {
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`its function did not return within ${withinMs} ms`)),
        withinMs,
      )
    })
    // a query that was not awaited would fail the commit, or the next event, in place of its own
    const result = await Promise.race([answeredRun(db, run), late])
    db.throwFailure()
    return result
  } catch (error) {
    throw new EventFailure(key, error)
  } finally {
    clearTimeout(timer)
    db.close()
  }
}

/** Only what users are told of: the rest of it could end the transaction. */
function plainExecutor(db: HeldExecutor): UserExecutor {
  return Object.freeze({
    query: <R>(text: string, values?: readonly unknown[]) => db.query<R>(text, values),
  })
}

async function answeredRun<T>(db: HeldExecutor, run: (db: HeldExecutor) => Promise<T>): Promise<T> {
  const result = await run(db)
  await db.answered()
  return result
}

/** Runs plain handlers one after another; `ignored` is the reason where one says "not ours". */
export async function runPlainHandlers(
  tx: Executor,
  plain: readonly Plain[],
  withinMs: number,
  addOperation: OutboxWrites['addOperation'],
): Promise<readonly { readonly event: InboxEvent; readonly ignored: string | null }[]> {
  if (plain.length === 0) return []
  await tx.query({ text: userPlannerSetup })
  const results: { event: InboxEvent; ignored: string | null }[] = []
  for (const { event, body, handler } of plain) {
    const answer = await runOne(tx, event.key, withinMs, async (db) => {
      const outbox = handlerOutbox(db, addOperation)
      return handler.run({ event: body, db: plainExecutor(db), outbox })
    })
    const refused = typeof answer === 'object' && answer !== null && answer.kind === 'not_ours'
    results.push({ event, ignored: refused ? printable(answer.reason) : null })
  }
  return results
}

/** What a handler sends through: what it adds stands and falls with what it writes. */
function handlerOutbox(
  db: HeldExecutor,
  addOperation: OutboxWrites['addOperation'],
): HandlerOutbox {
  return Object.freeze({
    add: (operation: AppOperation) => db.guarded((tx) => addOperation(tx, operation)),
  })
}

/** Runs `apply` once for each effect that this batch newly inserted, in the order of the decisions. */
export async function runEffectSql(
  tx: Executor,
  settled: readonly Settled[],
  registry: Registry,
  orders: ReadonlyMap<string, OrderLedger>,
  withinMs: number,
): Promise<void> {
  const runs = settled
    .flatMap(({ outcome }) => outcome.effects.map((effect) => ({ outcome, effect })))
    .flatMap(({ outcome, effect }) => {
      const run = functionOf(registry, outcome.workflow, effect)
      return run === undefined ? [] : [{ outcome, effect, run }]
    })
  if (runs.length === 0) return
  await tx.query({ text: userPlannerSetup })
  for (const { outcome, effect, run } of runs) {
    const order = orders.get(outcome.orderId ?? '')
    await runOne(tx, outcome.event.key, withinMs, async (db) =>
      run({
        db: plainExecutor(db),
        order: { id: outcome.orderId ?? '', subject: order?.subject ?? null },
        effect: viewOf(effect, order),
      }),
    )
  }
}

function functionOf(
  registry: Registry,
  workflow: string | null,
  effect: LedgerEffect,
): ((input: ApplyInput) => Promise<void>) | undefined {
  const effects = workflow === null ? undefined : registry.workflows.get(workflow)?.effects
  if (effect.type.endsWith(reversedSuffix))
    return effects?.get(effect.type.slice(0, -reversedSuffix.length))?.reverse
  return effects?.get(effect.type)?.apply
}

/** The effect as `apply` sees it; a reversal is shown as the effect that it reverses. */
function viewOf(effect: LedgerEffect, order: OrderLedger | undefined): ApplyInput['effect'] {
  const operations = order?.operations ?? []
  if (!effect.type.endsWith(reversedSuffix)) {
    return Object.freeze({
      ...effect,
      reversed: false,
      operations: operationsOf(effect, operations),
    })
  }
  const type = effect.type.slice(0, -reversedSuffix.length)
  const original = viewEffects(order?.effects ?? [], operations).find(
    (each) => each.type === type && each.reference === effect.reference,
  )
  return original ?? Object.freeze({ ...effect, type, reversed: true, operations: [] })
}
