/**
 * Everything that is recorded about one order, or about events that belong to none: read as it is,
 * nothing interpreted. Rows carry the names of the views' columns.
 */
import type { Database } from '../postgres/executor.ts'
import { findingsAbout, isSeenByPasses, type FindingView } from './findings.ts'
import { answersOf, gatheringEvents, looksOf, type AnswerView, type LookView } from './looks.ts'
import { noneInSequence, type Sequenced } from './operation-blocked.ts'
import { operationsAbout } from './operations.ts'
import type {
  ActView,
  DecisionView,
  EffectView,
  EntitlementView,
  EventView,
  OperationRecord,
  OrderView,
  PaymentView,
} from './record-views.ts'
import { repairsAbout, runsAt, type RepairView, type RunView } from './reconciliation.ts'
import {
  counted,
  exactAmount,
  exactJson,
  isoTime,
  requiredTime,
  type Count,
  type IsoTime,
} from './row-values.ts'

/** All of it. */
export interface OrderRecord {
  readonly order: OrderView | null
  readonly events: readonly EventView[]
  readonly decisions: readonly DecisionView[]
  readonly payments: readonly PaymentView[]
  readonly effects: readonly EffectView[]
  readonly entitlements: readonly EntitlementView[]
  readonly operations: readonly OperationRecord[]
  readonly findings: readonly FindingView[]
  readonly acts: readonly ActView[]
  /** The provider's objects that it follows, and the answers about them. */
  readonly looks: readonly LookView[]
  readonly answers: readonly AnswerView[]
  /** What was repaired, by whom and why. */
  readonly repairs: readonly RepairView[]
  /** The passes over the provider's records that saw these findings. */
  readonly runs: readonly RunView[]
  /** Decisions that are older than the newest {@link shownDecisions} and were left out. */
  readonly omitted_decisions: Count
}

/** How many decisions of one order are read, the newest. */
export const shownDecisions = 500

/** Reads what is recorded about an order (or null), and about further events and operations. */
export async function readRecord(
  db: Database,
  orderId: string | null,
  eventKeys: readonly string[],
  operationIds: readonly string[] = [],
  sequenced: Sequenced = noneInSequence,
): Promise<OrderRecord> {
  const { decisions, omitted } = await readDecisions(db, orderId, eventKeys)
  const waiting =
    orderId === null
      ? []
      : [...(await waitingEvents(db, orderId)), ...(await gatheringEvents(db, orderId))]
  const operations = await operationsAbout(db, { orderId, ids: operationIds }, sequenced)
  const findings = await findingsAbout(db, { orderId, eventKeys, operationIds })
  const concerned = [...decisions, ...findings].flatMap((row) =>
    row.event_key === null ? [] : [row.event_key],
  )
  const keys = [...new Set([...eventKeys, ...waiting, ...concerned])]
  const repairs = await repairsAbout(db, {
    orderId,
    findingIds: findings.map((finding) => finding.finding_id),
  })
  const targets = [
    ...(orderId === null ? [] : [`order:${orderId}`]),
    ...keys.map((key) => `event:${key}`),
    ...findings.map((finding) => `finding:${finding.finding_id}`),
    ...operations.map((operation) => `operation:${operation.operation_id}`),
  ]
  return {
    order: orderId === null ? null : await readOrder(db, orderId),
    events: await readEvents(db, keys),
    decisions,
    payments: orderId === null ? [] : await readPayments(db, orderId),
    effects: orderId === null ? [] : await readEffects(db, orderId),
    entitlements: orderId === null ? [] : await readEntitlements(db, orderId),
    operations,
    findings,
    acts: await actsAbout(db, targets),
    looks: orderId === null ? [] : await looksOf(db, orderId),
    answers: orderId === null ? [] : await answersOf(db, orderId),
    repairs,
    runs: await runsAt(db, findings.filter(isSeenByPasses).flatMap(momentsOf)),
    omitted_decisions: omitted,
  }
}

/** When a finding was seen, and when it ended. */
function momentsOf({
  first_seen_at: first,
  last_seen_at: last,
  closed_at: closed,
}: FindingView): IsoTime[] {
  return [first, last, ...(closed === null ? [] : [closed])]
}

