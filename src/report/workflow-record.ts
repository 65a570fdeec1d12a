/**
 * A workflow: its states and what may follow what, which versions of it ran, and how many orders stand where. The
 * present configuration says what could be, the database what is.
 */
import type { Database } from '../postgres/executor.ts'
import { entitles, type Workflow } from '../workflow/workflow.ts'
import { isoTime, requiredTime, type IsoTime } from './row-values.ts'

/** How many orders stand in a state. */
export interface StateCount {
  readonly workflow: string
  readonly state: string
  /** Digits. */
  readonly orders: string
}

/** A state of a workflow. */
export interface WorkflowState {
  readonly state: string
  readonly entitles: boolean
  readonly is_initial: boolean
  /** Whether the present configuration declares it. */
  readonly is_declared: boolean
  readonly orders: string
}

/** A version that ran here. */
export interface WorkflowVersion {
  readonly version: string
  /** Whether the present configuration is this one. */
  readonly is_current: boolean
  readonly event_types: readonly string[]
  readonly effect_types: readonly string[]
  readonly first_registered_at: IsoTime
  readonly last_registered_at: IsoTime
  readonly retired_at: IsoTime | null
}

/** A workflow, or what is known of one that the configuration no longer has. */
export interface WorkflowRecord {
  readonly workflow: string
  readonly is_configured: boolean
  /** It decides and records, and neither grants nor sends. */
  readonly in_shadow: boolean
  readonly initial: string | null
  /** Who opens its orders: `app` or `event`. */
  readonly opens: string | null
  readonly sources: readonly string[]
  readonly states: readonly WorkflowState[]
  readonly transitions: readonly { readonly from: string; readonly to: string }[]
  /** Histories whose every order is checked at each start; null: it has none, and nothing is checked. */
  readonly histories: number | null
  readonly versions: readonly WorkflowVersion[]
}

/** Counts the orders of every workflow by state. Reads all of them: keep the answer for a while. */
export async function countOrders(db: Database): Promise<StateCount[]> {
  return db.query<StateCount>({
    text: `select workflow, state, count(*)::text as orders from ${db.schema}orders
      group by workflow, state order by workflow, state`,
    values: [],
  })
}

/** Most versions that are told: the newest. */
const mostVersions = 50

/** Reads a workflow; null where neither configuration nor database knows it. */
export async function readWorkflow(
  db: Database,
  name: string,
  workflow: Workflow | null,
  counts: readonly StateCount[],
): Promise<WorkflowRecord | null> {
  const s = db.schema
  const [registered, versions] = await Promise.all([
    db.query<{ state: string; entitles: boolean }>({
      text: `select state, entitles from ${s}workflow_states where workflow = $1 order by registered_at, state`,
      values: [name],
    }),
    db.query<Omit<WorkflowVersion, 'is_current'>>({
      text: `select version, event_types, effect_types, first_registered_at, last_registered_at, retired_at
        from ${s}workflow_versions where workflow = $1
        order by last_registered_at desc, version limit ${mostVersions}`,
      values: [name],
    }),
  ])
  if (workflow === null && registered.length === 0 && versions.length === 0) return null
  const declared = workflow?.shadowOf ?? workflow
  return {
    workflow: name,
    is_configured: workflow !== null,
    in_shadow: workflow?.shadowOf !== undefined,
    initial: workflow?.initial ?? null,
    opens: workflow?.opens ?? null,
    sources: workflow?.sources ?? [],
    states: statesOf(name, declared, registered, counts),
    transitions: [...(workflow?.transitions ?? [])].flatMap(([from, targets]) =>
      targets.map((to) => ({ from, to })),
    ),
    histories: workflow?.histories?.length ?? null,
    versions: versions.map((row) => ({
      ...row,
      is_current: row.version === workflow?.version,
      first_registered_at: requiredTime(row.first_registered_at),
      last_registered_at: requiredTime(row.last_registered_at),
      retired_at: isoTime(row.retired_at),
    })),
  }
}

/** Those of the configuration in its order, then what orders may still stand in. */
function statesOf(
  name: string,
  workflow: Workflow | null,
  registered: readonly { readonly state: string; readonly entitles: boolean }[],
  counts: readonly StateCount[],
): WorkflowState[] {
  const ordersIn = new Map(
    counts.filter((each) => each.workflow === name).map((each) => [each.state, each.orders]),
  )
  const known = new Map(registered.map((each) => [each.state, each.entitles]))
  const names = new Set([...(workflow?.states.keys() ?? []), ...known.keys(), ...ordersIn.keys()])
  return [...names].map((state) => {
    const isDeclared = workflow?.states.has(state) ?? false
    return {
      state,
      entitles:
        workflow !== null && isDeclared ? entitles(workflow, state) : (known.get(state) ?? false),
      is_initial: workflow?.initial === state,
      is_declared: isDeclared,
      orders: ordersIn.get(state) ?? '0',
    }
  })
}
