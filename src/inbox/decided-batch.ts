/**
 * What a batch decided, and what follows from it for the one statement that writes it: names learned, what
 * is woken, the ledger's part. Nothing here asks the database.
 */
import type { InboxEvent } from '../workflow/event.ts'
import type { OrderLedger } from '../workflow/order.ts'
import type { Claim, Resolved } from '../workflow/resolve-event.ts'
import type { Look } from './answers.ts'
import type { FoundVersion } from './api-versions.ts'
import type { Asking } from './ask-parts.ts'
import { resolvedKinds } from './batch-judgements.ts'
import type { LedgerPort, SourceName } from './ledger-port.ts'
import type { Retried, Settled } from './outcome-parts.ts'
import { namesOf, type BoundNames } from './plan-batch.ts'

/** An event that would write a new order or name; those of one group wait for the same. */
export interface UnopenedEvent {
  readonly key: bigint
  readonly group: string
}

/** Whether an event would write a name that is not there yet: its own, or the one that it waits for. */
export function unboundOf(
  resolved: Resolved,
  bound: BoundNames,
  key: (name: SourceName) => string,
): readonly UnopenedEvent[] {
  const { event } = resolved
  const names = namesOf([resolved])
    .map(key)
    .filter((each) => !bound.has(each))
  const [first] = names
  if (first === undefined) return []
  return [{ key: event.key, group: resolved.kind === 'claim' ? resolved.orderId : first }]
}

/** The claims of a batch whose orders it holds. */
export interface LockedClaims {
  readonly orders: Map<string, OrderLedger>
  readonly before: ReadonlyMap<string, OrderLedger>
  readonly ready: readonly Claim[]
  readonly unopened: readonly UnopenedEvent[]
}

/** What a batch decided, before any of it is written. */
export interface DecidedBatch {
  readonly settled: readonly Settled[]
  readonly retried: readonly Retried[]
  readonly before: ReadonlyMap<string, OrderLedger>
  readonly after: ReadonlyMap<string, OrderLedger>
  readonly unopened: readonly UnopenedEvent[]
  readonly bound: BoundNames
}

/** The same, where some of its events look at their provider. */
export interface WorkedBatch extends DecidedBatch {
  /** What waits for an answer from now on. */
  readonly asking: readonly Asking[]
  /** What was looked at, by the event's key. */
  readonly looks: ReadonlyMap<bigint, Look>
}

/** A name, and the order that it is of. */
export interface LearnedName extends SourceName {
  readonly orderId: string
}

/** Names that outcomes teach and that are not bound yet. */
export function newNames(
  { settled, bound }: DecidedBatch,
  key: (name: SourceName) => string,
): LearnedName[] {
  const learned: LearnedName[] = []
  for (const { outcome } of settled) {
    const { orderId, event } = outcome
    if (orderId === null) continue
    for (const { kind, value } of outcome.learned) {
      const name = { sourceId: event.sourceId, kind, value, orderId }
      if (!bound.has(key(name))) learned.push(name)
    }
  }
  return learned
}

function sourceText(event: InboxEvent): string {
  return `${event.source.provider}:${event.source.account}:${event.source.environment}`
}

/** Names and orders that are new or changed: what waits for them is looked at again. */
export function wakesOf(
  { before, after }: DecidedBatch,
  learned: readonly LearnedName[],
): SourceName[] {
  const wakes: SourceName[] = [...learned]
  for (const { id, stored, version } of after.values()) {
    if (stored && version !== before.get(id)?.version) {
      wakes.push({ sourceId: 0, kind: 'order', value: id })
    }
  }
  return wakes
}

/** The ledger's part of the batch. */
export function ledgerBatch(
  { settled, before, after }: DecidedBatch,
  ledger: LedgerPort,
  actor: string,
  otherVersions: readonly FoundVersion[],
): Parameters<LedgerPort['apply']>[1] {
  return {
    decided: settled.map(({ row, outcome }) => ({
      outcome,
      attempts: row.attempts + 1,
      recorded: outcome.kind !== 'deferred' || row.waitsFor !== outcome.wait?.description,
    })),
    before,
    after,
    findings: [
      ...settled.flatMap(({ outcome }) =>
        outcome.findings.map((draft) => ({
          draft,
          source: sourceText(outcome.event),
          orderId: outcome.orderId,
          eventKey: outcome.event.key,
        })),
      ),
      ...otherVersions,
    ],
    closedFindings: settled.flatMap((each) => endedFindings(each, ledger)),
    actor,
  }
}

/** Findings that end with an outcome: about the event, and those about its order that it says are settled. */
function endedFindings(each: Settled, ledger: LedgerPort): string[] {
  const { outcome, row } = each
  const source = sourceText(outcome.event)
  return [
    ...resolvedKinds(each).map((kind) => ledger.findingId(kind, source, `event:${row.key}`)),
    ...(outcome.settles ?? []).map((kind) =>
      ledger.findingId(kind, source, `order:${outcome.orderId}`),
    ),
  ]
}
