/**
 * The ledger as lists, the newest decision first: what was decided, and what payments and effects came of it.
 * Effects and payments have no order of their own that a write would pay for: they are found along decisions.
 */
import type { Database, Value } from '../../postgres/executor.ts'
import { keyedPlans } from '../../postgres/keyed-plans.ts'
import { exactJson, requiredTime, type IsoTime } from '../row-values.ts'
import { cursorForms, pageOf, readCursor, type Page, type PageRequest } from './keyset.ts'

/** A decision in a list. */
export interface ListedDecision {
  readonly decision_id: string
  readonly kind: string
  readonly final: boolean
  readonly order_id: string | null
  readonly workflow: string | null
  readonly from_state: string | null
  readonly to_state: string | null
  readonly reason: string
  readonly actor: string
  readonly source: string | null
  readonly event_id: string | null
  readonly event_type: string | null
  readonly decided_at: IsoTime
}

/** Which decisions. */
export interface DecisionFilter extends PageRequest {
  readonly kind?: string | undefined
  readonly order_id?: string | undefined
  readonly workflow?: string | undefined
}

/** A page of decisions. */
export async function listDecisions(
  db: Database,
  filter: DecisionFilter,
): Promise<Page<ListedDecision>> {
  const s = db.schema
  const values = [
    beforeOf(filter),
    filter.limit + 1,
    filter.kind ?? null,
    filter.order_id ?? null,
    filter.workflow ?? null,
  ]
  const rows = await readAlong<ListedDecision & { readonly decided_at: Date | string }>(db, {
    text: `select d.decision_id, d.kind, d.final, d.order_id, d.workflow, d.from_state, d.to_state, d.reason, d.actor,
        case when e.event_key is not null then concat_ws(':', n.provider, n.provider_account, n.environment) end as source,
        e.event_id, e.event_type, d.decided_at
      from (select * from ${s}ledger_decisions d
        where ($1::bigint is null or d.decision_id < $1::bigint) and ($3::text is null or d.kind = $3)
          and ($4::text is null or d.order_id = $4) and ($5::text is null or d.workflow = $5)
        order by d.decision_id desc limit $2) d
      left join ${s}inbox_events e on e.event_key = d.event_key
      left join ${s}sources n on n.source_id = e.source_id order by d.decision_id desc`,
    values,
  })
  return pageOf(
    rows,
    filter.limit,
    ({ decision_id: id }) => [id],
    (row) => ({
      ...row,
      decided_at: requiredTime(row.decided_at),
    }),
  )
}

/** An effect in a list, with what it absorbed: the proof that it exists once. */
export interface ListedEffect {
  readonly order_id: string
  readonly effect_type: string
  readonly effect_reference: string
  readonly amount: string | null
  readonly currency: string | null
  readonly payment_id: string | null
  readonly data: unknown
  /** The decision that made it: the first, and the only one. */
  readonly decision_id: string
  /** Later decisions about its order that found it there and changed nothing. */
  readonly absorbed: string
  readonly recorded_at: IsoTime
}

/** Which effects. */
export interface EffectFilter extends PageRequest {
  readonly order_id?: string | undefined
  readonly type?: string | undefined
  readonly reference?: string | undefined
}

/** A page of effects. */
export async function listEffects(db: Database, filter: EffectFilter): Promise<Page<ListedEffect>> {
  const s = db.schema
  const cursor = readCursor(filter.cursor, [cursorForms.number, cursorForms.text, cursorForms.text])
  const rows = await readAlong<
    ListedEffect & { readonly data: string; readonly recorded_at: Date | string }
  >(db, {
    text: `select f.order_id, f.effect_type, f.effect_reference, f.amount, f.currency, f.payment_id, f.data::text as data,
        f.decision_id, (select count(*) from ${s}ledger_decisions a where a.order_id = f.order_id and a.kind = 'absorbed'
          and a.decision_id > f.decision_id) as absorbed, f.recorded_at
      from (select f.* from ${s}ledger_decisions d
        join ${s}fulfillment_effects f on f.order_id = d.order_id and f.decision_id = d.decision_id
        where ($1::bigint is null or d.decision_id <= $1::bigint)
          and ($1::bigint is null or d.decision_id < $1::bigint or (f.effect_type, f.effect_reference) > ($3, $4))
          and ($5::text is null or d.order_id = $5) and ($6::text is null or f.effect_type = $6)
          and ($7::text is null or f.effect_reference = $7)
        order by d.decision_id desc, f.effect_type, f.effect_reference limit $2) f
      order by f.decision_id desc, f.effect_type, f.effect_reference`,
    values: [
      cursor?.[0] ?? null,
      filter.limit + 1,
      cursor?.[1] ?? null,
      cursor?.[2] ?? null,
      filter.order_id ?? null,
      filter.type ?? null,
      filter.reference ?? null,
    ],
  })
  return pageOf(
    rows,
    filter.limit,
    (row) => [row.decision_id, row.effect_type, row.effect_reference],
    (row) => ({ ...row, data: exactJson(row.data), recorded_at: requiredTime(row.recorded_at) }),
  )
}

/** A payment in a list. */
export interface ListedPayment {
  readonly source: string
  readonly payment_id: string
  readonly order_id: string
  readonly amount: string | null
  readonly currency: string
  /** False: it was contradicted, and nothing was given for it. */
  readonly applied: boolean
  readonly decision_id: string
  readonly recorded_at: IsoTime
}

/** Which payments. */
export interface PaymentFilter extends PageRequest {
  readonly order_id?: string | undefined
  readonly applied?: boolean | undefined
}

/** A page of payments. */
export async function listPayments(
  db: Database,
  filter: PaymentFilter,
): Promise<Page<ListedPayment>> {
  const s = db.schema
  const cursor = readCursor(filter.cursor, [cursorForms.number, cursorForms.text])
  const rows = await readAlong<ListedPayment & { readonly recorded_at: Date | string }>(db, {
    text: `select concat_ws(':', n.provider, n.provider_account, n.environment) as source, p.payment_id, p.order_id, p.amount,
        p.currency, p.applied, p.decision_id, p.recorded_at
      from (select p.* from ${s}ledger_decisions d
        join ${s}ledger_payments p on p.order_id = d.order_id and p.decision_id = d.decision_id
        where ($1::bigint is null or d.decision_id <= $1::bigint)
          and ($1::bigint is null or d.decision_id < $1::bigint or p.payment_id > $3)
          and ($4::text is null or d.order_id = $4) and ($5::boolean is null or p.applied = $5)
        order by d.decision_id desc, p.payment_id limit $2) p
      join ${s}sources n on n.source_id = p.source_id order by p.decision_id desc, p.payment_id`,
    values: [
      cursor?.[0] ?? null,
      filter.limit + 1,
      cursor?.[1] ?? null,
      filter.order_id ?? null,
      filter.applied ?? null,
    ],
  })
  return pageOf(
    rows,
    filter.limit,
    (row) => [row.decision_id, row.payment_id],
    (row) => ({
      ...row,
      recorded_at: requiredTime(row.recorded_at),
    }),
  )
}

/** Along the order of decisions, whatever the statistics say of a database that was just filled. */
function readAlong<Row extends object>(
  db: Database,
  statement: { readonly text: string; readonly values: readonly Value[] },
): Promise<Row[]> {
  return db.transaction((tx) => tx.query<never>(statement) as Promise<unknown> as Promise<Row[]>, {
    setup: keyedPlans,
  })
}

function beforeOf({ cursor }: PageRequest): string | null {
  return readCursor(cursor, [cursorForms.number])?.[0] ?? null
}
