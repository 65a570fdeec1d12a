/** The order of a finding as it stands, and as its decisions say it should, read under its lock. */
import { formatMoney, type Money } from '../../core/money.ts'
import type { Executor } from '../../postgres/executor.ts'
import type { OrderLedger } from '../../workflow/order.ts'
import { grants, type Workflow } from '../../workflow/workflow.ts'
import { pairOf } from './draft.ts'
import {
  decidedGrants,
  decidedState,
  strayedFrom,
  type DecidedGrant,
  type DecidedMove,
} from './decided.ts'

/** Where an order stands. */
export interface Standing {
  /** What its decisions lead to; null where they do not say. */
  readonly decided: string | null
  readonly grants: ReadonlyMap<string, DecidedGrant>
  /** How much and until when, as decisions stated it, the latest first; one for ever where none did. */
  readonly figures: ReadonlyMap<string, readonly StatedFigures[]>
  /** For whom, and for how much, the app opened it; null where it did not say. */
  readonly subject: string | null
  readonly expected: Money | null
  /** Those of its decisions that grant only what is not active yet. */
  readonly changes: readonly DecidedMove[]
  /** A state that a decision went on from, and that none led to; null: there is none. */
  readonly strayed: string | null
  /** Whether a person said once how it is to be, whatever the provider says. */
  readonly isSaid: boolean
}

/** How much of an entitlement, and until when. */
export interface StatedFigures {
  readonly quantity: number
  readonly validUntil: Date | null
}

/** Reads the decisions of an order. */
export async function readStanding(
  schema: string,
  tx: Executor,
  orderId: string,
  workflow: Workflow,
): Promise<Standing> {
  const rows = await tx.query<{
    decision_id: string
    kind: string
    from_state: string | null
    to_state: string | null
    entitles: boolean | null
    granted: string | null
    revoked: string | null
    stated: string | null
    subject: string | null
    expected: string | null
    choice: string | null
  }>({
    text: `select decision_id, kind, from_state, to_state, entitles,
        (evidence -> 'granted')::text as granted, (evidence -> 'revoked')::text as revoked, (evidence -> 'stated')::text as stated,
        case when kind = 'opened' then evidence ->> 'subject' end as subject,
        case when kind = 'opened' then evidence ->> 'expected' end as expected,
        case when kind = 'repaired' then evidence ->> 'choice' end as choice
      from ${schema}ledger_decisions where order_id = $1 order by decision_id`,
    values: [orderId],
  })
  const moves: DecidedMove[] = rows.map((row) => ({
    decisionId: BigInt(row.decision_id),
    from: presentName(workflow, row.from_state),
    to: presentName(workflow, row.to_state),
    entitles: row.entitles === true,
    granted: textsOf(row.granted),
    revoked: textsOf(row.revoked),
  }))
  const figures = new Map<string, StatedFigures[]>()
  for (const { stated } of [...rows].reverse())
    for (const [pair, each] of figuresOf(stated))
      figures.set(pair, [...(figures.get(pair) ?? []), each])
  const [subject = null] = rows.flatMap((row) => (row.subject === null ? [] : [row.subject]))
  const [expected = null] = rows.flatMap((row) => moneyOf(row.expected) ?? [])
  // opening names a state and moves nothing: it can come after the first events, and names where they had come
  const walked = moves.filter((_, index) => rows[index]?.kind !== 'opened')
  const opened = moves.find((_, index) => rows[index]?.kind === 'opened')
  const isMoved = walked.some(({ to }) => to !== null)
  return {
    decided: isMoved ? decidedState(walked, workflow.initial) : (opened?.to ?? null),
    grants: decidedGrants(moves),
    figures,
    subject,
    expected,
    changes: moves.filter((_, index) => changing.has(rows[index]?.kind ?? '')),
    strayed: isMoved ? strayedFrom(walked, workflow.initial) : null,
    isSaid: rows.some(({ choice }) => choice !== null && said.test(choice)),
  }
}

const changing: ReadonlySet<string> = new Set(['fulfilled', 'moved', 'reversed', 'redecided'])

/** Choices by which a person says how an order is to be. */
const said = /^(?:target|accept|compensate|keep)\b/

