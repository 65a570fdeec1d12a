/**
 * Gives away, and ends what was given, inside the caller's transaction: order, decision, entitlements and
 * the record of who did it and why become visible together or not at all.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { subjectAsAsked } from '../postgres/present-subject.ts'
import { runParts, type WritePart } from '../postgres/write-parts.ts'
import { endedState, grantedState, grantWorkflow } from '../workflow/grant-workflow.ts'
import type { CheckedGrant, GrantEnd } from '../workflow/grant.ts'
import { orderKind, type SourceName } from './names.ts'
import { registerStates } from './register.ts'

/** What giving away needs of the other parts. */
export interface GrantContext {
  readonly db: Database
  /** The inbox's part: wakes what waits for a name (source 0 and kind `order` is an order's own id). */
  readonly wake: (names: readonly SourceName[]) => WritePart[]
}

/** `already_ended`: somebody did it before, and nothing changed. */
export type GrantEnding = 'ended' | 'already_ended'

/**
 * Writes a grant in the transaction that `tx` is in; the same grant under its id again changes nothing.
 *
 * @throws HookledgerError HKL_GRANT_INVALID where its end is past, or another order has its id
 */
export async function writeGrant(
  { db, wake }: GrantContext,
  tx: Executor,
  grant: CheckedGrant,
): Promise<void> {
  const s = db.schema
  await requireFuture(tx, grant.until)
  await registerStates(db, tx, grantWorkflow)
  const inserted = await tx.query({
    text: `insert into ${s}orders (order_id, workflow, state, subject)
      values ($1, $2, $3, $4) on conflict (order_id) do nothing returning 1`,
    values: [grant.id, grantWorkflow.name, grantedState, grant.subject],
  })
  if (inserted.length === 0) return requireSame(s, tx, grant)
  // waits for a deferral of this order that is being committed, and is waited for by the next one
  await tx.query({
    text: `insert into ${s}order_names as n (source_id, kind, name, order_id) values (0, '${orderKind}', $1, $1)
      on conflict (source_id, kind, name) do update set order_id = excluded.order_id`,
    values: [grant.id],
  })
  const own = { sourceId: 0, kind: orderKind, value: grant.id }
  await runParts(tx, [grantedPart(s, grant), ...wake([own])])
}

/**
 * Ends a grant in the transaction that `tx` is in, waiting for whoever holds it.
 *
 * @throws HookledgerError HKL_GRANT_INVALID where no grant has this id
 */
export async function endGrant(
  { db, wake }: GrantContext,
  tx: Executor,
  end: GrantEnd,
): Promise<GrantEnding> {
  const s = db.schema
  const [order] = await tx.query<{ state: string }>({
    text: `select state from ${s}orders where order_id = $1 and workflow = $2 for no key update`,
    values: [end.id, grantWorkflow.name],
  })
  if (order === undefined)
    throw invalid(
      `no grant has the id ${JSON.stringify(end.id)}: check it with "hookledger explain"`,
    )
  if (order.state === endedState) return 'already_ended'
  // read under the order's lock, by a statement of its own: what it grants cannot change any more
  const rows = await tx.query<{ subject: string; entitlement: string }>({
    text: `select subject, entitlement from ${s}entitlements where order_id = $1 and active
      order by subject, entitlement`,
    values: [end.id],
  })
  const revoked = rows.map(({ subject, entitlement }) => `${subject} ${entitlement}`)
  const own = { sourceId: 0, kind: orderKind, value: end.id }
  await runParts(tx, [endedPart(s, end, revoked), ...wake([own])])
  return 'ended'
}

async function requireFuture(tx: Executor, until: Date | null): Promise<void> {
  if (until === null) return
  const [row] = await tx.query<{ past: boolean }>({
    text: `select $1::timestamptz <= now() as past`,
    values: [until.toISOString()],
  })
  if (row?.past === true)
    throw invalid(`until ${until.toISOString()} is past: nobody would be entitled to anything`)
}

