/** The OpenAPI document, made from the very table of routes that the server runs. */
import { z } from 'zod'
import { csrfHeader } from './cross-site.ts'
import type { ApiRoute } from './route.ts'

/** A document of OpenAPI 3.1. */
export type OpenApiDocument = Readonly<Record<string, unknown>>

/** The document; `prefix` is where the API is mounted. */
export function openApi(routes: readonly ApiRoute[], prefix: string): OpenApiDocument {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes)
    (paths[`/api${route.path}`] ??= {})[route.method.toLowerCase()] = operation(route)
  return {
    openapi: '3.1.0',
    info: {
      title: 'Hookledger operator API',
      version: '1',
      description:
        'What the console uses. Amounts and other numbers that may pass 2^53 are texts of digits; lists are paged by the `next` of the page before.',
    },
    servers: [{ url: prefix === '' ? '/' : prefix }],
    paths,
    components: { schemas: { Problem: problem } },
  }
}

const problem = {
  type: 'object',
  required: ['error'],
  additionalProperties: false,
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      additionalProperties: false,
      properties: {
        code: { type: 'string', pattern: '^HKL_[A-Z_]+$' },
        message: { type: 'string', description: 'What to do next.' },
      },
    },
  },
}

function operation(route: ApiRoute): Record<string, unknown> {
  const { shape } = route
  const parameters = [
    ...parametersOf(shape.params, 'path'),
    ...parametersOf(shape.query, 'query'),
    ...(route.method === 'POST'
      ? [{ name: csrfHeader, in: 'header', required: true, schema: { type: 'string' } }]
      : []),
  ]
  return {
    operationId: operationId(route),
    summary: route.summary,
    'x-permission': route.permission,
    ...(parameters.length > 0 && { parameters }),
    ...(shape.body !== undefined && {
      requestBody: { required: true, content: json(schemaOf(shape.body, 'input')) },
    }),
    responses: {
      200: {
        description: 'The answer.',
        content:
          route.answers === undefined
            ? json(schemaOf(shape.answer, 'output'))
            : { [route.answers]: { schema: { type: 'string' } } },
      },
      default: {
        description: 'A problem, with a code and what to do next.',
        content: json({ $ref: '#/components/schemas/Problem' }),
      },
    },
  }
}

function operationId({ method, path }: ApiRoute): string {
  const words = path.split(/[^a-z0-9]+/i).filter((word) => word !== '')
  return [method.toLowerCase(), ...words].join('_')
}

function json(schema: unknown): Record<string, unknown> {
  return { 'application/json': { schema } }
}

function parametersOf(schema: z.ZodObject | undefined, where: 'path' | 'query'): unknown[] {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = schemaOf(schema, 'input') as {
    readonly properties?: Readonly<Record<string, unknown>>
    readonly required?: readonly string[]
  }
  return Object.entries(properties).map(([name, each]) => ({
    name,
    in: where,
    required: where === 'path' || required.includes(name),
    schema: each,
  }))
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return rest
}
