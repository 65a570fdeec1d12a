/**
 * Delivers events as Stripe does: signed anew at every attempt, repeated with backoff and jitter until
 * a 2xx comes, at least once and in no order. It knows, and writes down, what was acknowledged.
 */
import http from 'node:http'
import https from 'node:https'
import type Stripe from 'stripe'
import { isSuccess, type ProviderLog } from './provider-log.ts'
import { createRandom, type Random } from './random.ts'
import type { StripeDouble } from './stripe-double.ts'
import { stripeSignature } from './webhook-signature.ts'

/** Where and how events are delivered. */
export interface WebhookSenderOptions {
  url: string
  /** One secret, or all that are valid during a rotation. */
  signingSecret: string | readonly string[]
  /** Gets an entry for every attempt: the double's own log. */
  log?: ProviderLog
  /** Milliseconds since 1970. */
  clock?: () => number
  /** Requests at a time; 16 when absent. */
  concurrency?: number
  /** Attempts for each copy before it is given up; 12 when absent. */
  attempts?: number
  /** For one attempt as a whole; 10 s when absent. */
  timeoutMs?: number
  /** Wait before the second attempt, doubled for each further one; 500 ms when absent. */
  firstRetryMs?: number
  /** The longest wait; one minute when absent. */
  maximumRetryMs?: number
  /** For the jitter of the waits. */
  random?: Random
}

/** How the delivery of one copy ended. */
export type DeliveryResult = 'acknowledged' | 'gave_up' | 'stopped'

/** What was sent so far. */
export interface DeliveryCounts {
  /** Requests made, repeated ones included. */
  attempts: number
  /** Copies that were answered 2xx. */
  acknowledged: number
  /** Attempts that were not. */
  failed: number
  /** Copies given up. */
  gaveUp: number
}

/** Delivers events to one endpoint. */
export interface WebhookSender {
  /** Delivers one copy of an event; resolves when it was acknowledged, given up, or the sender closed. */
  send(event: Stripe.Event, copy?: number): Promise<DeliveryResult>
  /** Loses an event for good: it is never sent, and the log says so. */
  lose(event: Stripe.Event): void
  /** Whether any copy of the event was answered 2xx by this sender. */
  isAcknowledged(eventId: string): boolean
  counts(): DeliveryCounts
  /** Resolves when nothing is waiting or under way. */
  idle(): Promise<void>
  /** Stops: waits are given up, requests under way end. */
  close(): Promise<void>
}

interface Delivery {
  event: Stripe.Event
  body: string
  copy: number
  attempt: number
  finish: (result: DeliveryResult) => void
}

/** Makes a sender; it opens no connection before the first event. */
export function createWebhookSender(options: WebhookSenderOptions): WebhookSender {
  return new HttpWebhookSender(options)
}

/**
 * Delivers every event that the double makes from now on, and those that a killed process left without
 * an acknowledgment. Returns what ends it.
 */
export function deliverEvents(double: StripeDouble, sender: WebhookSender): () => void {
  for (const event of double.unacknowledged()) void sender.send(event)
  return double.onEvent((event) => void sender.send(event))
}

class HttpWebhookSender implements WebhookSender {
  readonly #options: Required<Omit<WebhookSenderOptions, 'log' | 'signingSecret'>>
  readonly #secrets: readonly string[]
  readonly #log: ProviderLog | undefined
  readonly #agent: http.Agent
  readonly #queue: Delivery[] = []
  readonly #waiting = new Map<Delivery, NodeJS.Timeout>()
  readonly #acknowledged = new Set<string>()
  readonly #counts: DeliveryCounts = { attempts: 0, acknowledged: 0, failed: 0, gaveUp: 0 }
  readonly #idle: (() => void)[] = []
  #underWay = 0
  #closed = false

  constructor(options: WebhookSenderOptions) {
    const { signingSecret, log, ...rest } = options
    this.#options = {
      clock: Date.now,
      concurrency: 16,
      attempts: 12,
      timeoutMs: 10_000,
      firstRetryMs: 500,
      maximumRetryMs: 60_000,
      random: createRandom('webhooks'),
      ...rest,
    }
    this.#secrets = typeof signingSecret === 'string' ? [signingSecret] : signingSecret
    this.#log = log
    const agent = { keepAlive: true, maxSockets: this.#options.concurrency }
    this.#agent = options.url.startsWith('https:') ? new https.Agent(agent) : new http.Agent(agent)
  }

