/**
 * The way of an order through its workflow: which states, which transitions, how often, what was refused. The
 * workflow says what could be, its decisions what was.
 */
import type { Database } from '../postgres/executor.ts'
import { entitles, type Workflow } from '../workflow/workflow.ts'
import { eventReference, type Reference } from './reference.ts'
import { counted, requiredTime, type Count, type IsoTime } from './row-values.ts'

/** A state of a graph. */
export interface GraphState {
  readonly state: string
  readonly entitles: boolean
  readonly is_initial: boolean
  readonly is_current: boolean
  /** Whether the present configuration declares it. */
  readonly is_declared: boolean
  /** How often the order came into it. */
  readonly visits: Count
  /** Decisions that left it there. */
  readonly stays: Count
}

/** A transition. */
export interface GraphTransition {
  readonly from: string
  readonly to: string
  readonly is_declared: boolean
  readonly taken: Count
  readonly last_at: IsoTime | null
  /** How often it was asked for and not permitted. */
  readonly refused: Count
}

/** One step of the way. */
export interface GraphStep {
  readonly at: IsoTime
  /** Null for the first one. */
  readonly from: string | null
  readonly to: string
  readonly decision_id: string
  readonly kind: string
  readonly event: Reference | null
}

/** The graph of an order. */
export interface OrderGraph {
  readonly workflow: string
  /** Whether the present configuration has the workflow: without it only what was taken is known. */
  readonly is_configured: boolean
  readonly initial: string | null
  readonly current: string
  readonly states: readonly GraphState[]
  readonly transitions: readonly GraphTransition[]
  /** The newest steps, the oldest of them first. */
  readonly path: readonly GraphStep[]
  readonly omitted_steps: Count
}

/** How many steps are told. */
const shownSteps = 200

interface MoveRow {
  readonly from_state: string | null
  readonly to_state: string
  readonly times: string
  readonly last_at: Date | string
}

/** Reads the way of an order; null when there is no such order. */
export async function orderGraph(
  db: Database,
  orderId: string,
  workflowOf: (name: string) => Workflow | null,
): Promise<OrderGraph | null> {
  const s = db.schema
  const [order] = await db.query<{ workflow: string; state: string }>({
    text: `select workflow, state from ${s}orders where order_id = $1`,
    values: [orderId],
  })
  if (order === undefined) return null
  const values = [orderId]
  const [moves, refusals, steps, known] = await Promise.all([
    db.query<MoveRow>({
      text: `select from_state, to_state, count(*) as times, max(decided_at) as last_at from ${s}ledger_decisions
        where order_id = $1 and to_state is not null and kind not in ('deferred', 'contradicted') group by 1, 2`,
      values,
    }),
    db.query<{ from_state: string; to_state: string; times: string }>({
      text: `select from_state, evidence ->> 'to' as to_state, count(*) as times from ${s}ledger_decisions
        where order_id = $1 and kind = 'contradicted' and from_state is not null
          and evidence ->> 'to' is not null and evidence ->> 'to' <> from_state group by 1, 2`,
      values,
    }),
    readSteps(db, orderId),
    db.query<{ state: string; entitles: boolean }>({
      text: `select state, entitles from ${s}workflow_states where workflow = $1 order by registered_at, state`,
      values: [order.workflow],
    }),
  ])
  const workflow = workflowOf(order.workflow)
  const moved = moves.filter((each) => each.from_state !== each.to_state)
  const transitions = transitionsOf(workflow, moved, refusals)
  return {
    workflow: order.workflow,
    is_configured: workflow !== null,
    initial: workflow?.initial ?? null,
    current: order.state,
    states: statesOf({ workflow, known, moves, transitions, current: order.state }),
    transitions,
    path: steps.slice(0, shownSteps).reverse(),
    omitted_steps: Math.max(
      0,
      moved.reduce((sum, each) => sum + counted(each.times), 0) - shownSteps,
    ),
  }
}

async function readSteps(db: Database, orderId: string): Promise<GraphStep[]> {
  const s = db.schema
  const rows = await db.query<{
    decided_at: Date | string
    from_state: string | null
    to_state: string
    decision_id: string
    kind: string
    source: string | null
    event_id: string | null
  }>({
    text: `select d.decided_at, d.from_state, d.to_state, d.decision_id, d.kind, e.event_id,
        case when e.event_key is not null then concat_ws(':', n.provider, n.provider_account, n.environment) end as source
      from (
        select * from ${s}ledger_decisions d where d.order_id = $1 and d.to_state is not null
          and d.from_state is distinct from d.to_state and d.kind not in ('deferred', 'contradicted')
        order by d.decision_id desc limit ${shownSteps}) d
      left join ${s}inbox_events e on e.event_key = d.event_key
      left join ${s}sources n on n.source_id = e.source_id
      order by d.decision_id desc`,
    values: [orderId],
  })
  return rows.map(({ source, event_id: id, ...row }) => ({
    at: requiredTime(row.decided_at),
    from: row.from_state,
    to: row.to_state,
    decision_id: row.decision_id,
    kind: row.kind,
    event: source === null || id === null ? null : eventReference({ source, event_id: id }),
  }))
}

function transitionsOf(
  workflow: Workflow | null,
  moved: readonly MoveRow[],
  refusals: readonly { from_state: string; to_state: string; times: string }[],
): GraphTransition[] {
  const pairs = new Map<string, GraphTransition>()
  const change = (from: string, to: string, part: Partial<GraphTransition>): void => {
    const key = `${from}\n${to}`
    const empty = { from, to, is_declared: false, taken: 0, last_at: null, refused: 0 }
    pairs.set(key, { ...(pairs.get(key) ?? empty), ...part })
  }
  for (const [from, targets] of workflow?.transitions ?? [])
    for (const to of targets) change(from, to, { is_declared: true })
  for (const { from_state: from, to_state: to, times, last_at: at } of moved)
    if (from !== null) change(from, to, { taken: counted(times), last_at: requiredTime(at) })
  for (const { from_state: from, to_state: to, times } of refusals)
    change(from, to, { refused: counted(times) })
  return [...pairs.values()]
}

function statesOf(of: {
  readonly workflow: Workflow | null
  readonly known: readonly { readonly state: string; readonly entitles: boolean }[]
  readonly moves: readonly MoveRow[]
  readonly transitions: readonly GraphTransition[]
  readonly current: string
}): GraphState[] {
  const { workflow, known, moves, transitions, current } = of
  const registered = new Map(known.map((each) => [each.state, each.entitles]))
  const touched = [...transitions.flatMap(({ from, to }) => [from, to]), current]
  // a workflow that is no longer configured: what was registered of it is all that is known
  const declared = workflow === null ? [...registered.keys()] : [...workflow.states.keys()]
  const sum = (rows: readonly MoveRow[]): number =>
    rows.reduce((total, each) => total + counted(each.times), 0)
  return [...new Set([...declared, ...touched])].map((state) => {
    const into = moves.filter((each) => each.to_state === state)
    const isDeclared = workflow?.states.has(state) ?? false
    return {
      state,
      entitles:
        workflow !== null && isDeclared
          ? entitles(workflow, state)
          : (registered.get(state) ?? false),
      is_initial: workflow?.initial === state,
      is_current: state === current,
      is_declared: isDeclared,
      visits: sum(into.filter((each) => each.from_state !== state)),
      stays: sum(into.filter((each) => each.from_state === state)),
    }
  })
}
