/**
 * Workflows in shadow, in the database: since when, what their orders state, and the end of it, when what
 * they state begins to count. Nothing of a workflow in shadow is ever active.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { entitles, type Workflow } from '../workflow/workflow.ts'
import { registerStates } from './register.ts'

/**
 * Notes which workflows are in shadow; what must still be done about those that are not any more.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID for one that has granted already: the next event of a customer
 * would take away what was paid for
 */
export async function registerShadows(
  db: Database,
  workflows: readonly Workflow[],
): Promise<string[]> {
  const s = db.schema
  const rows = await db.query<{ workflow: string; is_open: boolean }>({
    text: `select workflow, ended_at is null as is_open from ${s}shadow_workflows`,
  })
  const open = new Set(rows.filter((row) => row.is_open).map((row) => row.workflow))
  const warnings: string[] = []
  for (const { name, shadowOf } of workflows) {
    if (shadowOf === undefined && open.has(name))
      warnings.push(
        `workflow "${name}" was in shadow until now: what its orders state counts after hookledger shadow end ${name} --reason '…'`,
      )
    if (shadowOf === undefined || open.has(name)) continue
    await refuseGranting(db, name)
    await db.query({
      text: `insert into ${s}shadow_workflows (workflow) values ($1)
        on conflict (workflow) do update set since = now(), ended_at = null`,
      values: [name],
    })
  }
  return warnings
}

async function refuseGranting(db: Database, workflow: string): Promise<void> {
  const [granting] = await db.query<{ order_id: string }>({
    text: `select o.order_id from ${db.schema}entitlements e
      join ${db.schema}orders o on o.order_id = e.order_id
      where e.active and o.workflow = $1 limit 1`,
    values: [workflow],
  })
  if (granting === undefined) return
  throw new HookledgerError(
    'HKL_CONFIG_INVALID',
    `workflow "${workflow}" cannot go into shadow: it has granted already (order ${granting.order_id}); remove it from shadow`,
  )
}

/** Which workflows are in shadow, by the database. */
export async function openShadows(db: Database): Promise<string[]> {
  const rows = await db.query<{ workflow: string }>({
    text: `select workflow from ${db.schema}shadow_workflows where ended_at is null order by workflow`,
  })
  return rows.map((row) => row.workflow)
}

/** Subjects for whom orders of workflows in shadow state something, after one, in their order. */
export async function shadowSubjects(
  db: Database,
  after: string,
  limit: number,
): Promise<{ readonly subject: string; readonly isYoung: boolean }[]> {
  const s = db.schema
  const rows = await db.query<{ subject: string; is_young: boolean }>({
    text: `select e.subject, bool_or(o.updated_at > now() - interval '${youngSeconds} seconds') as is_young
      from (
        select distinct e.subject from ${s}entitlements e
        join ${s}orders o on o.order_id = e.order_id
        join ${s}shadow_workflows h on h.workflow = o.workflow and h.ended_at is null
        where e.subject > $1 order by e.subject limit $2::integer) n
      join ${s}entitlements e on e.subject = n.subject
      join ${s}orders o on o.order_id = e.order_id
      group by e.subject order by e.subject`,
    values: [after, limit],
  })
  return rows.map((row) => ({ subject: row.subject, isYoung: row.is_young }))
}

/** So long after a change the app's own handler may not have come to its answer yet. */
const youngSeconds = 60

/** What a subject would have, if what is in shadow counted; combined as declared. */
export interface ShadowEntitlement {
  readonly subject: string
  readonly entitlement: string
  readonly quantity: bigint
  readonly validUntil: Date | null
  readonly orderIds: readonly string[]
}

/** What these subjects would have by the orders of workflows in shadow. */
export async function shadowEntitlements(
  db: Database,
  subjects: readonly string[],
): Promise<ShadowEntitlement[]> {
  const s = db.schema
  const rows = await db.query<{
    subject: string
    entitlement: string
    quantity: string
    valid_until: Date | string | null
    order_ids: string[]
  }>({
    text: `select e.subject, e.entitlement,
        case coalesce(r.combine, 'any') when 'sum' then sum(e.quantity)::bigint else max(e.quantity) end as quantity,
        case when bool_or(e.valid_until is null) then null else max(e.valid_until) end as valid_until,
        array_agg(e.order_id order by e.order_id) as order_ids
      from ${s}entitlements e
      join ${s}orders o on o.order_id = e.order_id
      join ${s}shadow_workflows h on h.workflow = o.workflow and h.ended_at is null
      join ${s}workflow_states w on w.workflow = o.workflow and w.state = o.state
      left join ${s}entitlement_rules r on r.entitlement = e.entitlement
      where e.subject = any ($1::text[]) and e.stated and w.entitles
        and (e.valid_until is null or e.valid_until > now())
      group by e.subject, e.entitlement, r.combine`,
    values: [subjects],
  })
  return rows.map((row) => ({
    subject: row.subject,
    entitlement: row.entitlement,
    quantity: BigInt(row.quantity),
    validUntil: row.valid_until === null ? null : new Date(row.valid_until),
    orderIds: row.order_ids,
  }))
}

