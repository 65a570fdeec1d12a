/**
 * The client of the JSON API, and the only place that talks to the server. Its types are generated from the
 * table of routes (scripts/make-console-types.ts writes api.generated.ts; `npm run generated` checks that it is
 * current), so a page that asks for what the API does not answer does not compile.
 *
 * Answers are read exactly (exact-json.ts); every failure is a `Problem` with a code and what to do next.
 */
import type { Api } from './api.generated.ts'
import { parseAnswer } from './exact-json.ts'
import { fillPath, queryText } from './paths.ts'
import { problemOf, unreachable } from './problem.ts'

/** A route by its method and path: `GET /orders/{order_id}`. */
export type RouteName = keyof Api & string
/** What is read. */
export type GetName = Extract<RouteName, `GET ${string}`>
/** What is done. */
export type PostName = Extract<RouteName, `POST ${string}`>
/** What a route answers. */
export type Answer<Name extends RouteName> = Api[Name]['answer']
/** What a page of a list holds. */
export type ItemOf<Name extends RouteName> =
  Answer<Name> extends { readonly items: readonly (infer Item)[] } ? Item : never

type Given<
  Name extends RouteName,
  Part extends 'params' | 'query' | 'body',
> = Api[Name][Part] extends Record<string, never> | undefined
  ? { readonly [Key in Part]?: undefined }
  : Part extends 'query'
    ? { readonly query?: Partial<Api[Name]['query']> }
    : { readonly [Key in Part]: Api[Name][Part] }

/** What a route takes, beside its name. */
export type Input<Name extends RouteName> = Given<Name, 'params'> &
  Given<Name, 'query'> &
  Given<Name, 'body'>

/** Where the page is mounted: '' at the root of a host, `/ops` below a prefix. */
export const prefix: string = prefixOfPage()

/** The base of the page's own addresses. */
export const consoleBase = `${prefix}/console`

let csrfToken = ''

/** The token that every act carries; the session tells it. */
export function setCsrfToken(token: string): void {
  csrfToken = token
}

/** The address of a route, for a link to a download. */
export function addressOf<Name extends GetName>(name: Name, input: Input<Name>): string {
  const { params, query } = input as LooseInput
  return `${prefix}/api${fillPath(name.slice('GET '.length), params ?? {})}${queryText(query ?? {})}`
}

/** Reads. @throws Problem */
export async function get<Name extends GetName>(
  name: Name,
  input: Input<Name>,
  signal?: AbortSignal,
): Promise<Answer<Name>> {
  return (await send(addressOf(name, input), { signal: signal ?? null })) as Answer<Name>
}

/** Acts. @throws Problem */
export async function post<Name extends PostName>(
  name: Name,
  input: Input<Name>,
): Promise<Answer<Name>> {
  const { params, body } = input as LooseInput
  return (await send(`${prefix}/api${fillPath(name.slice('POST '.length), params ?? {})}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-hookledger-csrf': csrfToken },
    body: JSON.stringify(body ?? {}),
  })) as Answer<Name>
}

interface LooseInput {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | boolean | null | undefined>>
  readonly body?: unknown
}

async function send(address: string, init: RequestInit): Promise<unknown> {
  let response: Response
  let text: string
  try {
    response = await fetch(address, {
      ...init,
      credentials: 'same-origin',
      redirect: 'error',
      cache: 'no-store',
    })
    text = await response.text()
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw unreachable()
  }
  const answer = readAnswer(text)
  if (!response.ok || answer === undefined) throw problemOf(response.status, answer)
  return answer
}

function readAnswer(text: string): unknown {
  try {
    return parseAnswer(text)
  } catch {
    return undefined
  }
}

function prefixOfPage(): string {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="hookledger-prefix"]')
  const content = meta?.content ?? ''
  // the token itself stands there when vite serves the page by itself
  return content.startsWith('/__') ? '' : content.replace(/\/+$/, '')
}
