/**
 * What events are given beside their order: the provider's newest answer about what they look at, read under
 * the locks of the order and of what is looked at. An answer is good for an event only where its request
 * was numbered after the event had asked, and only while it is young.
 */
import { PermanentError } from '../core/errors.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { freezeJson } from '../workflow/any-event.ts'
import type { FoldFailure } from '../workflow/fold.ts'
import { gatheredEvent, type Answered, type ClaimInputs } from '../workflow/gathering.ts'
import { lookedObject } from '../workflow/looked-object.ts'
import type { Claim } from '../workflow/resolve-event.ts'
import { readCustomerLinks } from './customer-links.ts'
import type { EventReading } from './read-claimed.ts'

/** What is looked at: an object of an order, or an event (kind `event`) for whose order something is gathered. */
export interface LookedAt {
  readonly orderId: string
  readonly sourceId: number
  readonly kind: string
  readonly objectId: string
}

/** Where the look of one event stands, read under the locks. */
export interface Look extends LookedAt {
  /** Whether it is known already that this is looked at. */
  readonly known: boolean
  /** The number of the last request that was (or is being) made. */
  readonly sent: bigint
  /** The number of the newest answer. */
  readonly answered: bigint
  /** The newest number that a decision was made from. */
  readonly applied: bigint
  /** What the event waited for; null where it has not asked, or was decided or deferred since. */
  readonly asked: { readonly wanted: bigint; readonly tries: number } | null
}

/** The claims of a batch with what was read for them. */
export interface ReadAnswers {
  readonly claims: readonly Claim[]
  readonly failures: readonly FoldFailure[]
  /** By the event's key: those that mirror or gather. */
  readonly looks: ReadonlyMap<bigint, Look>
}

/** How often an event asks anew because its answer grew old, before an older one is taken. */
export const mostTries = 3

/** Whether an event is decided from what its provider answers. */
export function looks({ candidate: { handler } }: Claim): boolean {
  return handler.mirror !== undefined || handler.gather !== undefined
}

/** What the event of a claim looks at. Runs the workflow's `object`, whose errors it passes on. */
export function lookedAtBy({ event, body, candidate, orderId }: Claim): LookedAt {
  const { mirror } = candidate.handler
  if (mirror === undefined) {
    return {
      orderId,
      sourceId: event.sourceId,
      kind: gatheredEvent,
      objectId: event.key.toString(),
    }
  }
  const { kind, value } = lookedObject(mirror.object({ event: body }))
  return { orderId, sourceId: event.sourceId, kind, objectId: value }
}

/** One text for each thing that is looked at. */
export function lookKey({ orderId, sourceId, kind, objectId }: LookedAt): string {
  return JSON.stringify([orderId, sourceId, kind, objectId])
}

/**
 * Locks what the claims look at and reads the answers. The orders must be locked already, and nothing that
 * is missing is written: whoever asks writes it.
 */
export async function readAnswers(
  db: Database,
  tx: Executor,
  claims: readonly Claim[],
  reading: Pick<EventReading, 'parse'>,
  evidenceMs: number,
): Promise<ReadAnswers> {
  const failures: FoldFailure[] = []
  const wanted = new Map<Claim, LookedAt>()
  for (const claim of claims) {
    if (!looks(claim)) continue
    try {
      wanted.set(claim, lookedAtBy(claim))
    } catch (error) {
      failures.push({ claim, error })
    }
  }
  const states = await lockLookedAt(db, tx, [...wanted.values()])
  const asked = await readAsked(db, tx, states.size === 0 ? [] : [...wanted.keys()])
  const evidence = await readEvidence(db, tx, [...states.values()], evidenceMs)
  const seen = new Map<string, Content>()
  const looked = new Map<bigint, Look>()
  const failed = new Set(failures.map((each) => each.claim))
  const given: Claim[] = []
  for (const claim of claims) {
    const at = wanted.get(claim)
    if (at === undefined) {
      if (!failed.has(claim)) given.push(claim)
      continue
    }
    const state = states.get(lookKey(at))
    const look = { ...at, ...(state ?? unknown), asked: asked.get(claim.event.key) ?? null }
    looked.set(claim.event.key, look)
    const row = state?.evidenceId == null ? undefined : evidence.get(state.evidenceId)
    if (row === undefined || !isGood(look, row, claim)) {
      given.push(claim)
      continue
    }
    const content = seen.get(row.evidence_id) ?? contentOf(row, reading)
    seen.set(row.evidence_id, content)
    if ('reason' in content) {
      const error = new PermanentError(`what the provider answered is ${content.reason}`)
      failures.push({ claim, error })
    } else given.push({ ...claim, inputs: inputsOf(claim, look, row, content.value) })
  }
  return { claims: given, failures, looks: looked }
}

/** The claims with the linked customers that their handlers name, read where any of them names one. */
export async function withCustomers(
  db: Database,
  tx: Executor,
  claims: readonly Claim[],
): Promise<readonly Claim[]> {
  if (claims.every(({ candidate }) => candidate.handler.customer === undefined)) return claims
  const customers = await readCustomerLinks(db, tx, claims)
  return claims.map((claim) => {
    const customer = customers.get(claim)
    return customer === undefined ? claim : { ...claim, inputs: { ...claim.inputs, customer } }
  })
}

