/**
 * What the provider answered when an event was decided, as it was kept: history is decided again from the same
 * answers, and nobody is asked. Where an answer is not kept, what was decided stands, and it is said.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import { freezeJson } from '../workflow/any-event.ts'
import type { Answered, ClaimInputs } from '../workflow/gathering.ts'
import type { OrderLedger } from '../workflow/order.ts'
import type { Claim } from '../workflow/resolve-event.ts'
import { lookedAtBy, looks, withCustomers } from './answers.ts'
import { EventFailure } from './batch-failure.ts'
import type { RecordedStep } from './dry-run-compare.ts'
import type { EventReading } from './read-claimed.ts'

/** An answer as it is kept. */
export interface KeptAnswer extends Answered {
  readonly kind: string
  readonly objectId: string
  readonly value: unknown
}

/** The number of the evidence that a decision was made from; null: none is recorded. */
export function evidenceOf({ evidence }: Pick<RecordedStep, 'evidence'>): string | null {
  const { fetch } = evidence
  if (typeof fetch !== 'object' || fetch === null || !('evidence' in fetch)) return null
  const { evidence: id } = fetch
  return typeof id === 'string' && /^[0-9]{1,19}$/.test(id) ? id : null
}

/** The answers of these numbers that are kept whole, by number. */
export async function readKept(
  db: Database,
  tx: Executor,
  ids: readonly string[],
  reading: Pick<EventReading, 'parse'>,
): Promise<ReadonlyMap<string, KeptAnswer>> {
  const kept = new Map<string, KeptAnswer>()
  if (ids.length === 0) return kept
  const rows = await tx.query<{
    evidence_id: string
    kind: string
    object_id: string
    number: string
    is_found: boolean
    fetched_at: Date | string
    body_sha256: Uint8Array
    body: Uint8Array | null
  }>({
    text: `select e.evidence_id::text as evidence_id, e.kind, e.object_id, e.number, e.is_found, e.fetched_at, e.body_sha256, e.body
      from unnest($1::bigint[]) as k(evidence_id) join ${db.schema}evidence e on e.evidence_id = k.evidence_id`,
    values: [[...new Set(ids)]],
  })
  for (const row of rows) {
    if (row.is_found && row.body === null) continue
    const content = row.is_found && row.body !== null ? reading.parse(row.body) : null
    if (content?.readable === false) continue
    kept.set(row.evidence_id, {
      kind: row.kind,
      objectId: row.object_id,
      evidenceId: BigInt(row.evidence_id),
      number: BigInt(row.number),
      fetchedAt: new Date(row.fetched_at),
      sha256: Buffer.from(row.body_sha256).toString('hex'),
      value: content === null ? null : freezeJson(content.value['value']),
    })
  }
  return kept
}

/**
 * The claim with the answer that its decision was made from; null: it is decided from one, and none that fits is
 * kept. `object` that throws is no matter of answers: deciding says it.
 */
export function withKept(claim: Claim, answer: KeptAnswer | undefined): Claim | null {
  if (!looks(claim)) return claim
  if (answer === undefined) return null
  const { evidenceId, number, fetchedAt, sha256, value } = answer
  const answered = { evidenceId, number, fetchedAt, sha256 }
  const at = lookedAt(claim)
  if (at === null || at.kind !== answer.kind || at.objectId !== answer.objectId) return null
  const inputs: ClaimInputs =
    claim.candidate.handler.mirror === undefined
      ? { gather: { ...answered, evidence: value, orderVersion: null } }
      : {
          mirror: {
            ...answered,
            object: { kind: at.kind, value: at.objectId },
            current: value ?? null,
            applied: 0n,
          },
        }
  return { ...claim, inputs }
}

function lookedAt(claim: Claim): ReturnType<typeof lookedAtBy> | null {
  try {
    return lookedAtBy(claim)
  } catch {
    return null
  }
}

/** Answers in the order in which an order's history was decided from them. */
export class AppliedAnswers {
  readonly #applied = new Map<string, bigint>()

  /** The claim as it is decided about the order as it is at its place in history. */
  at(claim: Claim, order: OrderLedger): Claim {
    const { mirror, gather } = claim.inputs ?? {}
    if (mirror !== undefined) {
      const applied = this.#applied.get(keyOf(mirror.object)) ?? 0n
      return { ...claim, inputs: { ...claim.inputs, mirror: { ...mirror, applied } } }
    }
    if (gather === undefined) return claim
    const orderVersion = order.stored ? order.version : null
    return { ...claim, inputs: { ...claim.inputs, gather: { ...gather, orderVersion } } }
  }

  /** It was decided from its answer. */
  decided({ inputs }: Claim): void {
    if (inputs?.mirror === undefined) return
    const { object, number } = inputs.mirror
    const before = this.#applied.get(keyOf(object)) ?? 0n
    if (number > before) this.#applied.set(keyOf(object), number)
  }
}

function keyOf({ kind, value }: { readonly kind: string; readonly value: string }): string {
  return JSON.stringify([kind, value])
}

/** The claim with the customer that it names, linked as it is now; a text is why there is none. */
export async function withCustomer(
  db: Database,
  tx: Executor,
  claim: Claim,
): Promise<Claim | { readonly message: unknown }> {
  try {
    const [given = claim] = await withCustomers(db, tx, [claim])
    return given
  } catch (error) {
    if (error instanceof EventFailure) return { message: error.cause }
    throw error
  }
}