type Raw<View, Times extends keyof View> = Omit<View, Times> & Record<Times, Date | string>

async function readDecisions(
  db: Database,
  orderId: string | null,
  eventKeys: readonly string[],
): Promise<{ decisions: DecisionView[]; omitted: Count }> {
  const columns = `d.decision_id, d.event_key, d.order_id, d.kind, d.final, d.from_state, d.to_state, d.reason,
    d.evidence::text as evidence, d.workflow_version, d.actor, d.attempts, d.decided_at`
  const rows = await db.query<Raw<DecisionView, 'decided_at'> & { evidence: string | null }>({
    text: `select * from (
        (select ${columns} from ${db.schema}ledger_decisions d where d.order_id = $1 order by d.decision_id desc limit ${shownDecisions + 1})
        union
        (select ${columns} from ${db.schema}ledger_decisions d where d.event_key = any ($2::bigint[]) and d.final)
        union
        (select ${columns} from ${db.schema}ledger_decisions d where d.event_key = any ($2::bigint[]) and not d.final)
      ) c order by decision_id desc limit ${shownDecisions + 1}`,
    values: [orderId, eventKeys],
  })
  const shown = rows.slice(0, shownDecisions).reverse()
  const omitted =
    rows.length <= shownDecisions
      ? 0
      : Math.max(0, (await countDecisions(db, orderId)) - shown.length)
  return {
    omitted,
    decisions: shown.map((row) => ({
      ...row,
      evidence: exactJson(row.evidence),
      attempts: counted(row.attempts),
      decided_at: requiredTime(row.decided_at),
    })),
  }
}

async function countDecisions(db: Database, orderId: string | null): Promise<Count> {
  const [row] = await db.query<{ decisions: string }>({
    text: `select count(*) as decisions from ${db.schema}ledger_decisions where order_id = $1`,
    values: [orderId],
  })
  return counted(row?.decisions)
}

/** Events that wait for this order to change, or for one of its names. */
async function waitingEvents(db: Database, orderId: string): Promise<string[]> {
  const s = db.schema
  const rows = await db.query<{ event_key: string }>({
    text: `select event_key from ${s}inbox_waits where kind = 'order' and name = $1
        and source_id in (select 0 union all select source_id from ${s}sources)
      union
      select w.event_key from ${s}order_names n
      join ${s}inbox_waits w on w.kind = n.kind and w.source_id = n.source_id and w.name = n.name
      where n.order_id = $1`,
    values: [orderId],
  })
  return rows.map((row) => row.event_key)
}

async function readOrder(db: Database, orderId: string): Promise<OrderView | null> {
  const s = db.schema
  const [row] = await db.query<
    Raw<OrderView, 'opened_at' | 'updated_at'> & { expected_amount: string | null }
  >({
    text: `select o.order_id, o.workflow, o.state, coalesce(w.entitles, false) as entitles, o.subject, o.expected_amount,
        o.currency, o.provider_account, o.version, o.opened_at, o.updated_at
      from ${s}orders o left join ${s}workflow_states w on w.workflow = o.workflow and w.state = o.state
      where o.order_id = $1`,
    values: [orderId],
  })
  if (row === undefined) return null
  const names = await db.query<{ kind: string; name: string }>({
    text: `select kind, name from ${s}order_names where order_id = $1 and kind <> 'order' order by kind, name`,
    values: [orderId],
  })
  return {
    ...row,
    expected_amount: exactAmount(row.expected_amount),
    version: counted(row.version),
    opened_at: requiredTime(row.opened_at),
    updated_at: requiredTime(row.updated_at),
    names,
  }
}

