/**
 * The shop's own route: `POST /orders` opens an order in the shop's transaction, beside whatever else a
 * checkout writes. Opening it again answers what was found.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { money, type Hookledger, type OpenOrderResult, type TransactionLike } from 'hookledger'
import { licensePrice } from './prices.ts'

/** What the route needs of whoever serves it. */
export interface RouteContext {
  readonly hookledger: Hookledger
  /** Runs work in one transaction of the shop's database. */
  readonly transaction: <T>(work: (tx: TransactionLike) => Promise<T>) => Promise<T>
}

/** Serves the shop's routes; false for any other path. */
export function routes(
  context: RouteContext,
): (request: IncomingMessage, response: ServerResponse, path: string) => boolean {
  return (request, response, path) => {
    if (path !== '/orders') return false
    void answer(context, request, response)
    return true
  }
}

async function answer(
  context: RouteContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    if (request.method !== 'POST')
      return send(response, 405, {
        error: 'POST an order: {"id": "1001", "email": "ada@example.com"}',
      })
    const body = await readJson(request)
    const order = orderOf(body)
    if (typeof order === 'string') return send(response, 400, { error: order })
    const result: OpenOrderResult = await context.transaction((tx) =>
      context.hookledger.openOrder(tx, order),
    )
    send(response, result === 'created' ? 201 : result === 'existed' ? 200 : 409, {
      id: order.id,
      result,
    })
  } catch (error) {
    const known =
      error instanceof Error && 'code' in error && error.code === 'HKL_LEDGER_ORDER_INVALID'
    send(response, known ? 400 : 503, {
      error: known ? error.message : 'the order could not be opened, try again',
    })
  }
}

type Order = Parameters<Hookledger['openOrder']>[1]

/** The order that a body asks for, or what is wrong with it. */
function orderOf(body: unknown): Order | string {
  if (typeof body !== 'object' || body === null) return 'the body must be a JSON object'
  const fields = body as Readonly<Record<string, unknown>>
  const id = fields['id'] ?? fields['order_id']
  if ((typeof id !== 'string' && typeof id !== 'number') || id === '') return 'id is missing'
  const email = fields['email']
  const subject =
    fields['subject'] ??
    (typeof email === 'string' && email !== '' ? `email:${email.toLowerCase()}` : undefined)
  if (subject !== undefined && typeof subject !== 'string')
    return 'subject must be a text such as email:ada@example.com'
  const amount = fields['amount'] ?? licensePrice.amount
  const currency = fields['currency'] ?? licensePrice.currency
  if (typeof amount !== 'bigint' && typeof amount !== 'number' && typeof amount !== 'string')
    return 'amount must be in minor units'
  if (typeof currency !== 'string') return 'currency must be an ISO code'
  try {
    return { id: String(id), workflow: 'license', subject, expected: money(amount, currency) }
  } catch (error) {
    return error instanceof Error ? error.message : 'the amount is not valid'
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > 64 * 1024) return null
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown
  } catch {
    return null
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(`${JSON.stringify(body)}\n`)
}
