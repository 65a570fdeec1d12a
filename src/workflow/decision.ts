/**
 * The answers that `decide` can give. They are plain data: the engine checks and applies them.
 */
import { PermanentError } from '../core/errors.ts'
import type { Money } from '../core/money.ts'
import type { Name } from './order.ts'

/** A payment that a decision names: the provider's id, and what was captured. */
export interface PaymentClaim {
  readonly id: string
  readonly money: Money
}

/** A call to the outside, recorded in the commit of its effect and made after it. */
export interface Send<State extends string = string, Destination extends string = string> {
  /** The name of a configured destination. */
  readonly to: Destination
  /** Tells several operations of one effect to one destination apart. Default: the effect's type. */
  readonly name?: string | undefined
  /** What the destination takes. It is encoded once, now; the bytes never change. */
  readonly body: unknown
  /** The states of the order in which it still makes sense: when the order left them, it is canceled. */
  readonly while?: readonly State[] | undefined
}

/**
 * An effect that a decision asks for. Type and reference make it happen once. Without its last two types it
 * is one that sends nothing.
 */
export interface EffectClaim<
  Type extends string = string,
  State extends string = never,
  Destination extends string = never,
> {
  readonly type: Type
  /** Default: empty, once an order. */
  readonly reference?: string | undefined
  readonly amount?: Money | undefined
  /** The id of the payment that the amount counts against: more than was captured is a contradiction. */
  readonly payment?: string | undefined
  /** Declared figures and ids for the ledger; never a body. */
  readonly data?: Readonly<Record<string, unknown>> | undefined
  /** What is sent because of it: once, like the effect. */
  readonly send?: readonly Send<State, Destination>[] | undefined
}

/** An effect of any workflow, whatever it sends. */
export type AnyEffectClaim = EffectClaim<string, string, string>

/** One entitlement of the whole set that an order entitles to. */
export interface EntitlementClaim {
  readonly subject: string
  readonly entitlement: string
  /** Default 1. */
  readonly quantity?: number | undefined
  readonly validUntil?: Date | null | undefined
}

/** Serves the customer and makes a finding of this kind. */
export interface Flag {
  readonly kind: string
  readonly figures?: Figures | undefined
}

/** Declared figures, ids and hashes kept as evidence. Amounts as bigint stay exact. */
export type Figures = Readonly<Record<string, string | number | bigint | boolean | null>>

/** What an event may wait for. */
export type Missing<
  State extends string = string,
  EffectType extends string = string,
  Destination extends string = string,
> =
  | { readonly kind: 'name'; readonly name: Name }
  | { readonly kind: 'effect'; readonly type: EffectType; readonly reference: string }
  | { readonly kind: 'state'; readonly states: readonly State[] }
  | { readonly kind: 'payment'; readonly id: string }
  | { readonly kind: 'customer'; readonly id: string }
  | {
      readonly kind: 'operation'
      readonly type: EffectType
      readonly reference?: string | undefined
      readonly name?: string | undefined
      readonly to?: Destination
    }

interface Changes<State extends string, EffectType extends string, Destination extends string> {
  readonly to?: State | undefined
  readonly payment?: PaymentClaim | undefined
  readonly effects?: readonly EffectClaim<EffectType, State, Destination>[] | undefined
  /** The WHOLE set of what the order entitles to; absent keeps the set last stated. */
  readonly entitle?: readonly EntitlementClaim[] | undefined
  /** Names the order's subject where it has none yet. */
  readonly subject?: string | undefined
  readonly flag?: Flag | undefined
  readonly reason?: string | undefined
  readonly evidence?: Figures | undefined
}

interface MirrorChanges<
  State extends string,
  EffectType extends string,
  Destination extends string,
> extends Omit<Changes<State, EffectType, Destination>, 'payment'> {
  /** Kinds of findings flagged about this order before, of which this state is the end. */
  readonly settles?: readonly string[] | undefined
}

/** The recorded answer to an event, as `decide` of `.on(…)` returns it. */
export type Decision<
  State extends string = string,
  EffectType extends string = string,
  Destination extends string = string,
> =
  | (Changes<State, EffectType, Destination> & { readonly kind: 'fulfill' | 'move' })
  | (Changes<State, EffectType, Destination> & {
      readonly kind: 'reverse'
      readonly of: { readonly type: EffectType; readonly reference?: string | undefined }
    })
  | Unchanged<State, EffectType, Destination>

/** The recorded answer to an event, as `decide` of `.mirror(…)` returns it. */
export type MirrorDecision<
  State extends string = string,
  EffectType extends string = string,
  Destination extends string = string,
> =
  | (MirrorChanges<State, EffectType, Destination> & { readonly kind: 'mirror' })
  | Unchanged<State, EffectType, Destination>