/** How many orders of a batch began to count; fewer than asked for: nothing is left. */
export interface ShadowEnding {
  readonly orders: number
  readonly entitlements: number
}

/**
 * Lets what some orders state count from now on, each by a decision of kind `adopted`. Orders that somebody
 * holds are waited for, as long as the transaction's `lock_timeout` allows.
 */
export async function endShadowBatch(
  db: Database,
  tx: Executor,
  workflow: Workflow,
  by: { readonly reason: string; readonly actor: string },
  limit: number,
): Promise<ShadowEnding> {
  const s = db.schema
  await registerStates(db, tx, workflow)
  const states = [...workflow.states.keys()].filter((state) => entitles(workflow, state))
  const found = await tx.query<{ order_id: string }>({
    text: `select o.order_id from ${s}orders o
      where o.workflow = $1 and o.state = any ($2::text[])
        and exists (select from ${s}entitlements e where e.order_id = o.order_id and e.stated and not e.active)
      order by o.order_id limit $3::integer`,
    values: [workflow.name, states, limit],
  })
  const ids = found.map((row) => row.order_id)
  if (ids.length === 0) return { orders: 0, entitlements: 0 }
  // locked first, read in a second statement: one that waited would not see what it waited for
  await tx.query({
    text: `select 1 from ${s}orders where order_id = any ($1::text[]) order by order_id for no key update`,
    values: [ids],
  })
  const [counts] = await tx.query<{ entitlements: number }>({
    text: `with dormant as materialized (
        select e.order_id, e.subject, e.entitlement, o.state from ${s}entitlements e
        join ${s}orders o on o.order_id = e.order_id
        where e.order_id = any ($1::text[]) and e.stated and not e.active and o.state = any ($2::text[])),
      decided as (
        insert into ${s}ledger_decisions (order_id, workflow, kind, final, from_state, to_state, entitles, reason, evidence, workflow_version, actor)
        select order_id, $3, 'adopted', false, state, state, true, $4, jsonb_build_object('shadow_ended', true, 'granted', jsonb_agg(subject || ' ' || entitlement order by subject, entitlement)), $5, $6
        from dormant group by order_id, state returning order_id, decision_id),
      versions as (
        update ${s}orders o set version = o.version + 1, updated_at = clock_timestamp()
        from decided d where o.order_id = d.order_id returning 1),
      activated as (
        update ${s}entitlements e set active = true, granted_by = d.decision_id, changed_by = d.decision_id, version = e.version + 1
        from decided d where e.order_id = d.order_id and e.stated and not e.active returning 1),
      told as (
        insert into ${s}entitlement_changes (subject, order_id, decision_id, because)
        select distinct n.subject, d.order_id, d.decision_id, 'shadow' from decided d join dormant n on n.order_id = d.order_id
        returning 1)
      select count(*)::integer as entitlements from activated`,
    values: [ids, states, workflow.name, by.reason, workflow.version, by.actor],
  })
  return { orders: ids.length, entitlements: counts?.entitlements ?? 0 }
}

/** Records who ends a shadow, and why: in the first commit of it. */
export async function recordShadowEnd(
  db: Database,
  tx: Executor,
  workflow: string,
  by: { readonly reason: string; readonly actor: string },
): Promise<void> {
  await tx.query({
    text: `insert into ${db.schema}operator_acts (act, target, reason, actor)
      values ('shadow end', 'workflow:' || $1::text, $2, $3)`,
    values: [workflow, by.reason, by.actor],
  })
}

/** Notes that a shadow is over. */
export async function closeShadow(db: Database, workflow: string): Promise<void> {
  const s = db.schema
  await db.query({
    text: `with gone as (
        delete from ${s}shadow_differences where not exists (
          select from ${s}shadow_workflows h where h.ended_at is null and h.workflow <> $1) returning 1)
      update ${s}shadow_workflows set ended_at = now() where workflow = $1 and ended_at is null`,
    values: [workflow],
  })
}
