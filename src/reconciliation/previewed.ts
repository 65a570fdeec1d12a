/**
 * Events on their way through a preview. Those of mirrored types are given the record as it is in the place of an
 * answer: it is only a hint, and what follows from it is decided from an answer of its own.
 */
import type { Executor } from '../postgres/executor.ts'
import {
  lookEvent,
  readKnowledge,
  type Knowledge,
  type LookedObject,
} from '../postgres/look-events.ts'
import type { InboxEvent } from '../workflow/event.ts'
import { lookedObject } from '../workflow/looked-object.ts'
import type { Outcome } from '../workflow/outcome.ts'
import type { MadeEvent, ProviderRecord } from '../workflow/records.ts'
import type { Claim, Resolved } from '../workflow/resolve-event.ts'
import { seenAnswer } from '../workflow/seen-answer.ts'
import type { ConfiguredSourceLike, Planning, PreviewedLook } from './ports.ts'

/** One event of a record. */
export interface Previewed {
  made: MadeEvent
  readonly event: InboxEvent
  readonly record: ProviderRecord | null
  look: Look | null
  needsFacts: boolean
  outcome: Outcome | null
  failure: unknown
  orderId: string | null
}

/** What a mirrored event looks at, with what is known of it. */
export interface Look extends Omit<PreviewedLook, 'hasNews'>, LookedObject {
  readonly knowledge: Knowledge
}

/** The events of one record, which are decided together. */
export interface PreviewedGroup {
  readonly events: readonly Previewed[]
  resolved: readonly Resolved[]
  names: ReadonlyMap<string, { readonly orderId: string; readonly workflow: string }>
}

/** Where it is read. */
export interface LookContext {
  readonly tx: Executor
  readonly schema: string
  readonly planning: Pick<Planning, 'withCustomers'>
}

/** The account whose records they are. */
export interface RecordsOf {
  readonly source: ConfiguredSourceLike
  readonly account: string
}

/** Finds out what mirrored events look at, gives them their records, and all claims the customers that they name. */
export async function giveLooks(
  context: LookContext,
  of: RecordsOf,
  groups: readonly PreviewedGroup[],
): Promise<void> {
  const looks: { readonly each: Previewed; readonly at: ReturnType<typeof lookOf> }[] = []
  for (const group of groups) {
    group.resolved = group.resolved.map((claim, index): Resolved => {
      const each = group.events[index]
      if (claim.kind !== 'claim' || each === undefined) return claim
      if (claim.candidate.handler.mirror === undefined) return claim
      try {
        looks.push({ each, at: lookOf(claim, of, each.record) })
        return claim
      } catch (error) {
        return { kind: 'failed', event: claim.event, error }
      }
    })
  }
  const known = await readKnowledge(
    context.tx,
    context.schema,
    looks.map(({ at }) => at),
  )
  for (const [index, { each, at }] of looks.entries()) {
    const knowledge = known[index]
    if (knowledge === undefined) continue
    each.look = { ...at, knowledge, isKnown: knowledge.answered > 0n }
    each.made = lookEvent(each.made, at, knowledge)
  }
  for (const group of groups) giveRecords(group)
  await giveCustomers(context, groups)
}

/** What the event of a claim looks at. Throws what the workflow's `object` throws. */
function lookOf(
  { candidate, body, orderId, event }: Claim,
  { source: { source }, account }: RecordsOf,
  record: ProviderRecord | null,
): Omit<Look, 'knowledge' | 'isKnown'> {
  const object = lookedObject(candidate.handler.mirror?.object({ event: body }))
  const isSeen =
    record !== null &&
    record.id === object.value &&
    (record.kind === object.kind || source.records?.namedBy(object, account)?.kind === record.kind)
  return { object, orderId, sourceId: event.sourceId, isSeen }
}

function giveRecords(group: PreviewedGroup): void {
  group.resolved = group.resolved.map((each, index): Resolved => {
    const of = group.events[index]
    if (each.kind !== 'claim' || of?.look?.isSeen !== true || of.record === null) return each
    return { ...each, inputs: { ...each.inputs, mirror: seenAnswer(of.look.object, of.record) } }
  })
}

/** One statement for all of them, and none where no handler names a customer. */
async function giveCustomers(
  { tx, planning }: LookContext,
  groups: readonly PreviewedGroup[],
): Promise<void> {
  const claims = groups.flatMap(({ resolved }) =>
    resolved.filter((each): each is Claim => each.kind === 'claim'),
  )
  const { claims: given, failures } = await planning.withCustomers(tx, claims)
  const byEvent = new Map(given.map((claim) => [claim.event, claim]))
  const failed = new Map(failures.map(({ claim, error }) => [claim.event, error]))
  for (const group of groups) {
    group.resolved = group.resolved.map((each): Resolved => {
      if (failed.has(each.event))
        return { kind: 'failed', event: each.event, error: failed.get(each.event) }
      return byEvent.get(each.event) ?? each
    })
  }
}
