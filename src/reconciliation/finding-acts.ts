/**
 * What a person decides about a finding without repairing it: whose it is, and that it is fine as it is. Who and
 * why are recorded in the commit of what it changes.
 */
import { HookledgerError } from '../core/errors.ts'
import { nameFlaw, reasonFlaw } from '../core/recorded-text.ts'
import type { Database, Executor } from '../postgres/executor.ts'

/** Who and why. */
export interface FindingActBy {
  readonly reason: string
  readonly actor: string
}

/** What an act did. */
export interface FindingActReport {
  readonly findingId: string
  readonly kind: string
  readonly state: string
  readonly owner: string
  /** Until when it is dismissed. */
  readonly until: Date | null
}

interface Standing {
  readonly kind: string
  readonly state: string
  readonly owner: string
}

/**
 * Gives a finding to somebody else.
 *
 * @throws HookledgerError HKL_CLI_USAGE for a name or reason that cannot be recorded, HKL_FINDING_UNKNOWN, or
 * HKL_FINDING_NOT_OPEN for one that is closed
 */
export async function assignFinding(
  db: Database,
  findingId: string,
  owner: string,
  by: FindingActBy,
): Promise<FindingActReport> {
  const name = owner.trim()
  const flaw = name === '' ? 'is empty' : nameFlaw(name)
  if (flaw !== null) throw new HookledgerError('HKL_CLI_USAGE', `the owner ${flaw}`)
  requireRecordable(by)
  return db.transaction(async (tx) => {
    const { kind, state, owner: from } = await lockFinding(db.schema, tx, findingId)
    await tx.query({
      text: `update ${db.schema}findings set owner = $2 where finding_id = $1::uuid`,
      values: [findingId, name],
    })
    await record(db.schema, tx, 'findings assign', findingId, by, { from, to: name })
    return { findingId, kind, state, owner: name, until: null }
  })
}

/**
 * Says that a finding is fine as it is, until a day: what it says now, and nothing else. Other figures open it
 * again, and so does the day.
 *
 * @throws HookledgerError HKL_FINDING_UNKNOWN, or HKL_FINDING_NOT_OPEN for one that is closed
 */
export async function dismissFinding(
  db: Database,
  findingId: string,
  until: Date,
  by: FindingActBy,
): Promise<FindingActReport> {
  requireRecordable(by)
  return db.transaction(async (tx) => {
    const { kind, state: from, owner } = await lockFinding(db.schema, tx, findingId)
    const day = until.toISOString()
    const rows = await tx.query({
      text: `update ${db.schema}findings set state = 'dismissed', dismissed_until = $2::timestamptz, dismissed_evidence = evidence
        where finding_id = $1::uuid and $2::timestamptz > now() returning 1`,
      values: [findingId, day],
    })
    if (rows.length === 0)
      throw new HookledgerError('HKL_CLI_USAGE', 'the day until which it is dismissed is past')
    await record(db.schema, tx, 'findings dismiss', findingId, by, { from, until: day })
    return { findingId, kind, state: 'dismissed', owner, until }
  })
}

/** Opens dismissed findings whose day has come; answers how many. They are due as new ones are. */
export async function reopenDismissed(
  db: Database,
  dueMs: Readonly<Record<'lag' | 'contradiction', number>>,
): Promise<number> {
  const s = db.schema
  const rows = await db.query({
    text: `update ${s}findings set state = 'open', escalations = 0,
        due_at = now() + (case class when 'lag' then $1::bigint else $2::bigint end) * interval '1 millisecond'
      where finding_id in (select finding_id from ${s}findings where state = 'dismissed' and dismissed_until <= now()
        order by finding_id limit 1000 for update skip locked)
      returning 1`,
    values: [dueMs.lag, dueMs.contradiction],
  })
  return rows.length
}

/** @throws HookledgerError HKL_CLI_USAGE */
function requireRecordable({ reason, actor }: FindingActBy): void {
  const [ofReason, ofActor] = [reasonFlaw(reason), nameFlaw(actor)]
  if (ofReason !== null) throw new HookledgerError('HKL_CLI_USAGE', `the reason ${ofReason}`)
  if (ofActor !== null) throw new HookledgerError('HKL_CLI_USAGE', `the actor ${ofActor}`)
}

/** Locks the row until the act is recorded. */
async function lockFinding(s: string, tx: Executor, findingId: string): Promise<Standing> {
  const [row] = await tx.query<Standing>({
    text: `select kind, state, owner from ${s}findings where finding_id = $1::uuid for update`,
    values: [findingId],
  })
  if (row === undefined)
    throw new HookledgerError(
      'HKL_FINDING_UNKNOWN',
      `there is no finding ${findingId}: see "hookledger findings list --state all"`,
    )
  if (row.state === 'closed')
    throw new HookledgerError(
      'HKL_FINDING_NOT_OPEN',
      `finding ${findingId} is closed: it opens again by itself if both sides differ again`,
    )
  return row
}

async function record(
  s: string,
  tx: Executor,
  act: string,
  findingId: string,
  { reason, actor }: FindingActBy,
  details: Readonly<Record<string, string>>,
): Promise<void> {
  await tx.query({
    text: `insert into ${s}operator_acts (act, target, reason, actor, details) values ($1, 'finding:' || $2::text, $3, $4, $5::text::jsonb)`,
    values: [act, findingId, reason, actor, JSON.stringify(details)],
  })
}
