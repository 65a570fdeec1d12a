/**
 * `defineWorkflow().on().mirror()`: what a user writes. Types hold a typo at compile time; in plain JavaScript
 * the same mistake stops the start, with the name of the culprit and the nearest known one.
 */
import { fingerprint } from '../core/fingerprint.ts'
import type { ReceivedEvent, UntypedBody } from './event.ts'
import {
  checkFunction,
  checkHandler,
  checkKnown,
  checkMirror,
  checkName,
  checkOptions,
  destinationsOf,
  historiesOf,
  invalid,
  mapOf,
  transitionsOf,
} from './workflow-options.ts'
import type {
  Accepts,
  AnyHandler,
  Compare,
  EffectOptions,
  EventHandler,
  History,
  MirrorHandler,
  MirrorLook,
  StateOptions,
  Workflow,
} from './workflow.ts'

/** Event bodies by source name and type; sources that are not named here are untyped. */
export type SourceTypes = Readonly<Record<string, object>>

/** What `fetch` and `gather` are given as `api`, by source name; unknown for sources that are not named here. */
export type SourceApis = Readonly<Record<string, unknown>>

/** The API of some sources, as `fetch` and `gather` are given it. */
export type ApiOf<
  Apis extends SourceApis,
  SourceName extends string,
> = SourceName extends keyof Apis ? Apis[SourceName] : unknown

/** The events of some sources: those with types, else any name with an untyped body. */
export type EventsOf<
  Known extends SourceTypes,
  SourceName extends string,
> = SourceName extends keyof Known ? Known[SourceName] : Readonly<Record<string, UntypedBody>>

/** The names of events, of all sources together. */
export type EventNameOf<Events> = Events extends unknown ? keyof Events & string : never

/** The event of a type, as users see it: whatever source it comes from. */
export type EventOf<Events, Type extends string> = ReceivedEvent<BodyOf<Events, Type>>

type BodyOf<Events, Type extends string> = Events extends unknown
  ? Type extends keyof Events
    ? Events[Type]
    : never
  : never

/** An order's subject: where only the app opens orders, they have one from the start. */
export type SubjectOf<Opens extends 'app' | 'event'> = Opens extends 'event'
  ? string | null
  : string

/** The options of {@link DefineWorkflow}. */
export interface WorkflowOptions<
  Events,
  SourceName extends string,
  State extends string,
  EffectType extends string,
  Opens extends 'app' | 'event',
  Destination extends string = string,
> {
  readonly sources: readonly SourceName[]
  readonly initial: NoInfer<State>
  /** Who opens orders: the app (`openOrder` in its checkout; default), or an event that names an unknown id. */
  readonly opens?: Opens | undefined
  readonly states: Readonly<Record<State, StateOptions>>
  readonly transitions: Readonly<Partial<Record<NoInfer<State>, readonly NoInfer<State>[]>>>
  readonly effects: Readonly<Record<EffectType, EffectOptions>>
  /** Where its effects may send, so that a typo is caught here; default: wherever the configuration knows. */
  readonly destinations?: readonly Destination[] | undefined
  /** Default: a hash of states, transitions, types and effects. */
  readonly version?: string | undefined
  readonly compare?: Compare<EventOf<Events, EventNameOf<Events>>> | undefined
  readonly accepts?: Accepts<EventOf<Events, EventNameOf<Events>>> | undefined
  readonly histories?: readonly History[] | undefined
}

/** A workflow to which handlers can be added. Each `on` returns a new one. */
export interface WorkflowBuilder<
  Events,
  State extends string,
  EffectType extends string,
  Subject extends string | null,
  Destination extends string = string,
  Api = unknown,
> extends Workflow {
  /** Handles one type of event, or several alike: the event is then any of them. */
  on<const Type extends EventNameOf<Events>, Evidence = undefined>(
    types: Type | readonly Type[],
    handler: EventHandler<
      EventOf<Events, Type>,
      State,
      EffectType,
      Subject,
      Destination,
      Evidence,
      Api
    >,
  ): WorkflowBuilder<Events, State, EffectType, Subject, Destination, Api>
  /**
   * Follows an object of the provider: each of the types only says "look again", and the order becomes what
   * the object is then. Whatever order its events come in, and whichever are lost, the last look counts.
   */
  mirror<const Type extends EventNameOf<Events>, Current>(
    types: Type | readonly Type[],
    handler: MirrorHandler<
      EventOf<Events, Type>,
      Current,
      State,
      EffectType,
      Subject,
      Destination,
      Api
    >,
  ): WorkflowBuilder<Events, State, EffectType, Subject, Destination, Api>
}

/** The type of `defineWorkflow` for sources with known bodies. */
export interface DefineWorkflow<
  Known extends SourceTypes,
  Apis extends SourceApis = Readonly<Record<never, unknown>>,
