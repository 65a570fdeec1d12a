/**
 * The operator API: requests in, answers out. Deny by default: what is no route, has no right, or came from
 * another page never reaches a handler. Nothing of an answer is kept by anybody.
 */
import { randomUUID } from 'node:crypto'
import { Hono } from 'hono'
import type { z } from 'zod'
import type { HookledgerParts } from '../compose/parts.ts'
import { HookledgerError } from '../core/errors.ts'
import { toJson } from '../core/json.ts'
import { describeDatabaseError } from '../postgres/sqlstate.ts'
import { may, type Identity } from './access.ts'
import { requireOwnPage, WrongContentType } from './cross-site.ts'
import type { Door, Visitor } from './door.ts'
import { problemOf, problemResponse } from './problem.ts'
import type { ApiContext, ApiRoute } from './route.ts'

/** What the API is made of. */
export interface ApiOptions {
  readonly parts: HookledgerParts
  readonly door: Door
  readonly routes: readonly ApiRoute[]
}

/** Answers one request; its path is below the prefix: `/api/orders`. Never rejects. */
export type Api = (request: Request) => Promise<Response>

/** Bodies of acts are small: a reason, a filter, a list of ids. */
const maxBodyBytes = 64 * 1024

/** What every answer of the API carries. */
const always: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

const nobody: Identity = Object.freeze({ actor: '', roles: Object.freeze([]) })

/** Creates the API. */
export function createApi(options: ApiOptions): Api {
  const app = new Hono({ strict: true })
  const byPath = new Map<string, ApiRoute[]>()
  for (const route of options.routes) {
    byPath.set(route.path, [...(byPath.get(route.path) ?? []), route])
    app.on(route.method, `/api${honoPath(route.path)}`, ({ req }) =>
      answer(options, route, req.raw, req.param()),
    )
  }
  for (const [path, routes] of byPath) {
    const allow = routes.map(({ method }) => method).join(', ')
    app.all(`/api${honoPath(path)}`, () => {
      const message = `this path answers ${allow} only`
      return problemResponse({ status: 405, code: 'HKL_API_UNKNOWN_ROUTE', message }, { allow })
    })
  }
  app.notFound(() => problemResponse(unknownRoute))
  app.onError((error) => problemResponse(problemOf(error)))
  return async (request) => {
    const response = await app.fetch(request)
    for (const [name, value] of Object.entries(always))
      if (!response.headers.has(name)) response.headers.set(name, value)
    return response
  }
}

const unknownRoute = {
  status: 404,
  code: 'HKL_API_UNKNOWN_ROUTE',
  message: 'there is no such path: see /api/openapi.json',
} as const

async function answer(
  { parts, door }: ApiOptions,
  route: ApiRoute,
  request: Request,
  params: Readonly<Record<string, string>>,
): Promise<Response> {
  try {
    const visitor = await door.visitor(request)
    requireRight(route, visitor)
    if (route.method === 'POST') requireOwnPage(request, door, visitor)
    const input = await readInput(route, request, params)
    const context: ApiContext = {
      parts,
      db: parts.database(),
      identity: visitor.identity ?? nobody,
      visitor,
      door,
      request,
    }
    const data = await route.handle(context, input)
    if (data instanceof Response) return data
    return new Response(toJson(data), {
      headers: { 'content-type': 'application/json; charset=utf-8' },
    })
  } catch (error) {
    return failed(parts, route, error)
  }
}

function failed(parts: HookledgerParts, route: ApiRoute, error: unknown): Response {
  const problem = problemOf(error)
  if (error instanceof WrongContentType) return problemResponse({ ...problem, status: 415 })
  if (error instanceof TooLarge) return problemResponse({ ...problem, status: 413 })
  if (!problem.isUnexpected) return problemResponse(problem)
  const requestId = randomUUID()
  parts.signals.emit('api.request.failed', {
    requestId,
    route: `${route.method} ${route.path}`,
    message: describeDatabaseError(error),
  })
  return problemResponse(problem, { 'x-request-id': requestId })
}

function requireRight(route: ApiRoute, { identity }: Visitor): void {
  if (may(identity, route.permission)) return
  if (identity === null)
    throw new HookledgerError(
      'HKL_API_NOT_SIGNED_IN',
      'sign in: nobody is, or the session has ended',
    )
  throw new HookledgerError(
    'HKL_API_FORBIDDEN',
    `none of your roles (${identity.roles.join(', ') || 'none'}) may ${route.permission}`,
  )
}

async function readInput(
  { shape, method }: ApiRoute,
  request: Request,
  params: Readonly<Record<string, string>>,
): Promise<unknown> {
  const given = queryOf(new URL(request.url).searchParams)
  const query = shape.query === undefined ? nothing(given, 'query') : parsed(shape.query, given)
  const body = method === 'POST' ? await readBody(request) : undefined
  return {
    params: shape.params === undefined ? {} : parsed(shape.params, params),
    query,
    body: shape.body === undefined ? undefined : parsed(shape.body, body),
  }
}

/** A name that came twice is refused: two readers could take it for two different filters. */
function queryOf(search: URLSearchParams): Record<string, string> {
  const query = new Map<string, string>()
  for (const [name, value] of search) {
    if (query.has(name)) throw invalid(`"${name.slice(0, 60)}" was given twice`)
    // an empty field of a form is no filter
    if (value !== '') query.set(name, value)
  }
  return Object.fromEntries(query)
}

function nothing(given: Readonly<Record<string, string>>, what: string): Record<string, never> {
  const [first] = Object.keys(given)
  if (first !== undefined) throw invalid(`unknown ${what} "${first.slice(0, 60)}"`)
  return {}
}

class TooLarge extends HookledgerError {
  constructor() {
    super('HKL_API_INPUT_INVALID', `the body is larger than ${maxBodyBytes} bytes`)
  }
}

async function readBody(request: Request): Promise<unknown> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBodyBytes) throw new TooLarge()
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of request.body ?? []) {
    bytes += (chunk as Uint8Array).byteLength
    if (bytes > maxBodyBytes) throw new TooLarge()
    chunks.push(chunk as Uint8Array)
  }
  if (bytes === 0) return {}
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)))
  } catch {
    throw invalid('the body is no JSON')
  }
}

function parsed(schema: z.ZodType, value: unknown): unknown {
  const { success, data, error } = schema.safeParse(value)
  if (success) return data
  const [issue] = error.issues
  const path = issue?.path.join('.') ?? ''
  throw invalid(`${path === '' ? '' : `${path}: `}${issue?.message ?? 'not valid'}`)
}

function invalid(what: string): HookledgerError {
  return new HookledgerError('HKL_API_INPUT_INVALID', what)
}

/** `/orders/{order_id}` → `/orders/:order_id`. */
function honoPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}