  send(event: Stripe.Event, copy = 0): Promise<DeliveryResult> {
    if (this.#closed) return Promise.resolve('stopped')
    return new Promise((resolve) => {
      const body = JSON.stringify(event, null, 2)
      this.#queue.push({ event, body, copy, attempt: 1, finish: resolve })
      this.#start()
    })
  }

  lose(event: Stripe.Event): void {
    this.#log?.append({
      kind: 'dropped',
      at: this.#options.clock(),
      eventId: event.id,
      reason: 'lost',
    })
  }

  isAcknowledged(eventId: string): boolean {
    return this.#acknowledged.has(eventId)
  }

  counts(): DeliveryCounts {
    return { ...this.#counts }
  }

  idle(): Promise<void> {
    if (this.#isIdle()) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const timer of this.#waiting.values()) clearTimeout(timer)
    for (const delivery of [...this.#waiting.keys(), ...this.#queue.splice(0)])
      delivery.finish('stopped')
    this.#waiting.clear()
    await this.idle()
    this.#agent.destroy()
  }

  #isIdle(): boolean {
    return this.#underWay === 0 && this.#queue.length === 0 && this.#waiting.size === 0
  }

  #start(): void {
    while (this.#underWay < this.#options.concurrency) {
      const delivery = this.#queue.shift()
      if (!delivery) break
      this.#underWay++
      void this.#attempt(delivery).finally(() => {
        this.#underWay--
        this.#start()
      })
    }
    if (this.#isIdle()) for (const resolve of this.#idle.splice(0)) resolve()
  }

  async #attempt(delivery: Delivery): Promise<void> {
    const started = this.#options.clock()
    this.#counts.attempts++
    const { status, error } = await this.#post(delivery.body, started)
    this.#log?.append({
      kind: 'delivery',
      at: this.#options.clock(),
      eventId: delivery.event.id,
      copy: delivery.copy,
      attempt: delivery.attempt,
      status,
      error,
      durationMs: this.#options.clock() - started,
    })
    if (isSuccess(status)) {
      this.#counts.acknowledged++
      this.#acknowledged.add(delivery.event.id)
      delivery.finish('acknowledged')
      return
    }
    this.#counts.failed++
    this.#retry(delivery)
  }

  #retry(delivery: Delivery): void {
    if (this.#closed) return delivery.finish('stopped')
    const { attempts, firstRetryMs, maximumRetryMs, random, clock } = this.#options
    if (delivery.attempt >= attempts) {
      this.#counts.gaveUp++
      const { id } = delivery.event
      // Another copy may have arrived: then the event is not lost, only this copy is.
      if (!this.#acknowledged.has(id)) {
        this.#log?.append({ kind: 'dropped', at: clock(), eventId: id, reason: 'gave_up' })
      }
      return delivery.finish('gave_up')
    }
    const full = Math.min(firstRetryMs * 2 ** (delivery.attempt - 1), maximumRetryMs)
    const timer = setTimeout(
      () => {
        this.#waiting.delete(delivery)
        this.#queue.push({ ...delivery, attempt: delivery.attempt + 1 })
        this.#start()
      },
      full * (0.5 + random.next() / 2),
    )
    this.#waiting.set(delivery, timer)
  }

  /** One request; the signature is made at this moment, as Stripe makes it at every attempt. */
  #post(body: string, nowMs: number): Promise<{ status: number | null; error: string | null }> {
    const { url, timeoutMs } = this.#options
    const deadline = AbortSignal.timeout(timeoutMs)
    const client = url.startsWith('https:') ? https : http
    return new Promise((resolve) => {
      const fail = (cause: NodeJS.ErrnoException) => {
        resolve({ status: null, error: deadline.aborted ? 'timeout' : (cause.code ?? cause.name) })
      }
      const request = client.request(
        url,
        {
          method: 'POST',
          agent: this.#agent,
          signal: deadline,
          headers: {
            'content-type': 'application/json; charset=utf-8',
            'content-length': Buffer.byteLength(body),
            'user-agent': 'Stripe/1.0 (+https://stripe.com/docs/webhooks)',
            'stripe-signature': stripeSignature(body, this.#secrets, Math.floor(nowMs / 1000)),
          },
        },
        (response) => {
          response.on('error', fail)
          response.on('end', () => resolve({ status: response.statusCode ?? null, error: null }))
          response.resume()
        },
      )
      request.on('error', fail)
      request.end(body)
    })
  }
}