/** Any answer to an event. */
export type AnyDecision<
  State extends string = string,
  EffectType extends string = string,
  Destination extends string = string,
> = Decision<State, EffectType, Destination> | MirrorDecision<State, EffectType, Destination>

/** An answer that changes nothing of the order. */
export type Unchanged<
  State extends string = string,
  EffectType extends string = string,
  Destination extends string = string,
> =
  | { readonly kind: 'skip'; readonly reason: string }
  | {
      readonly kind: 'defer'
      readonly missing:
        Missing<State, EffectType, Destination> | readonly Missing<State, EffectType, Destination>[]
      /** Deadline in milliseconds; default: the configuration's (24 h). */
      readonly forMs?: number | undefined
      readonly reason?: string | undefined
    }
  | { readonly kind: 'contradict'; readonly reason: string; readonly figures?: Figures | undefined }

/** Fulfills: records the payment, makes the effects, states the entitlements, moves the order. */
export function fulfill<
  const State extends string = never,
  const EffectType extends string = never,
  const Destination extends string = never,
>(changes: Changes<State, EffectType, Destination>): Decision<State, EffectType, Destination> {
  return { ...changes, kind: 'fulfill' }
}

/** Moves the order once: the fact that moved it is a declared effect under its own key. */
export function move<
  const State extends string,
  const EffectType extends string,
  const Destination extends string = never,
>(
  change: Omit<Changes<State, EffectType, Destination>, 'effects' | 'to'> & {
    readonly to: State
    readonly once: EffectClaim<EffectType, State, Destination>
  },
): Decision<State, EffectType, Destination> {
  const { once, ...rest } = change
  if (once === undefined)
    throw new PermanentError('a move needs `once`: the effect that is the fact which moves it')
  return { ...rest, effects: [once], kind: 'move' }
}

/**
 * Reverses an effect (a refund that failed after it had succeeded). The two are recorded apart and
 * commute: whichever comes first, both rows stand and the amount no longer counts.
 */
export function reverse<
  const EffectType extends string,
  const State extends string = never,
  const Destination extends string = never,
>(
  change: Changes<State, EffectType, Destination> & {
    readonly of: { readonly type: EffectType; readonly reference?: string | undefined }
  },
): Decision<State, EffectType, Destination> {
  return { ...change, kind: 'reverse' }
}

/**
 * Makes the order what the provider's object is now: any declared state from any other. It needs no key,
 * since the same state twice is no change; effects that it names happen once, like any others. Only for mirrors.
 */
export function mirrored<
  const State extends string = never,
  const EffectType extends string = never,
  const Destination extends string = never,
>(
  changes: MirrorChanges<State, EffectType, Destination>,
): MirrorDecision<State, EffectType, Destination> {
  return { ...changes, kind: 'mirror' }
}

/** Decides that nothing follows from the event. Final. */
export function skip(reason: string): Unchanged<never, never, never> {
  return { kind: 'skip', reason }
}

/** Waits for something of the order (or a name), at the longest `for` milliseconds. */
export function defer<
  const State extends string = never,
  const EffectType extends string = never,
  const Destination extends string = never,
>(wait: {
  readonly missing:
    Missing<State, EffectType, Destination> | readonly Missing<State, EffectType, Destination>[]
  readonly for?: number | undefined
  readonly reason?: string | undefined
}): Unchanged<State, EffectType, Destination> {
  return { kind: 'defer', missing: wait.missing, forMs: wait.for, reason: wait.reason }
}

/** Records that the event contradicts what the order knows; grants nothing and makes a finding. */
export function contradict(reason: string, figures?: Figures): Unchanged<never, never, never> {
  return { kind: 'contradict', reason, figures }
}

/** Something to wait for: an effect of the order. */
export function effect<const EffectType extends string>(
  type: EffectType,
  reference = '',
): Missing<never, EffectType, never> {
  return { kind: 'effect', type, reference }
}

/**
 * Something to wait for: the operation of an effect being sent. Every end of an operation of the order
 * wakes the event; `operations` tells `decide` how it ended.
 */
export function operation<
  const EffectType extends string,
  const Destination extends string = never,
>(
  type: EffectType,
  which: {
    readonly reference?: string | undefined
    readonly name?: string | undefined
    readonly to?: Destination
  } = {},
): Missing<never, EffectType, Destination> {
  return { ...which, kind: 'operation', type }
}

/** Something to wait for: the provider's customer being linked with a subject (`linkCustomer`). */
export function linkedCustomer(id: string): Missing<never, never, never> {
  return { kind: 'customer', id }
}

/** Something to wait for: the order being in one of these states. */
export function state<const State extends string>(
  ...states: readonly State[]
): Missing<State, never, never> {
  return { kind: 'state', states }
}
