/** The rows of budgets, locked in the order of their names: they are everybody's first lock. */
import type { Executor } from '../../postgres/executor.ts'
import { storable } from '../../postgres/storable-text.ts'
import {
  accountRules,
  capacityOf,
  sourceRules,
  type BudgetFigures,
  type BudgetRules,
} from './budget.ts'
import type { GatherSettings } from './gather-context.ts'

/** The budget of a source as a whole. */
export function sourceBudget(name: string): string {
  return `source:${name}`
}

/** The budget of one account of a source. */
export function accountBudget(sourceId: number): string {
  return `account:${sourceId}`
}

/** What a budget goes by. */
export function rulesOf(budget: string, settings: GatherSettings): BudgetRules {
  return budget.startsWith('source:') ? sourceRules(settings) : accountRules(settings)
}

interface BudgetRow {
  readonly budget: string
  readonly tokens: number
  readonly since_ms: number
  readonly failures: number
  readonly closed_ms: number | null
}

/** The statement that reads budgets, with or without their locks, exported so that its plan can be asserted. */
export function budgetsStatement(s: string, locks: boolean): string {
  return `select budget, tokens::double precision as tokens,
      (extract(epoch from clock_timestamp() - refilled_at) * 1000)::double precision as since_ms, failures,
      (extract(epoch from closed_until - clock_timestamp()) * 1000)::double precision as closed_ms
    from ${s}fetch_budgets where budget = any ($1::text[]) order by budget${locks ? ' for update' : ''}`
}

/** Reads budgets without a lock; one that has no row yet is full. */
export async function readBudgets(
  s: string,
  tx: Executor,
  budgets: readonly string[],
  settings: GatherSettings,
): Promise<Map<string, BudgetFigures>> {
  const rows = await tx.query<BudgetRow>({
    text: budgetsStatement(s, false),
    repeated: true,
    values: [[...new Set(budgets)]],
  })
  return figuresOf(budgets, rows, settings)
}

/** Locks budgets until the transaction ends, and makes those that are missing. */
export async function lockBudgets(
  s: string,
  tx: Executor,
  budgets: readonly string[],
  settings: GatherSettings,
): Promise<Map<string, BudgetFigures>> {
  const names = [...new Set(budgets)].sort()
  const lock = { text: budgetsStatement(s, true), repeated: true, values: [names] }
  let rows = await tx.query<BudgetRow>(lock)
  if (rows.length < names.length) {
    await tx.query({
      text: `insert into ${s}fetch_budgets (budget, tokens) select budget, tokens
        from unnest($1::text[], $2::double precision[]) as n(budget, tokens) order by budget
        on conflict (budget) do nothing`,
      values: [names, names.map((name) => capacityOf(rulesOf(name, settings)))],
    })
    rows = await tx.query<BudgetRow>(lock)
  }
  return figuresOf(names, rows, settings)
}

function figuresOf(
  budgets: readonly string[],
  rows: readonly BudgetRow[],
  settings: GatherSettings,
): Map<string, BudgetFigures> {
  const figures = new Map<string, BudgetFigures>(
    budgets.map((budget) => {
      const tokens = capacityOf(rulesOf(budget, settings))
      return [budget, { tokens, sinceRefillMs: 0, failures: 0, closedForMs: null }]
    }),
  )
  for (const row of rows) {
    figures.set(row.budget, {
      tokens: Number(row.tokens),
      sinceRefillMs: Number(row.since_ms),
      failures: row.failures,
      closedForMs: row.closed_ms === null ? null : Number(row.closed_ms),
    })
  }
  return figures
}

/** A budget to be written; the error is kept where there is one. */
export interface BudgetChange {
  readonly budget: string
  readonly figures: BudgetFigures
  readonly error: string | null
}

/** Writes budgets that are locked. */
export async function writeBudgets(
  s: string,
  tx: Executor,
  changes: readonly BudgetChange[],
): Promise<void> {
  if (changes.length === 0) return
  await tx.query({
    text: `update ${s}fetch_budgets b set tokens = n.tokens, failures = n.failures,
        refilled_at = clock_timestamp() - n.since_ms * interval '1 millisecond',
        closed_until = clock_timestamp() + n.closed_ms * interval '1 millisecond',
        last_error = case when n.failures = 0 then null else coalesce(n.error, b.last_error) end
      from unnest($1::text[], $2::double precision[], $3::double precision[], $4::integer[], $5::double precision[], $6::text[])
        as n(budget, tokens, since_ms, failures, closed_ms, error)
      where b.budget = n.budget`,
    repeated: true,
    values: [
      changes.map((each) => each.budget),
      changes.map(({ figures }) => figures.tokens),
      changes.map(({ figures }) => figures.sinceRefillMs),
      changes.map(({ figures }) => figures.failures),
      changes.map(({ figures }) => figures.closedForMs),
      changes.map(({ error }) => (error === null ? null : storable(error))),
    ],
  })
}
