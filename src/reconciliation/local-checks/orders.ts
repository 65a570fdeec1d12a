/**
 * Orders against their own decisions and effects. Many are sifted by one statement; what is left is read and
 * judged, all of it in one moment of the database.
 */
import type { Executor } from '../../postgres/executor.ts'
import { finding } from '../../workflow/finding-kinds.ts'
import { grantWorkflow } from '../../workflow/grant-workflow.ts'
import type { OrderLedger } from '../../workflow/order.ts'
import type { Workflow } from '../../workflow/workflow.ts'
import type { CompareContext } from '../compare-context.ts'
import type { Discrepancy } from '../ports.ts'
import { judgeOrder, presentName } from './judge-order.ts'
import { local } from './local-discrepancy.ts'
import { decisionsOf } from './order-decisions.ts'
import { stuckOrders } from './stuck-orders.ts'
import { suspiciousOrders } from './suspicious-orders.ts'

/** Judges these orders. */
export async function checkOrders(
  ctx: CompareContext,
  tx: Executor,
  ids: readonly string[],
): Promise<Discrepancy[]> {
  // what support gives away is an order, too, of a workflow that no configuration names
  const workflows = new Map([...ctx.registry.workflows, [grantWorkflow.name, grantWorkflow]])
  const { schema } = ctx.db
  const days = Math.max(1, ctx.identityRetentionDays - 1)
  const closer = await suspiciousOrders(schema, tx, ids, workflows, days)
  const orders = await ctx.ledger.readOrders(tx, closer)
  const decisions = await decisionsOf(schema, tx, closer)
  const newer = await newerStates(schema, tx, orders, workflows)
  const found: Discrepancy[] = []
  for (const order of orders.values()) {
    const workflow = workflows.get(order.workflow)
    if (workflow === undefined || newer.has(stateKey(order))) continue
    const faults = judgeOrder(order, decisions.get(order.id) ?? [], workflow)
    const { id, state } = order
    const about = `order:${id}`
    if (faults.tampered.length > 0) {
      const differs = faults.tampered.join('; ')
      const decided = faults.decided === null ? {} : { decided: faults.decided }
      found.push(local(finding('tampered', about, { order: id, state, ...decided, differs }), id))
    }
    if (faults.entitled.length > 0) {
      const entitled = faults.entitled.join(', ')
      const figures = { order: id, state, entitled }
      found.push(local(finding('entitlement_without_state', about, figures), id))
    }
  }
  found.push(...(await effectsWithoutEvent(ctx, tx, orders, days)))
  found.push(...(await stuckOrders(ctx, tx, ids)))
  return found
}

/** States that only a newer version of a workflow knows: it has registered them, and judges their orders. */
async function newerStates(
  s: string,
  tx: Executor,
  orders: ReadonlyMap<string, OrderLedger>,
  workflows: ReadonlyMap<string, Workflow>,
): Promise<ReadonlySet<string>> {
  const unknown = [...orders.values()].filter(({ workflow: name, state }) => {
    const workflow = workflows.get(name)
    return workflow !== undefined && !workflow.states.has(presentName(workflow, state))
  })
  if (unknown.length === 0) return new Set()
  const rows = await tx.query<{ workflow: string; state: string }>({
    text: `select w.workflow, w.state from unnest($1::text[], $2::text[]) as k(workflow, state)
      cross join lateral (select * from ${s}workflow_states w
        where w.workflow = k.workflow collate "C" and w.state = k.state collate "C" offset 0) w`,
    values: [unknown.map(({ workflow }) => workflow), unknown.map(({ state }) => state)],
  })
  return new Set(rows.map(stateKey))
}

function stateKey({ workflow, state }: Pick<OrderLedger, 'workflow' | 'state'>): string {
  return `${workflow}\n${state}`
}

async function effectsWithoutEvent(
  { db }: CompareContext,
  tx: Executor,
  orders: ReadonlyMap<string, OrderLedger>,
  days: number,
): Promise<Discrepancy[]> {
  if (orders.size === 0) return []
  const s = db.schema
  const rows = await tx.query<{
    order_id: string
    effect_type: string
    effect_reference: string
    decision_id: string
    kind: string | null
  }>({
    text: `select f.order_id, f.effect_type, f.effect_reference, f.decision_id, m.kind
      from unnest($1::text[]) as k(id)
      cross join lateral (select * from ${s}fulfillment_effects f where f.order_id = k.id collate "C"
        and f.recorded_at > now() - $2::integer * interval '1 day' offset 0) f
      left join lateral (select d.kind, d.event_key from ${s}ledger_decisions d
        where d.decision_id = f.decision_id offset 0) m on true
      where m.kind is null or m.kind in ('fulfilled', 'moved', 'reversed') and not exists (
        select 1 from ${s}inbox_events e where e.event_key = m.event_key offset 0)
      order by 1, 2, 3`,
    values: [[...orders.keys()], days],
  })
  return rows.map((row) => {
    const { order_id: order, effect_type: type, effect_reference: reference } = row
    const missing = row.kind === null ? 'its decision' : 'the event of its decision'
    const figures = { order, effect: type, reference, decision: row.decision_id, missing }
    const about = `effect:${order}:${type}:${reference}`
    return local(finding('effect_without_event', about, figures), order)
  })
}
