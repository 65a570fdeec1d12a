/**
 * A connection in somebody's hands: what is heard on it meanwhile, whether it is outside any transaction,
 * and how it is given back.
 */
import type pg from 'pg'
import { HookledgerError } from '../core/errors.ts'

/** What was heard on a checked-out connection. */
export interface ConnectionGuard {
  readonly settled: boolean
  /** Whether BEGIN found a transaction open: one that was under way when the connection was given back. */
  wasInside(): boolean
  /** @throws HookledgerError when the server warned that the commit was not made safe. */
  assertDurable(): void
  settle(): void
}

interface Notice {
  readonly code?: string | undefined
  readonly routine?: string | undefined
}

/** Listens on a checked-out connection: errors between statements, and warnings about COMMIT. */
export function guardConnection(client: pg.PoolClient): ConnectionGuard {
  let settled = false
  let unsafe = false
  let inside = false
  const onError = (): void => {}
  const onNotice = ({ code, routine }: Notice): void => {
    // users' own RAISE WARNING has this code too, and says nothing about a commit
    if (code === '01000' && (routine === undefined || routine === 'SyncRepWaitForLSN'))
      unsafe = true
    if (code === '25001') inside = true
  }
  client.on('error', onError)
  client.on('notice', onNotice)
  return {
    get settled() {
      return settled
    },
    wasInside: () => inside,
    assertDurable() {
      if (!unsafe) return
      throw new HookledgerError(
        'HKL_TRANSACTION_UNKNOWN',
        'the server warned that the commit was not confirmed by its standby',
      )
    },
    settle() {
      if (settled) return
      settled = true
      client.off('error', onError)
      client.off('notice', onNotice)
    },
  }
}

/** `I` outside a transaction, `T` inside, `E` inside one that failed; undefined where the driver cannot say. */
export function statusOf(client: pg.PoolClient): string | null | undefined {
  return 'getTransactionStatus' in client ? client.getTransactionStatus() : undefined
}

/** Whether no transaction is open on it. */
export function isOutside(client: pg.PoolClient): boolean {
  return (statusOf(client) ?? 'I') === 'I'
}

/** With a failure it is closed, and what its server still says then, a last FATAL, must not end the process. */
export function giveBack(client: pg.PoolClient, failure: Error | undefined): void {
  if (failure !== undefined) client.on('error', () => {})
  client.release(failure)
}
