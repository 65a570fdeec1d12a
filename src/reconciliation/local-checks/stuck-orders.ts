/** Orders that were opened long ago and of which nothing ever came: no payment, no effect, no other state. */
import type { Executor } from '../../postgres/executor.ts'
import { finding } from '../../workflow/finding-kinds.ts'
import { entitles, type Workflow } from '../../workflow/workflow.ts'
import type { CompareContext } from '../compare-context.ts'
import type { Discrepancy } from '../ports.ts'
import { local } from './local-discrepancy.ts'

function stuckStatement(s: string): string {
  return `select o.order_id, o.state, o.updated_at, o.workflow from unnest($1::text[]) as k(id)
    cross join lateral (select * from ${s}orders o where o.order_id = k.id collate "C" offset 0) o
    join unnest($2::text[], $3::text[]) as i(workflow, initial) on i.workflow = o.workflow and i.initial = o.state
    where o.updated_at < now() - $4::bigint * interval '1 millisecond'
      and not exists (select 1 from ${s}ledger_payments p where p.order_id = o.order_id offset 0)
      and not exists (select 1 from ${s}fulfillment_effects f where f.order_id = o.order_id offset 0)
    order by o.order_id`
}

/** Those of these orders that are stuck. */
export async function stuckOrders(
  { db, registry, settings }: Pick<CompareContext, 'db' | 'registry' | 'settings'>,
  tx: Pick<Executor, 'query'>,
  ids: readonly string[],
): Promise<Discrepancy[]> {
  const waiting = [...registry.workflows.values()].filter(leadsOn)
  if (waiting.length === 0 || ids.length === 0) return []
  const rows = await tx.query<{
    order_id: string
    state: string
    updated_at: Date | string
    workflow: string
  }>({
    text: stuckStatement(db.schema),
    values: [
      ids,
      waiting.map(({ name }) => name),
      waiting.map(({ initial }) => initial),
      settings.stuckAfterMs,
    ],
  })
  return rows.map(({ order_id: order, state, updated_at: at, workflow }) => {
    const since = new Date(at).toISOString()
    const draft = finding('order_stuck', `order:${order}`, { order, workflow, state, since })
    return local(draft, order)
  })
}

/** An order of a workflow whose first state is all there is waits for nothing. */
function leadsOn(workflow: Workflow): boolean {
  const next = workflow.transitions.get(workflow.initial) ?? []
  return next.length > 0 && !entitles(workflow, workflow.initial)
}