/** Asked again with the same terms it is the same grant; ended or with other terms it is a mistake. */
async function requireSame(s: string, tx: Executor, grant: CheckedGrant): Promise<void> {
  const [order] = await tx.query<{ workflow: string; state: string; subject: string | null }>({
    text: `select o.workflow, o.state, ${subjectAsAsked(s, 'o.subject', '$2::text')} as subject
      from ${s}orders o where o.order_id = $1 for no key update of o`,
    values: [grant.id, grant.subject],
  })
  const rows = await tx.query<{ line: string }>({
    text: `select jsonb_build_array(entitlement, quantity, valid_until at time zone 'UTC')::text as line
      from ${s}entitlements where order_id = $1 and stated
      union all
      select jsonb_build_array(n.entitlement, n.quantity, $4::timestamptz at time zone 'UTC')::text
      from unnest($2::text[], $3::bigint[]) as n(entitlement, quantity)`,
    values: [
      grant.id,
      grant.entitlements.map((each) => each.entitlement),
      grant.entitlements.map((each) => each.quantity),
      grant.until?.toISOString() ?? null,
    ],
  })
  const times = new Map<string, number>()
  for (const { line } of rows) times.set(line, (times.get(line) ?? 0) + 1)
  const isSame = [...times.values()].every((each) => each === 2)
  if (order?.workflow !== grantWorkflow.name)
    throw invalid(`${JSON.stringify(grant.id)} is an order of another workflow: take another id`)
  if (order.state !== grantedState)
    throw invalid(
      `grant ${JSON.stringify(grant.id)} was ended: give it away anew, under another id`,
    )
  if (order.subject !== grant.subject || !isSame)
    throw invalid(
      `grant ${JSON.stringify(grant.id)} exists with another subject, entitlements or end: end it, and give away anew under another id`,
    )
}

function grantedPart(s: string, grant: CheckedGrant): WritePart {
  const evidence = {
    subject: grant.subject,
    until: grant.until?.toISOString() ?? null,
    granted: grant.entitlements.map(({ entitlement }) => `${grant.subject} ${entitlement}`),
    ...statedFigures(grant),
  }
  return {
    name: 'granted',
    sql: `granted_decision as (
        insert into ${s}ledger_decisions (order_id, workflow, kind, final, to_state, entitles, reason, evidence, workflow_version, actor)
        values (:1, :2, 'opened', false, :3, true, :4, :5::text::jsonb, :6, :7) returning decision_id),
      granted_rows as (
        insert into ${s}entitlements (order_id, subject, entitlement, quantity, valid_until, active, granted_by, changed_by)
        select :1, :8, n.entitlement, n.quantity, :9::timestamptz, true, d.decision_id, d.decision_id
        from granted_decision d cross join unnest(:10::text[], :11::bigint[]) as n(entitlement, quantity) returning 1),
      granted_told as (
        insert into ${s}entitlement_changes (subject, order_id, decision_id, because)
        select :8, :1, decision_id, 'grant' from granted_decision returning 1),
      granted as (
        insert into ${s}operator_acts (act, target, reason, actor, details)
        select 'grant', 'order:' || :1::text, :4, :7, :5::text::jsonb from granted_decision returning 1)`,
    values: [
      grant.id,
      grantWorkflow.name,
      grantedState,
      grant.reason,
      JSON.stringify(evidence),
      grantWorkflow.version,
      grant.actor,
      grant.subject,
      grant.until?.toISOString() ?? null,
      grant.entitlements.map((each) => each.entitlement),
      grant.entitlements.map((each) => each.quantity),
    ],
  }
}

/** How much and until when, where it is not simply one for ever: what tampering is found by. */
function statedFigures({ subject, until, entitlements }: CheckedGrant): Record<string, unknown> {
  const told = entitlements.filter(({ quantity }) => until !== null || quantity !== 1)
  if (told.length === 0) return {}
  const valid_until = until?.toISOString() ?? null
  const rows = told.map(({ entitlement, quantity }) => [
    `${subject} ${entitlement}`,
    { quantity, valid_until },
  ])
  return { stated: Object.fromEntries(rows) as unknown }
}

function endedPart(s: string, end: GrantEnd, revoked: readonly string[]): WritePart {
  return {
    name: 'ended',
    sql: `ended_decision as (
        insert into ${s}ledger_decisions (order_id, workflow, kind, final, from_state, to_state, entitles, reason, evidence, workflow_version, actor)
        values (:1, :2, 'moved', false, :3, :4, false, :5, :6::text::jsonb, :7, :8) returning decision_id),
      ended_order as (
        update ${s}orders set state = :4, version = version + 1, updated_at = clock_timestamp() where order_id = :1 returning 1),
      ended_rows as (
        update ${s}entitlements e set active = false, changed_by = d.decision_id, version = e.version + 1
        from ended_decision d where e.order_id = :1 and e.active returning e.subject),
      ended_told as (
        insert into ${s}entitlement_changes (subject, order_id, decision_id, because)
        select distinct r.subject, :1, d.decision_id, 'grant' from ended_rows r, ended_decision d returning 1),
      ended as (
        insert into ${s}operator_acts (act, target, reason, actor, details)
        select 'grant end', 'order:' || :1::text, :5, :8, :6::text::jsonb from ended_decision returning 1)`,
    values: [
      end.id,
      grantWorkflow.name,
      grantedState,
      endedState,
      end.reason,
      JSON.stringify({ revoked }),
      grantWorkflow.version,
      end.actor,
    ],
  }
}

function invalid(message: string): HookledgerError {
  return new HookledgerError('HKL_GRANT_INVALID', message)
}
