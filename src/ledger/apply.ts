/**
 * The only writer of the ledger: all that a batch decided becomes one statement, to which the inbox
 * adds its own part. Inserts are sorted by their full key; conflicts are counted, never overwritten:
 * a count that differs means that somebody else wrote the same, and the batch is decided again.
 */
import { HookledgerError } from '../core/errors.ts'
import { toJson } from '../core/json.ts'
import type { Database, Executor, Value } from '../postgres/executor.ts'
import { runParts, type WritePart } from '../postgres/write-parts.ts'
import type { OrderLedger } from '../workflow/order.ts'
import { isFinal, type Outcome } from '../workflow/outcome.ts'
import { closedPart, findingsPart, type FindingPolicy, type FoundDiscrepancy } from './findings.ts'
import { byteOrder } from './lock-orders.ts'

/** One decision to be recorded, with the attempts that its event took. */
export interface DecidedEvent {
  readonly outcome: Outcome
  readonly attempts: number
  /** False for a deferral that waits for what it waited for before: nothing new to record. */
  readonly recorded: boolean
}

/** Everything that one commit writes to the ledger. */
export interface LedgerBatch {
  readonly decided: readonly DecidedEvent[]
  readonly before: ReadonlyMap<string, OrderLedger>
  readonly after: ReadonlyMap<string, OrderLedger>
  readonly findings: readonly FoundDiscrepancy[]
  readonly closedFindings: readonly string[]
  readonly actor: string
}

/** What applying needs to know of the installation. */
export interface ApplyContext {
  readonly installationId: string
  readonly policy: FindingPolicy
}

/**
 * Writes a batch.
 *
 * @throws HookledgerError HKL_LEDGER_CLAIM_LOST when a payment or an effect was recorded by somebody
 * else meanwhile; nothing stands then, since the caller's transaction rolls back.
 */
export async function applyBatch(
  db: Database,
  tx: Executor,
  batch: LedgerBatch,
  context: ApplyContext,
  inboxParts: readonly WritePart[],
): Promise<void> {
  const s = db.schema
  const parts = [
    decisionsPart(s, batch),
    paymentsPart(s, batch),
    acceptedPart(s, batch),
    effectsPart(s, batch),
    ...orderParts(s, batch),
    entitlementsPart(s, batch),
    findingsPart(s, context.installationId, context.policy, batch.findings),
    closedPart(s, batch.closedFindings),
    ...inboxParts,
  ].filter((part): part is WritePart => part !== null)
  const counts = await runParts(tx, parts)
  for (const part of parts) {
    if (part.expected === undefined || counts.get(part.name) === part.expected) continue
    throw new HookledgerError(
      'HKL_LEDGER_CLAIM_LOST',
      `${part.name}: ${counts.get(part.name)} of ${part.expected} rows were written; somebody else wrote the same, the batch is decided again`,
    )
  }
}

function decisionsPart(s: string, batch: LedgerBatch): WritePart | null {
  const rows = batch.decided.filter((each) => each.recorded).sort((a, b) => (a.outcome.decisionId < b.outcome.decisionId ? -1 : 1))
  if (rows.length === 0) return null
  const column = (of: (outcome: Outcome, each: DecidedEvent) => string | number | boolean | null): Value =>
    rows.map((each) => of(each.outcome, each))
  return {
    name: 'decided',
    sql: `decided as (
      insert into ${s}ledger_decisions (decision_id, event_key, order_id, workflow, kind, final, from_state, to_state,
        entitles, reason, evidence, workflow_version, attempts, actor)
      select decision_id, event_key, order_id, workflow, kind, final, from_state, to_state,
        entitles, reason, evidence::jsonb, workflow_version, attempts, :14::text
      from unnest(:1::bigint[], :2::bigint[], :3::text[], :4::text[], :5::text[], :6::boolean[], :7::text[], :8::text[],
        :9::boolean[], :10::text[], :11::text[], :12::text[], :13::smallint[])
        as n(decision_id, event_key, order_id, workflow, kind, final, from_state, to_state,
          entitles, reason, evidence, workflow_version, attempts)
      returning 1)`,
    values: [
      column((o) => o.decisionId.toString()),
      column((o) => o.event.key.toString()),
      column((o) => o.orderId),
      column((o) => o.workflow),
      column((o) => o.kind),
      column((o) => isFinal(o.kind)),
      column((o) => o.from),
      column((o) => o.to),
      column((o) => o.entitles),
      column((o) => storable(o.reason)),
      column((o) => (Object.keys(o.evidence).length === 0 ? null : storable(toJson(o.evidence)))),
      column((o) => o.workflowVersion),
      column((_, each) => Math.min(each.attempts, 32767)),
      batch.actor,
    ],
    expected: rows.length,
  }
}

