/**
 * The provider's API in a drill, as far as a history says what is there: objects by their ids, and the events that were
 * made. It answers as Stripe does, pages as Stripe does, and fails as it is told to.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { History } from '../../workflow/workflow.ts'
import { closeServer } from './destination-double.ts'

/** How the API fails: an error of its own, too many requests, or a connection that is cut. */
export type ProviderFault = 'error' | 'limit' | 'drop'

/** A double of Stripe's API. */
export interface ProviderDouble {
  readonly url: string
  /** How many requests came since the last `play`. */
  readonly requests: number
  /** From now on it knows this history, and these of its events have been made. */
  play(history: History, events: readonly object[]): void
  /** The next requests fail so, one each. */
  fail(faults: readonly ProviderFault[]): void
  close(): Promise<void>
}

type Fields = Readonly<Record<string, unknown>>

interface State {
  objects: Map<string, object | null>
  events: readonly Fields[]
  faults: ProviderFault[]
  requests: number
}

/** Starts it on a free port. */
export async function startProviderDouble(): Promise<ProviderDouble> {
  const state: State = { objects: new Map(), events: [], faults: [], requests: 0 }
  const server = createServer((request, response) => {
    request.resume()
    answer(state, new URL(request.url ?? '/', 'http://localhost'), response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get requests() {
      return state.requests
    },
    play(history, events) {
      state.objects = objectsOf(history)
      state.events = events as readonly Fields[]
      state.faults = []
      state.requests = 0
    },
    fail: (faults) => void state.faults.push(...faults),
    close: () => closeServer(server),
  }
}

/** Every object that a history shows, as it is at its end; null where it says that it is gone. */
function objectsOf(history: History): Map<string, object | null> {
  const objects = new Map<string, object | null>()
  for (const event of history.events) {
    const object = ((event as Fields)['data'] as Fields | undefined)?.['object'] as
      Fields | undefined
    if (typeof object?.['id'] === 'string') objects.set(object['id'], object)
  }
  for (const [name, object] of Object.entries(history.present ?? {}))
    objects.set(name.slice(name.indexOf(' ') + 1), object)
  return objects
}

function answer(state: State, url: URL, response: ServerResponse): void {
  state.requests += 1
  const fault = state.faults.shift()
  if (fault === 'drop') return void response.destroy()
  if (fault === 'error') return error(response, 500, 'api_error', 'something went wrong')
  if (fault === 'limit') return error(response, 429, 'rate_limit_error', 'too many requests')
  const [, kind, id] = url.pathname.replace('/checkout/', '/checkout.').slice(1).split('/')
  if (id === undefined) return json(response, 200, listOf(state, kind ?? '', url.searchParams))
  const object =
    kind === 'events' ? state.events.find((each) => each['id'] === id) : state.objects.get(id)
  if (object === undefined || object === null)
    return error(response, 404, 'invalid_request_error', `No such ${kind}: '${id}'`)
  json(response, 200, object)
}

/** The events that have been made, newest first; of other kinds the history has no lists. */
function listOf(state: State, kind: string, asked: URLSearchParams): object {
  const number = (name: string): number | null => (asked.has(name) ? Number(asked.get(name)) : null)
  const types = [...asked].flatMap(([name, value]) =>
    /^types(\[\d*\])?$/.test(name) || name === 'type' ? [value] : [],
  )
  const from = number('created[gte]')
  const to = number('created[lte]')
  const before = number('created[lt]')
  const all = (kind === 'events' ? [...state.events].reverse() : []).filter((event) => {
    const created = Number(event['created'])
    return (
      (from === null || created >= from) &&
      (to === null || created <= to) &&
      (before === null || created < before) &&
      (types.length === 0 || types.includes(String(event['type'])))
    )
  })
  const after = asked.get('starting_after')
  const start = after === null ? 0 : all.findIndex((event) => event['id'] === after) + 1
  const limit = Number(asked.get('limit') ?? '10')
  return {
    object: 'list',
    url: `/v1/${kind}`,
    has_more: start + limit < all.length,
    data: all.slice(start, start + limit),
  }
}

function error(response: ServerResponse, status: number, type: string, message: string): void {
  const code = status === 404 ? { code: 'resource_missing', param: 'id' } : {}
  json(response, status, { error: { type, message, ...code } })
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'request-id': 'req_drill' })
  response.end(JSON.stringify(body))
}