> {
  <
    const SourceName extends string,
    const State extends string,
    const EffectType extends string,
    const Opens extends 'app' | 'event' = 'app',
    const Destination extends string = string,
  >(
    name: string,
    options: WorkflowOptions<
      EventsOf<Known, SourceName>,
      SourceName,
      State,
      EffectType,
      Opens,
      Destination
    >,
  ): WorkflowBuilder<
    EventsOf<Known, SourceName>,
    State,
    EffectType,
    SubjectOf<Opens>,
    Destination,
    ApiOf<Apis, SourceName>
  >
}

/**
 * Defines a workflow: states, permitted transitions, declared effects; add what decides with `.on`.
 *
 * @throws HookledgerError HKL_WORKFLOW_INVALID naming what is wrong and the nearest known name.
 */
export const defineUntypedWorkflow: DefineWorkflow<Readonly<Record<never, object>>> = (
  name,
  options,
) => {
  const base = baseOf(name, options as unknown as UntypedOptions)
  return withHandlers(base, new Map(), options.version) as never
}

type UntypedOptions = WorkflowOptions<
  Readonly<Record<string, UntypedBody>>,
  string,
  string,
  string,
  'app' | 'event'
>

type Base = Omit<Workflow, 'handlers' | 'version'>

function withHandlers(
  base: Base,
  handlers: ReadonlyMap<string, AnyHandler>,
  version: string | undefined,
): Workflow {
  const added = (
    verb: 'on' | 'mirror',
    types: string | readonly string[],
    handler: AnyHandler,
  ): Workflow => {
    const list: readonly unknown[] = typeof types === 'string' ? [types] : types
    if (!Array.isArray(list) || list.length === 0)
      invalid(`workflow "${base.name}": ${verb} names no event types`)
    const next = new Map(handlers)
    for (const type of list) {
      if (typeof type !== 'string' || type === '')
        invalid(`workflow "${base.name}": an event type must be a text`)
      if (next.has(type)) invalid(`workflow "${base.name}" handles "${type}" twice`)
      next.set(type, handler)
    }
    return withHandlers(base, next, version)
  }
  return Object.freeze({
    ...base,
    handlers,
    version: version ?? versionOf(base, handlers),
    on(types: string | readonly string[], handler: AnyHandler) {
      checkHandler(base.name, types, handler)
      return added('on', types, handler)
    },
    mirror(types: string | readonly string[], handler: UntypedMirror) {
      checkMirror(base.name, types, handler)
      const { object, fetch, ...rest } = handler
      return added('mirror', types, { ...rest, mirror: { object, fetch } })
    },
  })
}

type UntypedMirror = Omit<AnyHandler, 'mirror' | 'gather'> & MirrorLook

const optionNames = [
  'sources',
  'initial',
  'opens',
  'states',
  'transitions',
  'effects',
  'destinations',
  'version',
  'compare',
  'accepts',
  'histories',
] as const satisfies readonly (keyof UntypedOptions)[]

function baseOf(name: string, options: UntypedOptions): Base {
  checkName('workflow', name)
  const where = `workflow "${name}"`
  checkOptions(where, options, optionNames)
  const states = mapOf<StateOptions>(where, 'state', options.states, ['entitles', 'renamedFrom'])
  const effects = mapOf<EffectOptions>(where, 'effect', options.effects, [
    'apply',
    'reverse',
    'renamedFrom',
  ])
  if (states.size === 0) invalid(`${where} declares no states`)
  if (!Array.isArray(options.sources) || options.sources.length === 0)
    invalid(`${where} names no sources`)
  for (const source of options.sources) checkName('source', source)
  const opens = options.opens ?? 'app'
  if (opens !== 'app' && opens !== 'event') invalid(`${where}: opens must be 'app' or 'event'`)
  for (const part of ['compare', 'accepts'] as const) checkFunction(where, part, options[part])
  if (
    options.version !== undefined &&
    (typeof options.version !== 'string' || options.version === '')
  ) {
    invalid(`${where}: version must be a text`)
  }
  checkKnown(where, 'initial state', options.initial, states)
  return {
    name,
    sources: [...new Set(options.sources)],
    initial: options.initial,
    opens,
    states,
    transitions: transitionsOf(where, options.transitions, states),
    effects,
    destinations: destinationsOf(where, options.destinations),
    compare: options.compare as Compare | undefined,
    accepts: options.accepts as Accepts | undefined,
    histories: historiesOf(where, options.histories),
  }
}

function versionOf(base: Base, handlers: ReadonlyMap<string, AnyHandler>): string {
  return fingerprint([
    [...base.states].map(([state, o]) => `${state}${o.entitles === true ? '+' : ''}`).sort(),
    [...base.transitions].map(([from, to]) => `${from}>${[...to].sort().join(',')}`).sort(),
    [...handlers].map(([type, { mirror }]) => (mirror === undefined ? type : `${type}~`)).sort(),
    [...base.effects.keys()].sort(),
  ])
}
