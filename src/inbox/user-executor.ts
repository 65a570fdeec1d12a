/**
 * What users' own SQL runs on: the engine's transaction, without the power to end it.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Executor, Value } from '../postgres/executor.ts'
import type { UserExecutor } from '../workflow/workflow.ts'

/** A {@link UserExecutor} over a transaction; `close` makes it refuse whatever comes after the commit. */
export function userExecutor(tx: Executor): UserExecutor & { close(): void } {
  let open = true
  return {
    close() {
      open = false
    },
    async query<R>(text: string, values: readonly unknown[] = []) {
      if (!open) {
        throw new HookledgerError('HKL_TRANSACTION_CONTROL', 'this db ended with its transaction: await every query before returning')
      }
      refuseTransactionControl(text)
      // always with values: the extended protocol takes one statement only
      return tx.execute<R & object>({ text, values: values as Value[], extended: true })
    },
  }
}

/**
 * Refuses statements that would end or split the engine's transaction.
 *
 * @throws HookledgerError HKL_TRANSACTION_CONTROL
 */
export function refuseTransactionControl(text: string): void {
  const first = text.replace(/^(?:\s+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/|;)*/, '').toLowerCase()
  if (!/^(begin|start\s+transaction|commit|end|rollback|abort|savepoint|release|prepare\s+transaction|set\s+(?:local\s+|session\s+)?(?:transaction|session\s+characteristics|synchronous_commit))\b/.test(first)) return
  throw new HookledgerError(
    'HKL_TRANSACTION_CONTROL',
    'this db runs inside the engine\'s transaction, which commits everything or nothing: remove the transaction control',
  )
}
