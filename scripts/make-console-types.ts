/**
 * Writes console/src/api.generated.ts: what each route of the operator API takes and answers, as types, from
 * the same table that the server runs and that openapi.json is made of. With `--check`: only says whether it is
 * current.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { apiRoutes } from '../src/api/routes.ts'

interface Schema {
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly prefixItems?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, Schema>>
}

const file = new URL('../console/src/api.generated.ts', import.meta.url)
const text = render()
if (process.argv.includes('--check')) {
  if (!isCurrent()) {
    console.error(
      'console/src/api.generated.ts is out of date: npx tsx scripts/make-console-types.ts',
    )
    process.exitCode = 1
  }
} else if (!isCurrent()) {
  writeFileSync(file, text)
  console.log(`console/src/api.generated.ts: ${apiRoutes.length} routes`)
}

function isCurrent(): boolean {
  try {
    return readFileSync(file, 'utf8') === text
  } catch {
    return false
  }
}

function render(): string {
  const routes = apiRoutes
    .map(({ method, path, summary, shape }) => ({ name: `${method} ${path}`, summary, shape }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  return [
    '/** Made by scripts/make-console-types.ts from the table of routes. */',
    'export interface Api {',
    ...routes.flatMap(({ name, summary, shape }) => [
      `  /** ${summary.replaceAll('*/', '* /')} */`,
      `  '${name}': {`,
      `    params: ${typeOf(shape.params, 'input', '    ', 'Record<string, never>')}`,
      `    query: ${typeOf(shape.query, 'input', '    ', 'Record<string, never>')}`,
      `    body: ${typeOf(shape.body, 'input', '    ', 'undefined')}`,
      `    answer: ${typeOf(shape.answer, 'output', '    ', 'unknown')}`,
      '  }',
    ]),
    '}',
    '',
  ].join('\n')
}

function typeOf(
  schema: z.ZodType | undefined,
  io: 'input' | 'output',
  pad: string,
  none: string,
): string {
  if (schema === undefined) return none
  const json = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Schema
  return written(json, json, pad, io, 0)
}

function written(
  schema: Schema,
  root: Schema,
  pad: string,
  io: 'input' | 'output',
  depth: number,
): string {
  if (depth > 12) return 'unknown'
  const inner = (each: Schema, inside = pad): string => written(each, root, inside, io, depth + 1)
  if (schema.$ref !== undefined) {
    const name = schema.$ref.replace('#/$defs/', '')
    return schema.$ref === '#' ? 'unknown' : inner(root.$defs?.[name] ?? {})
  }
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return schema.enum.map((each) => JSON.stringify(each)).join(' | ')
  const either = schema.anyOf ?? schema.oneOf
  if (either !== undefined) return [...new Set(either.map((each) => inner(each)))].join(' | ')
  if (schema.allOf !== undefined) return schema.allOf.map((each) => `(${inner(each)})`).join(' & ')
  if (Array.isArray(schema.type)) {
    return schema.type.map((type: string) => inner({ ...schema, type })).join(' | ')
  }
  switch (schema.type) {
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type
    case 'number':
    case 'integer':
      return 'number'
    case 'array':
      return schema.prefixItems === undefined
        ? `readonly (${inner(schema.items ?? {})})[]`
        : `readonly [${schema.prefixItems.map((each) => inner(each)).join(', ')}]`
    case 'object':
      return writtenObject(schema, inner, pad, io)
    default:
      return 'unknown'
  }
}

function writtenObject(
  schema: Schema,
  inner: (schema: Schema, pad?: string) => string,
  pad: string,
  io: 'input' | 'output',
): string {
  const { properties = {}, required = [], additionalProperties } = schema
  const names = Object.keys(properties)
  if (names.length === 0) {
    return typeof additionalProperties === 'object'
      ? `Readonly<Record<string, ${inner(additionalProperties)}>>`
      : 'Record<string, never>'
  }
  const fields = names.map((name) => {
    const key = /^[a-z_]\w*$/i.test(name) ? name : JSON.stringify(name)
    const type = inner(properties[name] ?? {}, `${pad}  `)
    if (required.includes(name)) return `${pad}  readonly ${key}: ${type}`
    return `${pad}  readonly ${key}?: ${type}${io === 'input' ? ' | undefined' : ''}`
  })
  return `{\n${fields.join('\n')}\n${pad}}`
}
