/**
 * The ledger as lists, the newest decision first: what was decided, and what payments and effects came of it.
 * What no index knows (a kind, a type, whether a payment was applied) is looked for in a bounded stretch of a list.
 */
import type { Database, Executor } from '../../postgres/executor.ts'
import { keyedPlans } from '../../postgres/keyed-plans.ts'
import { exactJson, requiredTime, type IsoTime } from '../row-values.ts'
import { cursorForms, pageOf, readCursor, stopOf, type Page, type PageRequest } from './keyset.ts'

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
  const from = [
    readCursor(filter.cursor, [cursorForms.number])?.[0] ?? null,
    filter.order_id ?? null,
  ]
  const along = `from ${s}ledger_decisions d
    where ($1::bigint is null or d.decision_id < $1::bigint) and ($2::text is null or d.order_id = $2)`
  const isFiltered = filter.kind !== undefined || filter.workflow !== undefined
  return inOrder(db, async (tx) => {
    const stop = isFiltered
      ? await stopOf(tx, {
          text: `select array[d.decision_id::text] ${along} order by d.decision_id desc`,
          values: from,
        })
      : null
    const rows = await tx.query<ListedDecision & { readonly decided_at: Date | string }>({
      text: `select d.decision_id, d.kind, d.final, d.order_id, d.workflow, d.from_state, d.to_state, d.reason, d.actor,
          case when e.event_key is not null then concat_ws(':', n.provider, n.provider_account, n.environment) end as source,
          e.event_id, e.event_type, d.decided_at
        from (select d.* ${along} and ($4::text is null or d.kind = $4) and ($5::text is null or d.workflow = $5)
            and ($6::bigint is null or d.decision_id >= $6::bigint)
          order by d.decision_id desc limit $3) d
        left join ${s}inbox_events e on e.event_key = d.event_key
        left join ${s}sources n on n.source_id = e.source_id order by d.decision_id desc`,
      values: [
        ...from,
        filter.limit + 1,
        filter.kind ?? null,
        filter.workflow ?? null,
        stop?.[0] ?? null,
      ],
    })
    return pageOf(
      rows,
      filter.limit,
      ({ decision_id: id }) => [id],
      (row) => ({ ...row, decided_at: requiredTime(row.decided_at) }),
      stop,
    )
  })
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
  const { number, text } = cursorForms
  const [before = null, type = null, reference = null] =
    readCursor(filter.cursor, [number, text, text]) ?? []
  const from = [before, type, reference, filter.order_id ?? null]
  const along = `from ${ofOrder(`${s}fulfillment_effects`, filter, '$4')} f
    where ($1::bigint is null or f.decision_id <= $1::bigint)
      and ($1::bigint is null or f.decision_id < $1::bigint or (f.effect_type, f.effect_reference) > ($2, $3))
      and f.order_id = coalesce($4::text, f.order_id)`
  const order = 'order by f.decision_id desc, f.effect_type, f.effect_reference'
  const isFiltered = filter.type !== undefined || filter.reference !== undefined
  return inOrder(db, async (tx) => {
    const stop = isFiltered
      ? await stopOf(tx, {
          text: `select array[f.decision_id::text, f.effect_type, f.effect_reference] ${along} ${order}`,
          values: from,
        })
      : null
    const rows = await tx.query<
      ListedEffect & { readonly data: string; readonly recorded_at: Date | string }
    >({
      text: `select f.order_id, f.effect_type, f.effect_reference, f.amount, f.currency, f.payment_id, f.data::text as data,
          f.decision_id, (select count(*) from ${s}ledger_decisions a where a.order_id = f.order_id and a.kind = 'absorbed'
            and a.decision_id > f.decision_id) as absorbed, f.recorded_at
        from (select f.* ${along} and ($6::text is null or f.effect_type = $6) and ($7::text is null or f.effect_reference = $7)
            and ($8::bigint is null or f.decision_id >= $8::bigint)
            and ($8::bigint is null or f.decision_id > $8::bigint or (f.effect_type, f.effect_reference) <= ($9, $10))
          ${order} limit $5) f
        ${order}`,
      values: [
        ...from,
        filter.limit + 1,
        filter.type ?? null,
        filter.reference ?? null,
        stop?.[0] ?? null,
        stop?.[1] ?? null,
        stop?.[2] ?? null,
      ],
    })
    return pageOf(
      rows,
      filter.limit,
      (row) => [row.decision_id, row.effect_type, row.effect_reference],
      (row) => ({ ...row, data: exactJson(row.data), recorded_at: requiredTime(row.recorded_at) }),
      stop,
    )
  })
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
  const [before = null, payment = null] =
    readCursor(filter.cursor, [cursorForms.number, cursorForms.text]) ?? []
  const from = [before, payment, filter.order_id ?? null]
  const along = `from ${ofOrder(`${s}ledger_payments`, filter, '$3')} p
    where ($1::bigint is null or p.decision_id <= $1::bigint)
      and ($1::bigint is null or p.decision_id < $1::bigint or p.payment_id > $2)
      and p.order_id = coalesce($3::text, p.order_id)`
  const order = 'order by p.decision_id desc, p.payment_id'
  return inOrder(db, async (tx) => {
    const stop =
      filter.applied === undefined
        ? null
        : await stopOf(tx, {
            text: `select array[p.decision_id::text, p.payment_id] ${along} ${order}`,
            values: from,
          })
    const rows = await tx.query<ListedPayment & { readonly recorded_at: Date | string }>({
      text: `select concat_ws(':', n.provider, n.provider_account, n.environment) as source, p.payment_id, p.order_id,
          p.amount, p.currency, p.applied, p.decision_id, p.recorded_at
        from (select p.* ${along} and ($5::boolean is null or p.applied = $5)
            and ($6::bigint is null or p.decision_id >= $6::bigint)
            and ($6::bigint is null or p.decision_id > $6::bigint or p.payment_id <= $7)
          ${order} limit $4) p
        join ${s}sources n on n.source_id = p.source_id ${order}`,
      values: [
        ...from,
        filter.limit + 1,
        filter.applied ?? null,
        stop?.[0] ?? null,
        stop?.[1] ?? null,
      ],
    })
    return pageOf(
      rows,
      filter.limit,
      (row) => [row.decision_id, row.payment_id],
      (row) => ({ ...row, recorded_at: requiredTime(row.recorded_at) }),
      stop,
    )
  })
}

/** A table, or of it what an order has: that is little, and found by the order whatever statistics say. */
function ofOrder(
  table: string,
  filter: { readonly order_id?: string | undefined },
  id: string,
): string {
  return filter.order_id === undefined
    ? table
    : `(select * from ${table} where order_id = ${id} offset 0)`
}

/** Along an index, whatever the statistics say of a database that was just filled. */
function inOrder<T>(db: Database, read: (tx: Executor) => Promise<T>): Promise<T> {
  return db.transaction(read, { setup: keyedPlans })
}
