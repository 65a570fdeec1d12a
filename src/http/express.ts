/**
 * The Express mount. It needs the bytes as they came: mount it before any body parser, or give its
 * route `express.raw({ type: () => true })`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { MountOptions } from './node.ts'
import { createNodeHandler } from './node.ts'

/** The part of Express's request that is used. */
export type ExpressRequestLike = IncomingMessage & {
  readonly params?: Readonly<Record<string, string | string[] | undefined>>
}

/** Options of `createExpressHandler`. */
export interface ExpressHandlerOptions extends MountOptions {
  /** The configured name of the source; without it, the route's parameter `source`. */
  readonly source?: string
}

/** A handler for `app.post()`. */
export type ExpressHandler = (request: ExpressRequestLike, response: ServerResponse) => void

/** @example app.post('/webhooks/:source', createExpressHandler({ ingest, limits })) */
export function createExpressHandler(options: ExpressHandlerOptions): ExpressHandler {
  const handle = createNodeHandler({
    ...options,
    source: options.source ?? ((request) => sourceParameter(request as ExpressRequestLike)),
  })
  return (request, response) => {
    void handle(request, response)
  }
}

function sourceParameter(request: ExpressRequestLike): string | undefined {
  const parameter = request.params?.source
  return typeof parameter === 'string' ? parameter : undefined
}
