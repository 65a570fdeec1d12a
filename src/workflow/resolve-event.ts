/**
 * Check 2 of the engine: which order an event belongs to. Waiting is no claim; two claims are a
 * contradiction; a name leads to an order only for the workflow that the order belongs to.
 */
import { anyEvent } from './any-event.ts'
import type { Environment, InboxEvent } from './event.ts'
import type { ClaimInputs } from './gathering.ts'
import type { Name } from './order.ts'
import type { Candidate, PlainHandler, Registry } from './registry.ts'
import { checkedNames, checkedResolution, present } from './resolution.ts'
import type { AnyEvent } from './workflow.ts'

/** What is known of an event before anything is read of its order. */
export type Resolved =
  | { readonly kind: 'left'; readonly event: InboxEvent }
  | { readonly kind: 'ignored'; readonly event: InboxEvent; readonly reason: string }
  | { readonly kind: 'dead'; readonly event: InboxEvent; readonly reason: string }
  | { readonly kind: 'failed'; readonly event: InboxEvent; readonly error: unknown }
  | {
      readonly kind: 'plain'
      readonly event: InboxEvent
      readonly body: AnyEvent
      readonly handler: PlainHandler
    }
  | {
      readonly kind: 'contradicted'
      readonly event: InboxEvent
      readonly reason: string
      readonly orderIds: readonly string[]
    }
  | Claim
  | Waiting

/** The event belongs to this order. */
export interface Claim {
  readonly kind: 'claim'
  readonly event: InboxEvent
  readonly body: AnyEvent
  readonly candidate: Candidate
  readonly orderId: string
  readonly learned: readonly Name[]
  /** What was read beside the order: answers of the provider, a linked customer. */
  readonly inputs?: ClaimInputs | undefined
}

/** No workflow claims it yet; each waits for names. */
export interface Waiting {
  readonly kind: 'waiting'
  readonly event: InboxEvent
  readonly body: AnyEvent
  readonly waits: readonly CandidateWait[]
}

/** The names that one workflow waits for. */
export interface CandidateWait {
  readonly candidate: Candidate
  readonly names: readonly Name[]
  readonly learned: readonly Name[]
}

/** What resolving needs to know of the installation. */
export interface ResolveContext {
  readonly registry: Registry
  readonly environment: Environment
  /** Whether this process has the newest configuration: only then does it judge what it does not know. */
  readonly mayIgnore: boolean
}

/** Resolves one event as far as the event alone allows. */
export function resolveEvent(event: InboxEvent, context: ResolveContext): Resolved {
  if (event.source.environment !== context.environment) {
    const reason = `it is of the ${event.source.environment} environment; this schema holds ${context.environment}`
    return { kind: 'ignored', event, reason }
  }
  // a source, an account or a type that only a newer configuration knows is for a newer process
  const isUnknown = event.source.name === null || !event.accountAllowed
  if (isUnknown && !context.mayIgnore) return { kind: 'left', event }
  if (event.source.name === null) {
    return { kind: 'ignored', event, reason: 'no configured source has its provider and account' }
  }
  if (!event.content.readable) return { kind: 'dead', event, reason: event.content.reason }
  const candidates = context.registry.candidates(event.source.name, event.eventType)
  if (candidates === null) {
    if (!context.mayIgnore) return { kind: 'left', event }
    return { kind: 'ignored', event, reason: `nothing handles ${event.eventType}` }
  }
  const body = anyEvent(event, event.content.value)
  try {
    return claimOf(event, body, candidates.workflows, candidates.plain)
  } catch (error) {
    return { kind: 'failed', event, error }
  }
}

function claimOf(
  event: InboxEvent,
  body: AnyEvent,
  candidates: readonly Candidate[],
  plain: PlainHandler | null,
): Resolved {
  const claims: Claim[] = []
  const waits: CandidateWait[] = []
  const refusals: string[] = []
  for (const candidate of candidates) {
    const resolution = checkedResolution(candidate.handler.order({ event: body }))
    if (resolution.kind === 'not_ours') {
      refusals.push(`${candidate.workflow.name}: ${resolution.reason}`)
      continue
    }
    const learned = checkedNames(candidate.handler.learn?.({ event: body }) ?? [])
    if (resolution.kind === 'wait') waits.push({ candidate, names: resolution.names, learned })
    else claims.push({ kind: 'claim', event, body, candidate, orderId: resolution.id, learned })
  }
  const claimants = claims.map((claim) => claim.candidate.workflow.name)
  if (plain !== null) claimants.push('a plain handler')
  const [claim] = claims
  if (claimants.length > 1) {
    const reason = `claimed by ${claimants.join(' and ')}; at most one may claim an event`
    return { kind: 'contradicted', event, reason, orderIds: claims.map((each) => each.orderId) }
  }
  if (plain !== null) return { kind: 'plain', event, body, handler: plain }
  if (claim !== undefined) return claim
  if (waits.length > 0) return { kind: 'waiting', event, body, waits }
  return { kind: 'ignored', event, reason: refusals.join('; ') || 'not ours' }
}

/** An order that a name leads to. */
export interface NamedOrder {
  readonly orderId: string
  readonly workflow: string
}

/** Looks a name of the event's source up. */
export type NameLookup = (sourceId: number, name: Name) => NamedOrder | null

/** Turns a waiting event into a claim, where a name leads to an order of a workflow that waits. */
export function settleWaiting(waiting: Waiting, lookup: NameLookup): Resolved {
  const { event, body } = waiting
  const claims = new Map<string, Claim>()
  let foreign: NamedOrder | null = null
  for (const { candidate, names, learned } of waiting.waits) {
    for (const name of names) {
      const found = lookup(event.sourceId, name)
      if (found === null) continue
      if (found.workflow === candidate.workflow.name) {
        const all = present([...learned, ...names])
        claims.set(found.orderId, {
          kind: 'claim',
          event,
          body,
          candidate,
          orderId: found.orderId,
          learned: all,
        })
      } else foreign = found
    }
  }
  const [claim] = claims.values()
  if (claims.size > 1) {
    const orderIds = [...claims.keys()].sort()
    return {
      kind: 'contradicted',
      event,
      reason: `its names lead to different orders: ${orderIds.join(', ')}`,
      orderIds,
    }
  }
  if (claim !== undefined) return claim
  if (
    foreign !== null &&
    !waiting.waits.some((wait) => wait.names.some((name) => lookup(event.sourceId, name) === null))
  ) {
    const reason = `it belongs to order ${foreign.orderId} of workflow ${foreign.workflow}, which does not handle ${event.eventType}`
    return { kind: 'ignored', event, reason }
  }
  return waiting
}
