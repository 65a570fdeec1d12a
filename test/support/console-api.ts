/**
 * The operator API as its tests use it: the mounted console, asked as its page asks it. Every answer, also a
 * refusal, is held to the OpenAPI document that the very same server gives out.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { Hookledger } from 'hookledger'
import type { Identity, Role } from '../../src/compose/console-options.ts'
import { createConsole, type Console } from '../../src/server/console/console.ts'

/** One answer. */
export interface ApiAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The parsed answer; undefined where it is no JSON. */
  readonly data: unknown
  /** The code of a problem; null where there is none. */
  readonly code: string | null
}

/** What a request may carry; what is left out is as the page sends it. */
export interface AskOptions {
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** Null: without this header. */
  readonly headers?: Readonly<Record<string, string | null>>
}

/** The API of one console. */
export interface TestApi {
  readonly console: Console
  /** The document of `/api/openapi.json`. */
  readonly document: OpenApiDocument
  /** The data of a GET. @throws where the answer is a problem, or not as documented */
  get<Data = unknown>(path: string, query?: Readonly<Record<string, string>>): Promise<Data>
  /** Acts as the page does. @throws where the answer is a problem, or not as documented */
  post<Data = unknown>(path: string, body?: unknown): Promise<Data>
  /** Any answer. @throws where it is not as documented */
  ask(method: string, path: string, options?: AskOptions): Promise<ApiAnswer>
  /** The same console, asked by somebody else; null: by nobody. */
  as(identity: Identity | Role | null): TestApi
}

/** What the tests read of an OpenAPI document. */
export interface OpenApiDocument {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>
}

/** What the tests read of an operation. */
export interface OpenApiOperation {
  readonly operationId: string
  readonly summary: string
  readonly 'x-permission': string
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: unknown
  readonly responses: Readonly<
    Record<string, { readonly content: Readonly<Record<string, { readonly schema: object }>> }>
  >
}

/** A host that the page would be loaded from. */
const origin = 'https://ops.test'

/** Who asks is carried by a header that only this harness gives a meaning to. */
const askedBy = 'x-test-asked-by'

/** A console over a Hookledger; asked by an admin unless something else is said. */
export async function startApi(
  hookledger: Hookledger,
  { identity = 'admin', prefix = '' }: { identity?: Identity | Role | null; prefix?: string } = {},
): Promise<TestApi> {
  const mounted = createConsole(hookledger, {
    prefix,
    authorize: (request) => {
      const given = request.headers.get(askedBy)
      return given === null ? null : (JSON.parse(given) as Identity)
    },
  })
  const response = await mounted.fetch(new Request(`${origin}${prefix}/api/openapi.json`))
  const document = (await response.json()) as OpenApiDocument
  return client({ console: mounted, document, prefix, check: answerChecker(document) }, identity)
}

/** Whoever has this role alone. */
export function identityOf(given: Identity | Role | null): Identity | null {
  return typeof given === 'string' ? { actor: `${given}@example.com`, roles: [given] } : given
}

interface Mounted {
  readonly console: Console
  readonly document: OpenApiDocument
  readonly prefix: string
  readonly check: (method: string, path: string, answer: ApiAnswer) => void
}