/** What may have to be replaced: NUL, an escape that may stand for it, half of a pair. */
const unstorable = /[\u0000\\\ud800-\udfff]/

/** NUL and lone surrogates cannot be stored as text: shown as the replacement character. */
function storable(text: string): string {
  if (!unstorable.test(text)) return text
  return text.toWellFormed().replaceAll('\u0000', '\ufffd').replaceAll('\\u0000', '\\ufffd').replace(/\\ud[89a-f][0-9a-f]{2}/gi, '\\ufffd')
}

function paymentsPart(s: string, batch: LedgerBatch): WritePart | null {
  // a payment that is kept as not applied and accepted in the same batch is one row, of the decision that accepts it
  const acceptedBy = acceptedPayments(batch)
  const rows = batch.decided.flatMap(({ outcome: o }) => {
    if (o.payment === null || o.orderId === null) return []
    const { sourceId } = o.event
    const accepted = acceptedBy.get(`${sourceId}\n${o.payment.id}`)
    const row = { ...o.payment, sourceId, orderId: o.orderId, decisionId: accepted ?? o.decisionId }
    return [{ ...row, applied: row.applied || accepted !== undefined }]
  })
  if (rows.length === 0) return null
  rows.sort((a, b) => a.sourceId - b.sourceId || byteOrder(a.id, b.id))
  return {
    name: 'paid',
    sql: `paid as (
      insert into ${s}ledger_payments (source_id, payment_id, order_id, amount, currency, applied, decision_id)
      select * from unnest(:1::integer[], :2::text[], :3::text[], :4::bigint[], :5::text[], :6::boolean[], :7::bigint[])
      on conflict (source_id, payment_id) do nothing returning 1)`,
    values: [
      rows.map((row) => row.sourceId),
      rows.map((row) => row.id),
      rows.map((row) => row.orderId),
      rows.map((row) => row.amount.toString()),
      rows.map((row) => row.currency),
      rows.map((row) => row.applied),
      rows.map((row) => row.decisionId.toString()),
    ],
    expected: rows.length,
  }
}

/** Payments that were kept as not applied and are accepted now: by key, the decision that accepts. */
function acceptedPayments(batch: LedgerBatch): Map<string, bigint> {
  return new Map(
    batch.decided.flatMap(({ outcome: o }) =>
      o.appliesPayment === null ? [] : [[`${o.event.sourceId}\n${o.appliesPayment}`, o.decisionId] as const],
    ),
  )
}

/** Those of them that an earlier batch recorded. Its figures stay; its order is under this batch's lock. */
function acceptedPart(s: string, batch: LedgerBatch): WritePart | null {
  const inserted = new Set(batch.decided.map(({ outcome: o }) => `${o.event.sourceId}\n${o.payment?.id ?? ''}`))
  const rows = [...acceptedPayments(batch)].filter(([key]) => !inserted.has(key)).map(([key, decisionId]) => {
    const [sourceId = '', ...id] = key.split('\n')
    return { sourceId: Number(sourceId), id: id.join('\n'), decisionId }
  })
  if (rows.length === 0) return null
  return {
    name: 'accepted',
    sql: `accepted as (
      update ${s}ledger_payments p set applied = true, decision_id = n.decision_id
      from unnest(:1::integer[], :2::text[], :3::bigint[]) as n(source_id, payment_id, decision_id)
      where p.source_id = n.source_id and p.payment_id = n.payment_id and not p.applied returning 1)`,
    values: [rows.map((row) => row.sourceId), rows.map((row) => row.id), rows.map((row) => row.decisionId.toString())],
    expected: rows.length,
  }
}

function effectsPart(s: string, batch: LedgerBatch): WritePart | null {
  const rows = batch.decided.flatMap(({ outcome: o }) => o.effects.map((effect) => ({ ...effect, o, orderId: o.orderId ?? '' })))
  if (rows.length === 0) return null
  rows.sort((a, b) => byteOrder(a.orderId, b.orderId) || byteOrder(a.type, b.type) || byteOrder(a.reference, b.reference))
  return {
    name: 'effected',
    sql: `effected as (
      insert into ${s}fulfillment_effects (order_id, effect_type, effect_reference, decision_id, amount, currency, payment_id, data)
      select order_id, effect_type, effect_reference, decision_id, amount, currency, payment_id, data::jsonb
      from unnest(:1::text[], :2::text[], :3::text[], :4::bigint[], :5::bigint[], :6::text[], :7::text[], :8::text[])
        as n(order_id, effect_type, effect_reference, decision_id, amount, currency, payment_id, data)
      on conflict (order_id, effect_type, effect_reference) do nothing returning 1)`,
    values: [
      rows.map((row) => row.orderId),
      rows.map((row) => row.type),
      rows.map((row) => row.reference),
      rows.map((row) => row.o.decisionId.toString()),
      rows.map((row) => row.amount?.toString() ?? null),
      rows.map((row) => row.currency),
      rows.map((row) => row.payment),
      rows.map((row) => (Object.keys(row.data).length === 0 ? null : storable(toJson(row.data)))),
    ],
    expected: rows.length,
  }
}

