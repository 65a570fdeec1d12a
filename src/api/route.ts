/**
 * One route of the operator API: what it asks for, what may be sent, what comes back, and who may. The
 * server, the OpenAPI document and the tests read the same table, so that none of them can know another one.
 */
import type { z } from 'zod'
import type { HookledgerParts } from '../compose/parts.ts'
import type { Database } from '../postgres/executor.ts'
import type { Identity, Permission } from './access.ts'
import type { Door, Visitor } from './door.ts'

/** What a handler is given beside its input. */
export interface ApiContext {
  readonly parts: HookledgerParts
  readonly db: Database
  /** Whoever asks; of a `public` route perhaps nobody, with no role at all. */
  readonly identity: Identity
  readonly visitor: Visitor
  readonly door: Door
  readonly request: Request
}

/** What a route takes and answers; every object is strict: an unknown key is refused. */
export interface RouteShape {
  readonly params?: z.ZodObject
  readonly query?: z.ZodObject
  /** JSON; of POST only. */
  readonly body?: z.ZodType
  readonly answer: z.ZodType
}

type Parsed<Schema> = Schema extends z.ZodType ? z.output<Schema> : Record<string, never>

/** A handler's input: parsed, with nothing that its schemas do not name. */
export interface RouteInput<Shape extends RouteShape> {
  readonly params: Parsed<Shape['params']>
  readonly query: Parsed<Shape['query']>
  readonly body: Shape extends { readonly body: infer Body } ? Parsed<Body> : undefined
}

/** A route as it is written. */
export interface RouteDefinition<Shape extends RouteShape> {
  readonly method: 'GET' | 'POST'
  /** Below `/api`, with `{name}` for parameters: `/orders/{order_id}`. */
  readonly path: `/${string}`
  readonly permission: Permission
  /** One line for the OpenAPI document. */
  readonly summary: string
  /** The content type, where it is not JSON. */
  readonly answers?: string
  readonly shape: Shape
  /**
   * Answers the data, or a whole response where it is no JSON. That the data is what `answer` says is held by
   * the tests, which validate every answer against the OpenAPI document.
   */
  handle(context: ApiContext, input: RouteInput<Shape>): Promise<object>
}

/** A route as the server and the tests see it. */
export type ApiRoute = Omit<RouteDefinition<RouteShape>, 'handle'> & {
  handle(context: ApiContext, input: unknown): Promise<unknown>
}

/** Checks the types of a route. */
export function defineRoute<Shape extends RouteShape>(route: RouteDefinition<Shape>): ApiRoute {
  return route as unknown as ApiRoute
}
