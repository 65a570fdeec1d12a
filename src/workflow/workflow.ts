/**
 * A workflow as the engine uses it: plain data and functions, with the types of events erased.
 * `defineWorkflow` builds it; nothing else does.
 */
import type { Money } from '../core/money.ts'
import type { AnyDecision, Decision, MirrorDecision } from './decision.ts'
import type { EventMeta } from './event.ts'
import type { FetchInput, GatherInput, LinkedCustomer } from './gathering.ts'
import type { Effect, Entitlement, Name, Operation, Order, Payment } from './order.ts'
import type { Resolution } from './resolution.ts'

/** An event with its types erased. */
export type AnyEvent = EventMeta & Readonly<Record<string, unknown>>

/** What `decide` is given: frozen, and all of it read under the order's lock. */
export interface DecideInput<
  Event = AnyEvent,
  State extends string = string,
  EffectType extends string = string,
  Subject extends string | null = string | null,
  Destination extends string = string,
  Evidence = undefined,
> {
  readonly event: Event
  readonly order: Order<State, Subject>
  readonly payments: readonly Payment[]
  readonly effects: readonly Effect<EffectType, Destination>[]
  /** What the order's effects send, where each of it stands, and the receipts. */
  readonly operations: readonly Operation<EffectType, Destination>[]
  readonly entitlements: readonly Entitlement[]
  /** A stable secret of this order and name (hex, 64 characters): the same for every retry and replay. */
  readonly derive: (name: string) => string
  /** What `gather` found out, frozen, in the form in which JSON has it; undefined without it. */
  readonly evidence: Evidence
  /** The provider's customer that `customer` named, and the subject that it is linked with; null without it. */
  readonly customer: LinkedCustomer | null
}

/** What a mirror's `decide` is given besides. */
export interface MirrorInput<
  Event = AnyEvent,
  Current = unknown,
  State extends string = string,
  EffectType extends string = string,
  Subject extends string | null = string | null,
  Destination extends string = string,
> extends DecideInput<Event, State, EffectType, Subject, Destination> {
  /** The object as the provider has it now, frozen; null: it knows no such object (any more). */
  readonly current: Current | null
}

/** How types of events that only say "look again" are handled: what counts is the object's present state. */
export interface MirrorHandler<
  Event = AnyEvent,
  Current = unknown,
  State extends string = string,
  EffectType extends string = string,
  Subject extends string | null = string | null,
  Destination extends string = string,
  Api = unknown,
> {
  /** Which order the event belongs to (a text is its id). Pure: the event is all it sees. */
  readonly order: (input: { readonly event: Event }) => Resolution | string | null | undefined
  readonly learn?: ((input: { readonly event: Event }) => readonly (Name | null)[]) | undefined
  /** What to look at: `name('subscription', event.data.object.id)`. Pure. */
  readonly object: (input: { readonly event: Event }) => Name
  /**
   * Asks the provider. Resolves with the object as it is now (plain JSON), or null where there is none (any
   * more); anything else is a failed request. Called outside every transaction, perhaps once for many events;
   * what it throws is asked again later.
   */
  readonly fetch: (input: FetchInput<Api>) => Promise<Current | null>
  /** The id of the provider's customer whose linked subject `decide` needs. Pure. */
  readonly customer?:
    | ((input: {
        readonly event: Event
        readonly current: Current | null
      }) => string | null | undefined)
    | undefined
  /** Answers with `mirrored(…)`; also `skip`, `defer` and `contradict`. Pure. */
  readonly decide: (
    input: MirrorInput<Event, Current, State, EffectType, Subject, Destination>,
  ) => MirrorDecision<State, EffectType, Destination>
  /** When a wait ends and no order is here for it: a finding (default), or ignored. One of a known order is a finding. */
  readonly unclaimed?: 'finding' | 'ignore' | undefined
  /**
   * With `unclaimed: 'ignore'`, how long such a wait lasts, in milliseconds: what is ignored is woken by a name
   * that comes later all the same. Default: the configuration's deadline (24 h).
   */
  readonly unclaimedAfterMs?: number | undefined
}

/** How one type of event is handled. */
export interface EventHandler<
  Event = AnyEvent,
  State extends string = string,
  EffectType extends string = string,
  Subject extends string | null = string | null,
  Destination extends string = string,
  Evidence = undefined,
  Api = unknown,
> {
  /** Which order the event belongs to (a text is its id). Pure: the event is all it sees. */
  readonly order: (input: { readonly event: Event }) => Resolution | string | null | undefined
  /** Other names of that order, learned whatever is decided; what is missing (null) is left out. */
  readonly learn?: ((input: { readonly event: Event }) => readonly (Name | null)[]) | undefined
  /**
   * Asks the provider for what the event does not say. Called outside every transaction; when the order
   * changed meanwhile, or the answer is older than a minute, it is called again.
   */
  readonly gather?:
    ((input: GatherInput<Event, State, Subject, Api>) => Promise<Evidence>) | undefined
  /** The id of the provider's customer whose linked subject `decide` needs. Pure. */
  readonly customer?: ((input: { readonly event: Event }) => string | null | undefined) | undefined
  readonly decide: (
    input: DecideInput<Event, State, EffectType, Subject, Destination, Evidence>,
  ) => Decision<State, EffectType, Destination>
  /** When a wait ends and no order is here for it: a finding (default), or ignored. One of a known order is a finding. */
  readonly unclaimed?: 'finding' | 'ignore' | undefined
  /**
   * With `unclaimed: 'ignore'`, how long such a wait lasts, in milliseconds: what is ignored is woken by a name
   * that comes later all the same. Default: the configuration's deadline (24 h).
   */
  readonly unclaimedAfterMs?: number | undefined
}