async function readEvents(db: Database, keys: readonly string[]): Promise<EventView[]> {
  if (keys.length === 0) return []
  const s = db.schema
  type Row = Raw<EventView, 'received_at'> &
    Record<
      'occurred_at' | 'last_delivered_at' | 'deadline_at' | 'next_attempt_at',
      Date | string | null
    >
  const rows = await db.query<Row>({
    text: `select v.event_key, concat_ws(':', v.provider, v.provider_account, v.environment) as source, v.event_id, v.event_type,
        v.via, v.state, v.attempts, v.last_error, v.received_at, v.occurred_at, v.deliveries, l.last_delivered_at, l.bodies,
        v.waits_for, v.deadline_at, v.next_attempt_at
      from ${s}webhook_inbox v
      join ${s}inbox_events e on e.event_key = v.event_key
      left join lateral (
        select max(d.received_at) as last_delivered_at, count(distinct d.body_sha256) as bodies
        from ${s}deliveries d where d.source_id = e.source_id and d.event_id = e.event_id) l on true
      where v.event_key = any ($1::bigint[]) order by v.event_key`,
    values: [keys],
  })
  return rows.map((row) => ({
    ...row,
    attempts: counted(row.attempts),
    deliveries: counted(row.deliveries),
    bodies: counted(row.bodies),
    received_at: requiredTime(row.received_at),
    occurred_at: isoTime(row.occurred_at),
    last_delivered_at: isoTime(row.last_delivered_at),
    deadline_at: isoTime(row.deadline_at),
    next_attempt_at: isoTime(row.next_attempt_at),
  }))
}

async function readPayments(db: Database, orderId: string): Promise<PaymentView[]> {
  const rows = await db.query<Raw<PaymentView, 'recorded_at'> & { amount: string }>({
    text: `select payment_id, amount, currency, applied, decision_id, recorded_at
      from ${db.schema}ledger_payments where order_id = $1 order by recorded_at, payment_id`,
    values: [orderId],
  })
  return rows.map((row) => ({
    ...row,
    amount: exactAmount(row.amount),
    recorded_at: requiredTime(row.recorded_at),
  }))
}

type EffectRow = Raw<EffectView, 'recorded_at'> & { amount: string | null; data: string | null }

const effectColumns =
  'effect_type, effect_reference, amount, currency, payment_id, data::text as data, decision_id, recorded_at'

async function readEffects(db: Database, orderId: string): Promise<EffectView[]> {
  const rows = await db.query<EffectRow>({
    text: `select ${effectColumns}
      from ${db.schema}fulfillment_effects where order_id = $1 order by decision_id, effect_type, effect_reference`,
    values: [orderId],
  })
  return rows.map(effectView)
}

/** The effects that these decisions made, by the key of their orders. */
export async function readEffectsOf(
  db: Database,
  decisions: readonly Pick<DecisionView, 'decision_id' | 'order_id'>[],
): Promise<EffectView[]> {
  const orders = decisions.flatMap(({ order_id: id }) => id ?? [])
  if (orders.length === 0) return []
  const rows = await db.query<EffectRow>({
    text: `select ${effectColumns} from ${db.schema}fulfillment_effects
      where order_id = any ($1::text[]) and decision_id = any ($2::bigint[])
      order by decision_id, effect_type, effect_reference`,
    values: [[...new Set(orders)], decisions.map((each) => each.decision_id)],
  })
  return rows.map(effectView)
}

function effectView(row: EffectRow): EffectView {
  return {
    ...row,
    amount: exactAmount(row.amount),
    data: exactJson(row.data),
    recorded_at: requiredTime(row.recorded_at),
  }
}

async function readEntitlements(db: Database, orderId: string): Promise<EntitlementView[]> {
  const rows = await db.query<
    Omit<EntitlementView, 'valid_until'> & { quantity: string; valid_until: Date | string | null }
  >({
    text: `select subject, entitlement, quantity, valid_until, active, stated, granted_by, changed_by
      from ${db.schema}entitlements where order_id = $1 order by subject, entitlement`,
    values: [orderId],
  })
  return rows.map((row) => ({
    ...row,
    quantity: exactAmount(row.quantity),
    valid_until: isoTime(row.valid_until),
  }))
}

/** What people did about these targets (`operation:` and its id), in the order of its doing. */
export async function actsAbout(db: Database, targets: readonly string[]): Promise<ActView[]> {
  if (targets.length === 0) return []
  const rows = await db.query<Raw<ActView, 'acted_at'>>({
    text: `select act, target, reason, actor, acted_at from ${db.schema}operator_acts
      where target = any ($1::text[]) order by act_id`,
    values: [targets],
  })
  return rows.map((row) => ({ ...row, acted_at: requiredTime(row.acted_at) }))
}
