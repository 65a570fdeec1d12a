/** The plans of statements as they really ran: a pool whose connections load auto_explain. */
import type pg from 'pg'
import type { TestDatabase } from './test-database.ts'

/** A node of a plan: what it does, and on which table. */
export interface PlanNode {
  readonly type: string
  readonly table: string | null
  /** By which index, where by one. */
  readonly index: string | null
  /** How many rows of the table it looked at, over all of its loops. */
  readonly rows: number
}

/** One statement that ran, with all nodes of its plan. */
export interface CapturedPlan {
  readonly text: string
  readonly nodes: readonly PlanNode[]
}

/** A pool that explains whatever runs on it, and what it has explained so far. */
export function createExplainingPool(database: TestDatabase): {
  readonly pool: pg.Pool
  readonly plans: CapturedPlan[]
} {
  const plans: CapturedPlan[] = []
  const settings = {
    session_preload_libraries: 'auto_explain',
    'auto_explain.log_min_duration': '0',
    'auto_explain.log_analyze': 'on',
    'auto_explain.log_timing': 'off',
    'auto_explain.log_nested_statements': 'on',
    'auto_explain.log_format': 'json',
    'auto_explain.log_level': 'notice',
    'auto_explain.log_parameter_max_length': '0',
  }
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  const pool = database.pool({ max: 8, options: options.join(' ') })
  pool.on('connect', (client) => {
    client.on('notice', ({ message = '' }) => {
      const start = message.indexOf('plan:\n')
      if (start === -1) return
      const { 'Query Text': text, Plan: plan } = JSON.parse(message.slice(start + 6)) as {
        'Query Text': string
        Plan: JsonPlan
      }
      plans.push({ text, nodes: flatten(plan) })
    })
  })
  return { pool, plans }
}

interface JsonPlan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Actual Rows'?: number
  readonly 'Actual Loops'?: number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly Plans?: readonly JsonPlan[]
}

function flatten(plan: JsonPlan): PlanNode[] {
  const own = {
    type: plan['Node Type'],
    table: plan['Relation Name'] ?? null,
    index: plan['Index Name'] ?? null,
    rows:
      ((plan['Actual Rows'] ?? 0) +
        (plan['Rows Removed by Filter'] ?? 0) +
        (plan['Rows Removed by Index Recheck'] ?? 0)) *
      (plan['Actual Loops'] ?? 1),
  }
  return [own, ...(plan.Plans ?? []).flatMap(flatten)]
}