/** `49.00 USD`, as opening an order tells it; the currency's digits are all there. */
function moneyOf(text: string | null): Money | null {
  const [, digits = '', currency = ''] = /^([\d.]+) ([A-Z]{3})$/.exec(text ?? '') ?? []
  if (currency === '') return null
  const read = { amount: BigInt(digits.replace('.', '')), currency }
  return formatMoney(read) === text ? read : null
}

function figuresOf(json: string | null): [string, StatedFigures][] {
  const read = json === null ? null : (JSON.parse(json) as unknown)
  if (typeof read !== 'object' || read === null || Array.isArray(read)) return []
  return Object.entries(
    read as Record<string, { quantity?: unknown; valid_until?: unknown } | null>,
  ).map(([pair, each]) => [
    pair,
    {
      quantity: typeof each?.quantity === 'number' ? each.quantity : 1,
      validUntil: typeof each?.valid_until === 'string' ? new Date(each.valid_until) : null,
    },
  ])
}

/** A state that was recorded under a name that the workflow has renamed since. */
function presentName(workflow: Workflow, state: string | null): string | null {
  if (state === null || workflow.states.has(state)) return state
  for (const [name, { renamedFrom }] of workflow.states) if (renamedFrom === state) return name
  return state
}

function textsOf(json: string | null): string[] {
  if (json === null) return []
  const read = JSON.parse(json) as unknown
  return Array.isArray(read) ? read.filter((each) => typeof each === 'string') : []
}

/**
 * The order as its decisions say: its state, whose it is, what is active, how much of it and until when. Where
 * they state several figures, `truth` (the same order, folded from the provider's records) tells which holds.
 */
export function restored(
  ledger: OrderLedger,
  {
    decided,
    grants: granted,
    figures,
    subject,
    expected,
  }: Omit<Standing, 'changes' | 'strayed' | 'isSaid'>,
  workflow: Workflow,
  truth: OrderLedger | null,
): OrderLedger {
  const state = decided ?? ledger.state
  const open = grants(workflow, state)
  const rows = new Map(ledger.entitlements.map((row) => [pairOf(row), row]))
  const agreed = truth?.state === state ? truth.entitlements : []
  const known = new Map(agreed.map((row) => [pairOf(row), row]))
  for (const [pair, grant] of granted) {
    const active = grant.active && open
    const row = rows.get(pair) ?? missingRow(pair, known)
    if (row === undefined) continue
    const { quantity, validUntil } = known.get(pair) ?? statedOf(row, figures.get(pair) ?? [])
    rows.set(pair, {
      ...row,
      quantity,
      validUntil,
      active,
      // what an entitling order states is active: what is not, is stated no more
      stated: active || (!open && (known.get(pair)?.stated ?? row.stated)),
      grantedBy: active ? (grant.grantedBy ?? row.grantedBy) : row.grantedBy,
    })
  }
  for (const [pair, row] of rows)
    if (!granted.has(pair) && row.active) rows.set(pair, { ...row, active: false, stated: false })
  return {
    ...ledger,
    state,
    subject: subject ?? ledger.subject,
    expected: expected ?? ledger.expected,
    entitlements: [...rows.values()],
  }
}

/** Its own figures where any decision stated them, else those that the latest did. */
function statedOf(row: StatedFigures, stated: readonly StatedFigures[]): StatedFigures {
  const fits = stated.some(
    (each) =>
      each.quantity === row.quantity && each.validUntil?.getTime() === row.validUntil?.getTime(),
  )
  return fits ? row : (stated[0] ?? { quantity: 1, validUntil: null })
}

/** A row that somebody removed; subjects and entitlements have no spaces that could be told apart otherwise. */
function missingRow(
  pair: string,
  known: ReadonlyMap<string, OrderLedger['entitlements'][number]>,
): OrderLedger['entitlements'][number] | undefined {
  const row = known.get(pair)
  if (row !== undefined) return row
  const at = pair.lastIndexOf(' ')
  if (at <= 0) return undefined
  return {
    subject: pair.slice(0, at),
    entitlement: pair.slice(at + 1),
    quantity: 1,
    validUntil: null,
    active: false,
    stated: true,
    grantedBy: null,
  }
}
