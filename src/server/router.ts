/**
 * Which request goes where. Paths match exactly, byte for byte; a target that is not a plain path, or
 * a head that two parsers could read differently, is refused before any route sees it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** Where a request goes. */
export type Route =
  | { readonly kind: 'webhook'; readonly source: string }
  | { readonly kind: 'health' | 'ready' | 'metrics' }
  | { readonly kind: 'other'; readonly path: string }
  | { readonly kind: 'malformed' }

/** Takes what no built-in route takes; false leaves it to 404. For the console and its API. */
export type ExtraRoutes = (
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
) => boolean

const webhookPath = /^\/webhooks\/([A-Za-z0-9_.~-]{1,100})$/

/** Finds the route of a request's target (`request.url`); a query is ignored. */
export function routeOf(target: string): Route {
  // an absolute target names another host, which a proxy before us may have understood differently
  if (!target.startsWith('/')) return { kind: 'malformed' }
  const query = target.indexOf('?')
  const path = query === -1 ? target : target.slice(0, query)
  if (path === '/healthz') return { kind: 'health' }
  if (path === '/readyz') return { kind: 'ready' }
  if (path === '/metrics') return { kind: 'metrics' }
  const source = webhookPath.exec(path)?.[1]
  return source === undefined ? { kind: 'other', path } : { kind: 'webhook', source }
}
