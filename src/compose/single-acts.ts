/**
 * Acts on one thing that somebody may ask for twice: by a double click, or in two tabs. The second is answered with
 * what is so already, under the lock under which the first was done, and leaves no second record.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import type { ActReason, ActReport } from '../outbox/acts.ts'
import {
  assignFinding,
  dismissFinding,
  type FindingActBy,
  type FindingActReport,
} from '../reconciliation/finding-acts.ts'
import { guarded } from './guarded-database.ts'
import { outboxActs, type OutboxActs } from './outbox.ts'
import type { HookledgerParts } from './parts.ts'

/** What was asked for is so already: nothing was done, and nothing recorded. */
export class Unchanged extends Error {}

/** The acts on operations over a database of one's own. */
export async function actsOver(parts: HookledgerParts, db: Database): Promise<OutboxActs> {
  const { destinations, findings: policy, limits } = parts.config
  const { id: installationId } = await parts.installation()
  return outboxActs({ db, installationId, destinations, policy, limits, signals: parts.signals })
}

/** Locks an operation as its acts do, its destination first, and answers how it stands. */
export async function lockOperation(
  s: string,
  tx: Executor,
  operationId: string,
): Promise<{ readonly state: string; readonly is_due: boolean } | undefined> {
  await tx.query({
    text: `select 1 from ${s}outbox_destinations where destination =
        (select destination from ${s}outbox_operations where operation_id = $1::uuid) for no key update`,
    values: [operationId],
  })
  const [row] = await tx.query<{ state: string; is_due: boolean }>({
    text: `select state, coalesce(next_attempt_at <= statement_timestamp(), false) as is_due
      from ${s}outbox_operations where operation_id = $1::uuid for no key update`,
    values: [operationId],
  })
  return row
}

/**
 * Sends an operation again; null: it is uncertain and due already.
 *
 * @throws HookledgerError as `outbox retry` does
 */
export async function retryOnce(
  parts: HookledgerParts,
  operationId: string,
  by: ActReason,
): Promise<ActReport | null> {
  const db = parts.database()
  const before = async (tx: Executor): Promise<void> => {
    const standing = await lockOperation(db.schema, tx, operationId)
    if (standing?.state === 'uncertain' && standing.is_due) throw new Unchanged()
  }
  return orNull(async () => (await actsOver(parts, guarded(db, { before }))).retry(operationId, by))
}

/** Gives a finding to somebody; null: it is theirs. @throws HookledgerError as `findings assign` does */
export async function assignOnce(
  db: Database,
  findingId: string,
  owner: string,
  by: FindingActBy,
): Promise<FindingActReport | null> {
  const before = async (tx: Executor): Promise<void> => {
    const [row] = await tx.query<{ owner: string; state: string }>({
      text: `select owner, state from ${db.schema}findings where finding_id = $1::uuid for update`,
      values: [findingId],
    })
    if (row !== undefined && row.state !== 'closed' && row.owner === owner.trim())
      throw new Unchanged()
  }
  return orNull(() => assignFinding(guarded(db, { before }), findingId, owner, by))
}

/** Dismisses a finding; null: it is, until this very moment. @throws HookledgerError as `findings dismiss` does */
export async function dismissOnce(
  db: Database,
  findingId: string,
  until: Date,
  by: FindingActBy,
): Promise<FindingActReport | null> {
  const before = async (tx: Executor): Promise<void> => {
    const [row] = await tx.query<{ is_same: boolean }>({
      text: `select (state = 'dismissed' and dismissed_until = $2::timestamptz and dismissed_evidence = evidence) as is_same
        from ${db.schema}findings where finding_id = $1::uuid for update`,
      values: [findingId, until.toISOString()],
    })
    if (row?.is_same === true) throw new Unchanged()
  }
  return orNull(() => dismissFinding(guarded(db, { before }), findingId, until, by))
}

async function orNull<T>(act: () => Promise<T>): Promise<T | null> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof Unchanged) return null
    throw error
  }
}
