/**
 * What users' own SQL runs on: the engine's transaction, without the power to end it.
 */
import { HookledgerError, isPermanent } from '../core/errors.ts'
import type { Executor, Result, Value } from '../postgres/executor.ts'
import type { UserExecutor } from '../workflow/workflow.ts'

/** A {@link UserExecutor} over a transaction, as the engine holds it. */
export interface HeldExecutor extends UserExecutor {
  /**
   * Runs SQL of the engine's own in the same transaction, under the same rules: nothing after the end, what
   * is not awaited is waited for, and what PostgreSQL refused cannot be caught. What only says no can.
   */
  guarded<T>(run: (tx: Executor) => Promise<T>): Promise<T>
  /** Makes it refuse whatever comes after the commit. */
  close(): void
  /**
   * Throws the first error of its SQL, also one that the user's code caught or did not wait for:
   * PostgreSQL has given the whole transaction up by then, and nothing else of the batch could commit in it.
   */
  throwFailure(): void
  /** Resolves when every query that was sent has its answer, awaited by the user's code or not. */
  answered(): Promise<void>
}

/** A {@link UserExecutor} over a transaction. */
export function userExecutor(tx: Executor): HeldExecutor {
  let open = true
  let failure: { readonly error: unknown } | null = null
  const unanswered = new Set<Promise<unknown>>()

  function requireOpen(): void {
    if (open) return
    throw new HookledgerError(
      'HKL_TRANSACTION_CONTROL',
      'this db ended with its transaction: await every query before returning',
    )
  }

  async function runGuarded<T>(run: (tx: Executor) => Promise<T>): Promise<T> {
    requireOpen()
    try {
      return await run(tx)
    } catch (error) {
      if (!(error instanceof HookledgerError || isPermanent(error))) failure ??= { error }
      throw error
    }
  }

  /** One that nobody awaits fails its event, by `throwFailure`, and not the process. */
  function watched<T>(answer: Promise<T>): Promise<T> {
    unanswered.add(answer)
    const done = (): unknown => unanswered.delete(answer)
    answer.then(done, done)
    return answer
  }

  async function ask<R extends object>(
    text: string,
    values: readonly unknown[],
  ): Promise<Result<R>> {
    requireOpen()
    try {
      refuseTransactionControl(text)
      // always the extended protocol: it takes one statement only
      return await tx.execute<R>({ text, values: values as Value[], extended: true })
    } catch (error) {
      failure ??= { error }
      throw error
    }
  }

  return {
    close() {
      open = false
    },
    throwFailure() {
      if (failure !== null) throw failure.error
    },
    async answered() {
      while (unanswered.size > 0) await Promise.allSettled(unanswered)
    },
    guarded: (run) => watched(runGuarded(run)),
    query: <R>(text: string, values: readonly unknown[] = []) =>
      watched(ask<R & object>(text, values)),
  }
}

const control =
  /^(begin|start\s+transaction|commit|end|rollback|abort|savepoint|release|prepare\s+transaction|(?:set|reset)\s+(?:local\s+|session\s+)?(?:transaction|transaction_\w+|session\s+characteristics|synchronous_commit|role|session\s+authorization|authorization))\b/

/**
 * Refuses statements that would end or split the engine's transaction, or take from it the right to
 * write what the other events of the batch decided (another role, read only).
 *
 * @throws HookledgerError HKL_TRANSACTION_CONTROL
 */
export function refuseTransactionControl(text: string): void {
  if (!control.test(text.slice(startOfStatement(text)).toLowerCase())) return
  throw new HookledgerError(
    'HKL_TRANSACTION_CONTROL',
    "this db runs inside the engine's transaction, which commits everything or nothing: remove the transaction control",
  )
}

/** Where the first word begins: after spaces, semicolons and comments, which nest in PostgreSQL. */
function startOfStatement(text: string): number {
  let at = 0
  for (;;) {
    const from = at
    while (/[\s;]/.test(text.charAt(at))) at++
    if (text.startsWith('--', at)) {
      const end = text.slice(at).search(/[\n\r]/)
      at = end === -1 ? text.length : at + end
    } else if (text.startsWith('/*', at)) at = endOfComment(text, at)
    if (at === from) return at
  }
}

function endOfComment(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    if (text.startsWith('/*', at)) depth++
    else if (text.startsWith('*/', at)) depth--
    else continue
    at++
    if (depth === 0) return at + 1
  }
  return text.length
}
