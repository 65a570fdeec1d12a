/**
 * The only writer of the ledger: all that a batch decided becomes one statement, to which the inbox
 * adds its own part. Inserts are sorted by their full key, and nothing is ever overwritten: a key that
 * exists, or a count that differs, means that somebody else wrote the same; nothing stands then, and the
 * batch is decided again.
 */
import { HookledgerError } from '../core/errors.ts'
import { toJson } from '../core/json.ts'
import type { Database, Executor, Value } from '../postgres/executor.ts'
import { sqlstateOf } from '../postgres/sqlstate.ts'
import { runParts, type WritePart } from '../postgres/write-parts.ts'
import type { OrderLedger } from '../workflow/order.ts'
import { isFinal, type Outcome } from '../workflow/outcome.ts'
import type { DecidedEvent, LedgerBatch } from './batch.ts'
import { entitlementParts } from './entitlement-parts.ts'
import { closedPart, findingsPart, type FindingPolicy } from './findings.ts'
import { acceptedPart, effectsPart, paymentsPart } from './money-parts.ts'
import { storable } from '../postgres/storable-text.ts'

/** What applying needs to know of the installation. */
export interface ApplyContext {
  readonly installationId: string
  readonly policy: FindingPolicy
  /** Whether an operation is to tell of what events change about subjects. */
  readonly tellsEvents: boolean
}

/** A batch of so few decisions is written by a statement that is kept, instead of planned each time. */
const fewDecisions = 16

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
    ...entitlementParts(s, batch, context.tellsEvents),
    findingsPart(s, context.installationId, context.policy, batch.findings),
    closedPart(s, batch.closedFindings),
    ...inboxParts,
  ].filter((part): part is WritePart => part !== null)
  const counts = await written(tx, parts, batch.decided.length <= fewDecisions)
  for (const part of parts) {
    if (part.expected === undefined || counts.get(part.name) === part.expected) continue
    throw new HookledgerError(
      'HKL_LEDGER_CLAIM_LOST',
      `${part.name}: ${counts.get(part.name)} of ${part.expected} rows were written; somebody else wrote the same, the batch is decided again`,
    )
  }
}

async function written(
  tx: Executor,
  parts: readonly WritePart[],
  repeated: boolean,
): Promise<ReadonlyMap<string, number>> {
  try {
    return await runParts(tx, parts, repeated)
  } catch (error) {
    if (sqlstateOf(error) !== '23505') throw error
    const options = { cause: error }
    throw new HookledgerError(
      'HKL_LEDGER_CLAIM_LOST',
      'somebody else wrote the same, the batch is decided again',
      options,
    )
  }
}

function decisionsPart(s: string, batch: LedgerBatch): WritePart | null {
  const rows = batch.decided
    .filter((each) => each.recorded)
    .sort((a, b) => (a.outcome.decisionId < b.outcome.decisionId ? -1 : 1))
  if (rows.length === 0) return null
  const column = (
    of: (outcome: Outcome, each: DecidedEvent) => string | number | boolean | null,
  ): Value => rows.map((each) => of(each.outcome, each))
  return {
    name: 'decided',
    sql: `decided as (
      insert into ${s}ledger_decisions (decision_id, event_key, order_id, workflow, kind, final, from_state, to_state,
        entitles, reason, evidence, workflow_version, attempts, supersedes, actor)
      select decision_id, event_key, order_id, workflow, kind, final, from_state, to_state,
        entitles, reason, evidence::jsonb, workflow_version, attempts, supersedes, :15::text
      from unnest(:1::bigint[], :2::bigint[], :3::text[], :4::text[], :5::text[], :6::boolean[], :7::text[], :8::text[],
        :9::boolean[], :10::text[], :11::text[], :12::text[], :13::smallint[], :14::bigint[])
        as n(decision_id, event_key, order_id, workflow, kind, final, from_state, to_state,
          entitles, reason, evidence, workflow_version, attempts, supersedes)
      returning 1)`,
    values: [
      column((o) => o.decisionId.toString()),
      column((o, { recordedAs }) => (recordedAs?.eventKey ?? o.event.key).toString()),
      column((o) => o.orderId),
      column((o) => o.workflow),
      column((o, { recordedAs }) => recordedAs?.kind ?? o.kind),
      column((o, { recordedAs }) => recordedAs !== undefined || isFinal(o.kind)),
      column((o) => o.from),
      column((o) => o.to),
      column((o) => o.entitles),
      column((o) => storable(o.reason)),
      column((o) => (Object.keys(o.evidence).length === 0 ? null : storable(toJson(o.evidence)))),
      column((o) => o.workflowVersion),
      column((_, each) => Math.min(each.attempts, 32767)),
      column((_, { recordedAs }) => recordedAs?.supersedes?.toString() ?? null),
      batch.actor,
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
