/**
 * Which orders of many are worth a closer look: those whose rows are not plainly what their decisions say. One
 * statement of sums and comparisons; it may name an order that is fine, and never misses one that is not.
 */
import type { Executor } from '../../postgres/executor.ts'
import type { Workflow } from '../../workflow/workflow.ts'

const hash = (state: string): string => `hashtext(${state})::bigint`

const listed = (list: string): string =>
  `case when jsonb_typeof(d.evidence -> '${list}') = 'array' then jsonb_array_length(d.evidence -> '${list}') else 0 end`

/** The digits of an amount in words, as the app's opening is recorded: `49.00 USD`. */
const digits = `ltrim(regexp_replace(d.evidence ->> 'expected', '[^0-9]', '', 'g'), '0')`

function suspiciousStatement(s: string): string {
  return `select o.order_id from unnest($1::text[]) as k(id)
    cross join lateral (select * from ${s}orders o where o.order_id = k.id collate "C" offset 0) o
    left join lateral (select i.initial from unnest($2::text[], $3::text[]) as i(workflow, initial)
      where i.workflow = o.workflow offset 0) i on true
    left join lateral (select w.entitles from ${s}workflow_states w
      where w.workflow = o.workflow and w.state = o.state offset 0) w on true
    cross join lateral (
      select count(d.to_state) as moves, min(d.to_state) filter (where d.from_state is null and d.kind <> 'opened') as opened_in,
        coalesce(sum(case when d.from_state is null or d.to_state is null then 0
          else ${hash('d.to_state')} - ${hash('d.from_state')} end), 0) as way,
        coalesce(sum(${listed('granted')} - ${listed('revoked')}), 0) as granted,
        coalesce(bool_or(d.evidence ? 'stated'), false) as figures,
        coalesce(bool_or(d.kind = 'opened' and (
          (d.evidence ->> 'subject') <> coalesce(o.subject, '')
          or (d.evidence ->> 'expected') is not null and (
            ${digits} <> ltrim(coalesce(o.expected_amount, 0)::text, '0')
            or right(d.evidence ->> 'expected', 3) <> coalesce(o.currency, '')))), false) as reopened
      from ${s}ledger_decisions d where d.order_id = o.order_id offset 0) d
    cross join lateral (
      select count(*) filter (where e.active) as active,
        coalesce(bool_or(e.active <> (e.stated and coalesce(w.entitles, false))), false) as odd,
        coalesce(bool_or(e.quantity <> 1 or e.valid_until is not null), false) as figures
      from ${s}entitlements e where e.order_id = o.order_id offset 0) e
    where d.moves = 0 or ${hash('o.state')} <> ${hash(`coalesce(d.opened_in, i.initial, o.state)`)} + d.way
      or e.odd or e.figures or d.figures or d.reopened or d.granted <> e.active
      or exists (
        select 1 from ${s}fulfillment_effects f
        left join lateral (select d.kind, d.event_key from ${s}ledger_decisions d
          where d.decision_id = f.decision_id offset 0) m on true
        where f.order_id = o.order_id and f.recorded_at > now() - $4::integer * interval '1 day'
          and (m.kind is null or m.kind in ('fulfilled', 'moved', 'reversed') and not exists (
            select 1 from ${s}inbox_events e where e.event_key = m.event_key offset 0)) offset 0)`
}

/** Ids of orders among these that may not be what their decisions say. */
export async function suspiciousOrders(
  s: string,
  tx: Pick<Executor, 'query'>,
  ids: readonly string[],
  workflows: ReadonlyMap<string, Workflow>,
  identityDays: number,
): Promise<string[]> {
  if (ids.length === 0) return []
  const rows = await tx.query<{ order_id: string }>({
    text: suspiciousStatement(s),
    values: [
      ids,
      [...workflows.keys()],
      [...workflows.values()].map(({ initial }) => initial),
      identityDays,
    ],
  })
  return rows.map((row) => row.order_id)
}