/** The SQL that an effect runs in the engine's own transaction. */
export interface ApplyInput {
  /** Runs SQL in the engine's transaction; refuses transaction control. */
  readonly db: UserExecutor
  readonly order: { readonly id: string; readonly subject: string | null }
  readonly effect: Effect
}

/** What a user's SQL runs on. */
export interface UserExecutor {
  query<R = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: R[]; readonly rowCount: number }>
}

/** A declared effect. */
export interface EffectOptions {
  /** Runs after the effect's insert, once per effect that this transaction newly inserted. */
  readonly apply?: ((input: ApplyInput) => Promise<void>) | undefined
  /** Runs when the reversal of an effect is recorded, once. */
  readonly reverse?: ((input: ApplyInput) => Promise<void>) | undefined
  /** The name this effect had in earlier versions. */
  readonly renamedFrom?: string | undefined
}

/** A declared state. */
export interface StateOptions {
  readonly entitles?: boolean | undefined
  /** The name this state had in earlier versions. */
  readonly renamedFrom?: string | undefined
}

/**
 * Says whether what was paid is enough for what was expected (tax, discounts); without it, the currency
 * must match and the amount be at least that. Pure.
 */
export type Compare<Event = AnyEvent> = (input: {
  readonly event: Event
  readonly paid: Money
  readonly expected: Money
}) => boolean

/** Asked of every paying event of an order without an expected amount: price, product. Pure. */
export type Accepts<Event = AnyEvent> = (input: {
  readonly event: Event
  readonly paid: Money
}) => boolean

/** One history that a provider can produce: what the confluence check and the drills play. */
export interface History {
  readonly name: string
  /** Opened by the app before or between the events, where the workflow says `opens: 'app'`. */
  readonly open?:
    | { readonly id: string; readonly subject: string; readonly expected?: Money | undefined }
    | undefined
  /** Provider bodies, in the order in which they happened. */
  readonly events: readonly object[]
  /**
   * What destinations answer, by their names, once all events have come: for events that wait for an
   * operation. Those of other destinations are never answered.
   */
  readonly receipts?: Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined
  /**
   * What mirrors find at the provider when they look, by kind and id (`subscription sub_1`): the objects as
   * they are at the history's end; null: gone. Default: `data.object` of the last event about the object.
   */
  readonly present?: Readonly<Record<string, object | null>> | undefined
  /** What `gather` finds out, by the id of the event; undefined for the others. */
  readonly gathered?: Readonly<Record<string, unknown>> | undefined
  /** The subjects that the provider's customers are linked with, by their ids, before or after all events. */
  readonly customers?: Readonly<Record<string, string>> | undefined
}

/** A handler as the engine has it: of `on`, or of `mirror` with `object` and `fetch`. */
export interface AnyHandler {
  readonly order: EventHandler['order']
  readonly learn?: EventHandler['learn']
  readonly gather?:
    ((input: GatherInput<AnyEvent, string, string | null, never>) => Promise<unknown>) | undefined
  readonly mirror?: MirrorLook | undefined
  readonly customer?:
    | ((input: {
        readonly event: AnyEvent
        readonly current: unknown
      }) => string | null | undefined)
    | undefined
  readonly decide: (input: never) => AnyDecision
  readonly unclaimed?: 'finding' | 'ignore' | undefined
  readonly unclaimedAfterMs?: number | undefined
}

/** What a mirror looks at, and how. */
export interface MirrorLook {
  readonly object: (input: { readonly event: AnyEvent }) => Name
  readonly fetch: (input: FetchInput<never>) => Promise<unknown>
}

/** The engine's form of a workflow. */
export interface Workflow {
  readonly name: string
  readonly sources: readonly string[]
  readonly initial: string
  readonly opens: 'app' | 'event'
  readonly states: ReadonlyMap<string, StateOptions>
  readonly transitions: ReadonlyMap<string, readonly string[]>
  readonly effects: ReadonlyMap<string, EffectOptions>
  /** Where its effects may send; undefined: wherever the configuration knows. */
  readonly destinations: readonly string[] | undefined
  readonly handlers: ReadonlyMap<string, AnyHandler>
  readonly version: string
  readonly compare: Compare | undefined
  readonly accepts: Accepts | undefined
  readonly histories: readonly History[] | undefined
  /**
   * Set where this is a workflow in shadow: as it was declared. It decides and records, and neither grants
   * nor sends, nor runs its effects' SQL.
   */
  readonly shadowOf?: Workflow | undefined
}

/** Whether a state is declared to entitle. */
export function entitles(workflow: Workflow, state: string): boolean {
  return workflow.states.get(state)?.entitles === true
}

/** Whether an order in this state entitles now: nothing does in shadow. */
export function grants(workflow: Workflow, state: string): boolean {
  return workflow.shadowOf === undefined && entitles(workflow, state)
}

/** What a decision records of it. Null in shadow: the database lets no entitlement name such a decision. */
export function recordedEntitles(workflow: Workflow, state: string): boolean | null {
  return workflow.shadowOf === undefined ? entitles(workflow, state) : null
}

/** Whether `to` can be reached from `from` in any number of transitions. */
export function isReachable(workflow: Workflow, from: string, to: string): boolean {
  const seen = new Set([from])
  const queue = [from]
  for (let state = queue.pop(); state !== undefined; state = queue.pop()) {
    for (const next of workflow.transitions.get(state) ?? []) {
      if (next === to) return true
      if (!seen.has(next)) {
        seen.add(next)
        queue.push(next)
      }
    }
  }
  return false
}