function client(mounted: Mounted, given: Identity | Role | null): TestApi {
  const identity = identityOf(given)
  const { prefix, check } = mounted
  const who = identity === null ? {} : { [askedBy]: JSON.stringify(identity) }
  let csrf: Promise<string | null> | undefined

  const send = async (method: string, path: string, options: AskOptions): Promise<ApiAnswer> => {
    const url = new URL(`${origin}${prefix}/api${path}`)
    for (const [name, value] of Object.entries(options.query ?? {}))
      url.searchParams.append(name, value)
    const headers = new Headers(who)
    if (method === 'POST') {
      headers.set('content-type', 'application/json')
      headers.set('origin', origin)
      headers.set('sec-fetch-site', 'same-origin')
      csrf ??= tokenOf(mounted, who)
      headers.set('x-hookledger-csrf', (await csrf) ?? 'nobody')
    }
    for (const [name, value] of Object.entries(options.headers ?? {})) {
      if (value === null) headers.delete(name)
      else headers.set(name, value)
    }
    const { body } = options
    const request = new Request(url, {
      method,
      headers,
      ...(method === 'POST' && {
        body: typeof body === 'string' ? body : JSON.stringify(body ?? {}),
      }),
    })
    const answer = await read(await mounted.console.fetch(request))
    check(method, url.pathname.slice(prefix.length), answer)
    return answer
  }

  const must = async (method: string, path: string, options: AskOptions): Promise<unknown> => {
    const answer = await send(method, path, options)
    if (answer.status === 200) return answer.data ?? answer.text
    throw new Error(`${method} ${path} was answered ${answer.status}: ${answer.text}`)
  }

  return {
    console: mounted.console,
    document: mounted.document,
    get: async <Data>(path: string, query?: Readonly<Record<string, string>>) =>
      (await must('GET', path, query === undefined ? {} : { query })) as Data,
    post: async <Data>(path: string, body?: unknown) =>
      (await must('POST', path, { body })) as Data,
    ask: (method, path, options = {}) => send(method, path, options),
    as: (other) => client(mounted, other),
  }
}

async function tokenOf(
  { console: mounted, prefix }: Mounted,
  who: Readonly<Record<string, string>>,
): Promise<string | null> {
  const request = new Request(`${origin}${prefix}/api/session`, { headers: who })
  const { csrf } = (await (await mounted.fetch(request)).json()) as { csrf: string | null }
  return csrf
}

async function read(response: Response): Promise<ApiAnswer> {
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  const data: unknown = isJson ? JSON.parse(text) : undefined
  const code = (data as { error?: { code?: string } } | undefined)?.error?.code ?? null
  const { status, headers } = response
  return { status, headers, text, data, code }
}

/** A check that throws where an answer is not what the document says of its path and method. */
export function answerChecker(document: OpenApiDocument): Mounted['check'] {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/)
  for (const format of ['email', 'uri', 'uuid', 'int64', 'int32', 'double', 'byte'])
    ajv.addFormat(format, true)
  ajv.addSchema({ $id: 'document', ...document }, 'document')
  const compiled = new Map<string, ValidateFunction>()
  const paths = Object.keys(document.paths)
    // a path without a parameter before one that has it
    .sort((one, other) => one.split('{').length - other.split('{').length)
    .map((path) => ({ path, pattern: patternOf(path) }))
  return (method, path, answer) => {
    const found = paths.find(({ pattern }) => pattern.test(path))?.path
    const operation =
      found === undefined ? undefined : document.paths[found]?.[method.toLowerCase()]
    const isProblem = answer.status !== 200
    if (operation === undefined && !isProblem)
      throw new Error(`${method} ${path} answered ${answer.status}, and is in no document`)
    if (found === undefined || operation === undefined || isProblem) {
      const pointer = 'document#/components/schemas/Problem'
      hold(ajv, compiled, pointer, `${method} ${path} (${answer.status})`, answer.data)
      return
    }
    const content = operation.responses['200']?.content ?? {}
    const type = answer.headers.get('content-type')?.split(';')[0] ?? ''
    if (content[type] === undefined)
      throw new Error(`${method} ${path} answered ${type}, documented: ${Object.keys(content)}`)
    if (type !== 'application/json') return
    const pointer = `document#${['paths', found, method.toLowerCase(), 'responses', '200', 'content', type, 'schema'].map((each) => `/${encodeURIComponent(each.replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('')}`
    hold(ajv, compiled, pointer, `${method} ${path}`, answer.data)
  }
}

function hold(
  ajv: Ajv2020,
  compiled: Map<string, ValidateFunction>,
  pointer: string,
  what: string,
  data: unknown,
): void {
  const validate = compiled.get(pointer) ?? ajv.compile({ $ref: pointer })
  compiled.set(pointer, validate)
  if (validate(data)) return
  const problems = (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  )
  throw new Error(`${what} is not as documented: ${problems.slice(0, 8).join('; ')}`)
}

function patternOf(path: string): RegExp {
  const parts = path.split(/\{\w+\}/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('[^/]+')}$`)
}