function orderParts(s: string, batch: LedgerBatch): (WritePart | null)[] {
  const changed: OrderLedger[] = []
  const discarded: string[] = []
  for (const [id, ledger] of batch.after) {
    if (!ledger.stored) discarded.push(id)
    else if (ledger.version !== batch.before.get(id)?.version) changed.push(ledger)
  }
  return [
    changed.length === 0
      ? null
      : {
          name: 'moved',
          sql: `moved as (
            update ${s}orders o set workflow = n.workflow, state = n.state, subject = n.subject, source_id = n.source_id,
              provider_account = n.provider_account, version = n.version, updated_at = clock_timestamp()
            from unnest(:1::text[], :2::text[], :3::text[], :4::integer[], :5::text[], :6::bigint[], :7::text[])
              as n(order_id, state, subject, source_id, provider_account, version, workflow)
            where o.order_id = n.order_id returning 1)`,
          values: [
            changed.map((o) => o.id),
            changed.map((o) => o.state),
            changed.map((o) => o.subject),
            changed.map((o) => o.sourceId),
            changed.map((o) => o.providerAccount),
            changed.map((o) => o.version.toString()),
            changed.map((o) => o.workflow),
          ],
          expected: changed.length,
        },
    // inserted to hold the key, but nothing that was decided opens them
    discarded.length === 0
      ? null
      : {
          name: 'discarded',
          sql: `discarded as (delete from ${s}orders where order_id = any (:1::text[]) returning 1)`,
          values: [discarded],
          expected: discarded.length,
        },
  ]
}

/** Only these change what an order entitles to. */
const changing: ReadonlySet<string> = new Set(['fulfilled', 'moved', 'reversed'])

function entitlementsPart(s: string, batch: LedgerBatch): WritePart | null {
  const latest = new Map<string, bigint>()
  for (const { outcome: o } of batch.decided) {
    if (o.orderId !== null && changing.has(o.kind)) latest.set(o.orderId, o.decisionId)
  }
  const rows = [...batch.after.values()].flatMap((ledger) => {
    const old = new Map(batch.before.get(ledger.id)?.entitlements.map((row) => [`${row.subject}\u0000${row.entitlement}`, row]))
    return ledger.entitlements
      .filter((row) => !sameEntitlement(row, old.get(`${row.subject}\u0000${row.entitlement}`)))
      .map((row) => ({ ...row, orderId: ledger.id, changedBy: latest.get(ledger.id) ?? row.grantedBy ?? 0n }))
  })
  if (rows.length === 0) return null
  rows.sort((a, b) => byteOrder(a.orderId, b.orderId) || byteOrder(a.subject, b.subject) || byteOrder(a.entitlement, b.entitlement))
  return {
    name: 'entitled',
    sql: `entitled as (
      insert into ${s}entitlements as e (order_id, subject, entitlement, quantity, valid_until, active, stated, granted_by, changed_by)
      select * from unnest(:1::text[], :2::text[], :3::text[], :4::bigint[], :5::timestamptz[], :6::boolean[], :7::boolean[], :8::bigint[], :9::bigint[])
      on conflict (order_id, subject, entitlement) do update set
        quantity = excluded.quantity, valid_until = excluded.valid_until, active = excluded.active, stated = excluded.stated,
        granted_by = excluded.granted_by, changed_by = excluded.changed_by, version = e.version + 1
      returning 1)`,
    values: [
      rows.map((row) => row.orderId),
      rows.map((row) => row.subject),
      rows.map((row) => row.entitlement),
      rows.map((row) => row.quantity),
      rows.map((row) => row.validUntil?.toISOString() ?? null),
      rows.map((row) => row.active),
      rows.map((row) => row.stated),
      rows.map((row) => row.grantedBy?.toString() ?? null),
      rows.map((row) => row.changedBy.toString()),
    ],
    expected: rows.length,
  }
}

function sameEntitlement(a: OrderLedger['entitlements'][number], b: OrderLedger['entitlements'][number] | undefined): boolean {
  return (
    b !== undefined &&
    a.quantity === b.quantity &&
    a.validUntil?.getTime() === b.validUntil?.getTime() &&
    a.active === b.active &&
    a.stated === b.stated &&
    a.grantedBy === b.grantedBy
  )
}