/** Whether this answer may be decided from: asked for after the event came, kept, and young enough. */
function isGood({ asked, answered, applied }: Look, row: EvidenceRow, claim: Claim): boolean {
  if (asked === null || answered < asked.wanted || (row.is_found && row.body === null)) return false
  if (row.is_fresh) return true
  // a mirror's older answer is better than none for ever, and one that was decided from says nothing new anyway
  return (
    claim.candidate.handler.mirror !== undefined &&
    (answered <= applied || asked.tries >= mostTries)
  )
}

type Content = { readonly value: unknown } | { readonly reason: string }

function contentOf(row: EvidenceRow, { parse }: Pick<EventReading, 'parse'>): Content {
  if (!row.is_found || row.body === null) return { value: null }
  const content = parse(row.body)
  return content.readable ? { value: freezeJson(content.value['value']) } : content
}

function inputsOf(claim: Claim, look: Look, row: EvidenceRow, value: unknown): ClaimInputs {
  const answered: Answered = {
    evidenceId: BigInt(row.evidence_id),
    number: BigInt(row.number),
    fetchedAt: row.fetched_at,
    sha256: Buffer.from(row.body_sha256).toString('hex'),
  }
  if (claim.candidate.handler.mirror === undefined) {
    const orderVersion = row.order_version === null ? null : BigInt(row.order_version)
    return { ...claim.inputs, gather: { ...answered, evidence: value, orderVersion } }
  }
  const object = { kind: look.kind, value: look.objectId }
  return {
    ...claim.inputs,
    mirror: { ...answered, object, current: value ?? null, applied: look.applied },
  }
}

interface LookState {
  readonly known: boolean
  readonly sent: bigint
  readonly answered: bigint
  readonly applied: bigint
  readonly evidenceId: string | null
}

const unknown: LookState = {
  known: false,
  sent: 0n,
  answered: 0n,
  applied: 0n,
  evidenceId: null,
}

interface LookRow {
  order_id: string
  source_id: number
  kind: string
  object_id: string
  sent: string
  answered: string
  applied: string
  evidence_id: string | null
}

/** The statement that locks what is looked at, exported so that its plan can be asserted. */
export function lookedAtStatement(schema: string): string {
  return `select l.order_id, l.source_id, l.kind, l.object_id, l.sent, l.answered, l.applied, l.evidence_id
    from unnest($1::text[], $2::integer[], $3::text[], $4::text[]) as k(order_id, source_id, kind, object_id)
    join ${schema}looked_at l on l.order_id = k.order_id and l.source_id = k.source_id and l.kind = k.kind and l.object_id = k.object_id
    order by l.order_id, l.source_id, l.kind, l.object_id for update of l`
}

async function lockLookedAt(
  db: Database,
  tx: Executor,
  looked: readonly LookedAt[],
): Promise<Map<string, LookState>> {
  const states = new Map<string, LookState>()
  const distinct = [...new Map(looked.map((each) => [lookKey(each), each])).values()]
  if (distinct.length === 0) return states
  const rows = await tx.query<LookRow>({
    text: lookedAtStatement(db.schema),
    repeated: true,
    values: [
      distinct.map((each) => each.orderId),
      distinct.map((each) => each.sourceId),
      distinct.map((each) => each.kind),
      distinct.map((each) => each.objectId),
    ],
  })
  for (const row of rows) {
    const key = { orderId: row.order_id, sourceId: row.source_id, kind: row.kind }
    states.set(lookKey({ ...key, objectId: row.object_id }), {
      known: true,
      sent: BigInt(row.sent),
      answered: BigInt(row.answered),
      applied: BigInt(row.applied),
      evidenceId: row.evidence_id,
    })
  }
  return states
}

/** The statement that reads what events have asked for, exported so that its plan can be asserted. */
export function askedStatement(schema: string): string {
  return `select event_key, wanted, tries from ${schema}inbox_gathers where event_key = any ($1::bigint[])`
}

async function readAsked(
  db: Database,
  tx: Executor,
  claims: readonly Claim[],
): Promise<ReadonlyMap<bigint, NonNullable<Look['asked']>>> {
  if (claims.length === 0) return new Map()
  const rows = await tx.query<{ event_key: string; wanted: string; tries: number }>({
    text: askedStatement(db.schema),
    repeated: true,
    values: [claims.map(({ event }) => event.key.toString())],
  })
  return new Map(
    rows.map((row) => [BigInt(row.event_key), { wanted: BigInt(row.wanted), tries: row.tries }]),
  )
}

interface EvidenceRow {
  evidence_id: string
  number: string
  order_version: string | null
  is_found: boolean
  is_fresh: boolean
  fetched_at: Date
  body_sha256: Uint8Array
  /** Null once its retention is over. */
  body: Uint8Array | null
}

/** The statement that reads the newest answers, exported so that its plan can be asserted. */
export function evidenceStatement(schema: string): string {
  return `select * from ${schema}newest_answers($1::bigint[], $2::bigint)`
}

/** In a statement after the locks: what was locked may have been answered a moment before. */
async function readEvidence(
  db: Database,
  tx: Executor,
  states: readonly LookState[],
  evidenceMs: number,
): Promise<ReadonlyMap<string, EvidenceRow>> {
  const ids = states.flatMap(({ evidenceId }) => evidenceId ?? [])
  if (ids.length === 0) return new Map()
  const rows = await tx.query<EvidenceRow>({
    text: evidenceStatement(db.schema),
    repeated: true,
    values: [ids, evidenceMs],
  })
  return new Map(rows.map((row) => [row.evidence_id, row]))
}
