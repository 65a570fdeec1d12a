/** What a whole history came to: the figures that a person compares with what was sent. */
import type { Database } from '../postgres/executor.ts'
import { counted, type Count } from './row-values.ts'

/** How often each effect happened, reversals apart. */
export interface EffectCount {
  readonly effect_type: string
  readonly effects: Count
}

/** Counts effects by type. */
export async function countEffects(db: Database): Promise<EffectCount[]> {
  const rows = await db.query<{ effect_type: string; effects: string }>({
    text: `select effect_type, count(*) as effects from ${db.schema}fulfillment_effects group by effect_type order by effect_type`,
  })
  return rows.map((row) => ({ effect_type: row.effect_type, effects: counted(row.effects) }))
}

/** What an order came to. */
export interface OrderResult {
  readonly order_id: string
  readonly state: string
  readonly entitled: boolean
  /** How many effects of the type that was asked for. */
  readonly effects: Count
}

/** The results of these orders; those that do not exist are absent. */
export async function orderResults(
  db: Database,
  ids: readonly string[],
  effectType: string,
): Promise<OrderResult[]> {
  const s = db.schema
  const rows = await db.query<{
    order_id: string
    state: string
    entitled: boolean
    effects: string
  }>({
    text: `select o.order_id, o.state,
        exists (select 1 from ${s}entitlements t where t.order_id = o.order_id and t.active) as entitled,
        (select count(*) from ${s}fulfillment_effects e where e.order_id = o.order_id and e.effect_type = $2) as effects
      from ${s}orders o where o.order_id = any ($1::text[]) order by o.order_id`,
    values: [ids, effectType],
  })
  return rows.map((row) => ({ ...row, effects: counted(row.effects) }))
}

/** Whether nothing is pending. */
export async function isWorkedOff(db: Database): Promise<boolean> {
  const s = db.schema
  const [row] = await db.query<{ pending: boolean }>({
    text: `select exists (select 1 from ${s}inbox_ready) or exists (select 1 from ${s}inbox_delayed)
        or exists (select 1 from ${s}inbox_suspects) or exists (select 1 from ${s}inbox_gathers where waiting) or exists (select 1 from ${s}inbox_redeliveries) as pending`,
  })
  return row?.pending === false
}
