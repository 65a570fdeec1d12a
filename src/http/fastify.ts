/**
 * The Fastify mount: a plugin with one route, in a scope of its own in which bodies are left unread,
 * so that the parsers of the rest of the app neither see these bytes nor change them.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { MountOptions } from './node.ts'
import { createNodeHandler } from './node.ts'

/** The part of Fastify's request that is used. */
export interface FastifyRequestLike {
  readonly raw: IncomingMessage
  readonly params: unknown
}

/** The part of Fastify's reply that is used. */
export interface FastifyReplyLike {
  readonly raw: ServerResponse
  hijack(): unknown
}

/** The part of a Fastify instance that is used. */
export interface FastifyLike {
  removeAllContentTypeParsers(): unknown
  addContentTypeParser(
    contentType: string,
    parser: (
      request: FastifyRequestLike,
      payload: IncomingMessage,
      done: (error: Error | null, body?: unknown) => void,
    ) => void,
  ): unknown
  post(
    path: string,
    handler: (request: FastifyRequestLike, reply: FastifyReplyLike) => unknown,
  ): unknown
}

/** Options of `createFastifyPlugin`. */
export interface FastifyPluginOptions extends MountOptions {
  /** The route. Default `/webhooks/:source`. */
  readonly path?: string
  /** The configured name of the source; without it, the route's parameter `source`. */
  readonly source?: string
}

/** A plugin for `fastify.register()`. */
export type FastifyPlugin = (instance: FastifyLike) => Promise<void>

/** @example await fastify.register(createFastifyPlugin({ ingest, limits })) */
export function createFastifyPlugin(options: FastifyPluginOptions): FastifyPlugin {
  return (instance) => {
    instance.removeAllContentTypeParsers()
    instance.addContentTypeParser('*', (_request, _payload, done) => {
      done(null)
    })
    instance.post(options.path ?? '/webhooks/:source', (request, reply) => {
      reply.hijack()
      const source = options.source ?? sourceParameter(request.params)
      return createNodeHandler({ ...options, source })(request.raw, reply.raw)
    })
    return Promise.resolve()
  }
}

function sourceParameter(params: unknown): string {
  if (typeof params !== 'object' || params === null || !('source' in params)) return ''
  return typeof params.source === 'string' ? params.source : ''
}
