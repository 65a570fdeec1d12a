import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import Stripe from 'stripe'
import { afterEach, describe, expect, test } from 'vitest'
import { createStripeDouble } from '../../../src/testing/stripe-double/stripe-double.ts'
import {
  createWebhookSender,
  deliverEvents,
  type WebhookSender,
  type WebhookSenderOptions,
} from '../../../src/testing/stripe-double/webhook-sender.ts'
import { paidSession } from './stripe-client.ts'

const closers: (() => Promise<unknown> | void)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Received {
  body: string
  signature: string
}

async function receiver(answer: (request: Received, response: ServerResponse) => void) {
  const received: Received[] = []
  const sockets = new Set<Socket>()
  const server = createServer((request: IncomingMessage, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const one = {
        body: Buffer.concat(chunks).toString('utf8'),
        signature: String(request.headers['stripe-signature']),
      }
      received.push(one)
      answer(one, response)
    })
  })
  server.on('connection', (socket: Socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(
    () =>
      new Promise((resolve) => {
        server.close(resolve)
        server.closeAllConnections()
      }),
  )
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/webhooks/stripe`, received, sockets }
}

const accept = (_: Received, response: ServerResponse) => response.writeHead(200).end('{}')

function newDouble() {
  return createStripeDouble({ signingSecret: 'whsec_test', seed: 'sender' })
}

function newSender(url: string, options: Partial<WebhookSenderOptions> = {}): WebhookSender {
  const sender = createWebhookSender({
    url,
    signingSecret: 'whsec_test',
    firstRetryMs: 10,
    ...options,
  })
  closers.push(() => sender.close())
  return sender
}

describe('send', () => {
  test('the official SDK accepts what is delivered, with either secret of a rotation', async () => {
    const { url, received } = await receiver(accept)
    const double = newDouble()
    const sender = newSender(url, { signingSecret: ['whsec_old', 'whsec_new'] })
    const { events } = double.hold(() => paidSession(double))
    for (const event of events) expect(await sender.send(event)).toBe('acknowledged')

    expect(received).toHaveLength(events.length)
    for (const secret of ['whsec_old', 'whsec_new']) {
      for (const [at, { body, signature }] of received.entries()) {
        expect(Stripe.webhooks.constructEvent(body, signature, secret)).toEqual(
          JSON.parse(JSON.stringify(events[at])),
        )
      }
    }
    const { body, signature } = received[0]!
    expect(() => Stripe.webhooks.constructEvent(body, signature, 'whsec_other')).toThrow(
      'No signatures found',
    )
  })

  test('a failure is tried again with the same body and a signature of its own', async () => {
    let nowMs = Date.now()
    let failures = 2
    const { url, received } = await receiver((_, response) => {
      nowMs += 5_000
      response.writeHead(failures-- > 0 ? 500 : 200).end()
    })
    const double = newDouble()
    const sender = newSender(url, { log: double.log, clock: () => nowMs })
    const event = double.emit('ping', { object: 'nothing' })
    expect(sender.isAcknowledged(event.id)).toBe(false)
    expect(await sender.send(event)).toBe('acknowledged')

    expect(sender.isAcknowledged(event.id)).toBe(true)
    expect(new Set(received.map((one) => one.body)).size).toBe(1)
    expect(new Set(received.map((one) => one.signature)).size).toBe(3)
    const attempts = double.log.entries('delivery')
    expect(attempts.map((entry) => [entry.attempt, entry.status])).toEqual([
      [1, 500],
      [2, 500],
      [3, 200],
    ])
    expect(sender.counts()).toEqual({ attempts: 3, acknowledged: 1, failed: 2, gaveUp: 0 })
  })

  test('a redirect, a cut connection and silence are failures', async () => {
    const answers: ((response: ServerResponse) => void)[] = [
      (response) => response.writeHead(302, { location: '/elsewhere' }).end(),
      (response) => response.destroy(),
      () => {},
      (response) => response.writeHead(204).end(),
    ]
    const { url } = await receiver((_, response) => answers.shift()!(response))
    const double = newDouble()
    const sender = newSender(url, { log: double.log, timeoutMs: 150 })
    expect(await sender.send(double.emit('ping', { object: 'nothing' }))).toBe('acknowledged')
    expect(double.log.entries('delivery').map((entry) => [entry.status, entry.error])).toEqual([
      [302, null],
      [null, 'ECONNRESET'],
      [null, 'timeout'],
      [204, null],
    ])
  })

  test('an event that nobody takes is given up and said so', async () => {
    const { url } = await receiver((_, response) => response.writeHead(503).end())
    const double = newDouble()
    const sender = newSender(url, { log: double.log, attempts: 3 })
    const event = double.emit('ping', { object: 'nothing' })
    expect(await sender.send(event)).toBe('gave_up')
    expect(sender.counts()).toMatchObject({ attempts: 3, gaveUp: 1 })
    expect(double.log.entries('dropped')).toMatchObject([{ eventId: event.id, reason: 'gave_up' }])
    expect(double.unacknowledged()).toEqual([])
  })

  test('a receiver that is not there is a failure like any other', async () => {
    const sender = newSender('http://127.0.0.1:9/', { attempts: 2 })
    const double = newDouble()
    expect(await sender.send(double.emit('ping', { object: 'nothing' }))).toBe('gave_up')
    expect(sender.counts().failed).toBe(2)
  })

  test('connections are bounded and kept', async () => {
    let open = 0
    let most = 0
    const { url, sockets } = await receiver((_, response) => {
      most = Math.max(most, ++open)
      setTimeout(() => {
        open--
        response.writeHead(200).end()
      }, 5)
    })
    const double = newDouble()
    const sender = newSender(url, { concurrency: 4 })
    const event = double.emit('ping', { object: 'nothing' })
    const copies = Array.from({ length: 40 }, (_, copy) => sender.send(event, copy))
    await sender.idle()
    expect(await Promise.all(copies)).toEqual(copies.map(() => 'acknowledged'))
    expect(most).toBe(4)
    expect(sockets.size).toBe(4)
  })

  test('closing ends what waits and lets what is under way finish', async () => {
    const { url, received } = await receiver((_, response) => {
      setTimeout(() => response.writeHead(500).end(), 50)
    })
    const double = newDouble()
    const sender = newSender(url, { concurrency: 1, firstRetryMs: 60_000 })
    const event = double.emit('ping', { object: 'nothing' })
    const underWay = sender.send(event)
    const queued = sender.send(event, 1)
    await expect.poll(() => received.length).toBe(1)
    await sender.close()
    expect(await Promise.all([underWay, queued])).toEqual(['stopped', 'stopped'])
    expect(await sender.send(event)).toBe('stopped')
    expect(received).toHaveLength(1)
  })
})

describe('deliverEvents', () => {
  test('delivers what was left without an acknowledgment and what comes, but nothing that was lost', async () => {
    const { url, received } = await receiver(accept)
    const double = newDouble()
    const sender = newSender(url, { log: double.log })
    const left = double.emit('left', { object: 'nothing' })
    const lost = double.emit('lost', { object: 'nothing' })
    sender.lose(lost)
    const stop = deliverEvents(double, sender)
    const fresh = double.emit('fresh', { object: 'nothing' })
    stop()
    double.emit('unheard', { object: 'nothing' })
    await sender.idle()
    expect(received.map((one) => (JSON.parse(one.body) as Stripe.Event).id).sort()).toEqual(
      [left.id, fresh.id].sort(),
    )
    expect(double.unacknowledged().map((event) => event.type)).toEqual(['unheard'])
  })
})
