/**
 * The doors through which something is recorded without an event: what support gives away. Wired here,
 * since ledger and inbox never import one another.
 */
import { randomUUID } from 'node:crypto'
import { wakeParts } from '../inbox/outcome-parts.ts'
import { endGrant, writeGrant, type GrantContext, type GrantEnding } from '../ledger/grant.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { checkedGrant, checkedReason, type GrantEnd, type GrantRequest } from '../workflow/grant.ts'

function contextOf(db: Database): GrantContext {
  return { db, wake: (names) => wakeParts(db.schema, names) }
}

/**
 * Gives something away in the transaction that `tx` is in; answers the id of the grant's order.
 *
 * @throws HookledgerError HKL_GRANT_INVALID saying what is wrong
 */
export async function giveAway(db: Database, tx: Executor, request: GrantRequest): Promise<string> {
  const grant = checkedGrant(request, () => `grant_${randomUUID()}`)
  await writeGrant(contextOf(db), tx, grant)
  return grant.id
}

/**
 * Ends what was given away, in the transaction that `tx` is in.
 *
 * @throws HookledgerError HKL_GRANT_INVALID where no grant has this id
 */
export async function endGiven(
  db: Database,
  tx: Executor,
  { id, ...by }: GrantEnd,
): Promise<GrantEnding> {
  return endGrant(contextOf(db), tx, { id, ...checkedReason(by) })
}
