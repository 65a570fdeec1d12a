import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import Stripe from 'stripe'

/** A receiver that checks every signature with the official SDK and remembers what came. */
export interface WebhookReceiver extends AsyncDisposable {
  url: string
  /** Every delivery with a good signature, in the order of arrival, refused ones included. */
  received: Stripe.Event[]
  badSignatures: number
}

export async function receiveWebhooks(
  secret: string,
  answer: (event: Stripe.Event, response: ServerResponse) => void = (_, response) =>
    response.writeHead(200).end('{}'),
): Promise<WebhookReceiver> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      try {
        const event = Stripe.webhooks.constructEvent(
          Buffer.concat(chunks),
          String(request.headers['stripe-signature']),
          secret,
        )
        receiver.received.push(event)
        answer(event, response)
      } catch {
        receiver.badSignatures++
        response.writeHead(400).end()
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const receiver: WebhookReceiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks/stripe`,
    received: [],
    badSignatures: 0,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return receiver
}
