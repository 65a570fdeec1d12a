/**
 * The provider's side of deliveries: signed requests on connections of their own, repeated until a 2xx comes, and a log
 * of what was answered that the product cannot touch.
 */
import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SentDelivery } from '../oracle/verdict.ts'

/** An event as it is delivered. */
export interface Signed {
  readonly eventId: string
  readonly source: string
  readonly body: Buffer
  readonly headers: () => Readonly<Record<string, string>>
}

/** What delivers, to wherever the receiver is at the moment. */
export interface Sender {
  readonly log: readonly SentDelivery[]
  /** Delivers until it is answered 2xx; false where it was not within the time. */
  deliver(event: Signed, withinMs?: number): Promise<boolean>
}

/** How long one request waits for its answer, and how long passes before it is made again, in milliseconds. */
const answerMs = 1500
const againMs = 60

/** A sender to the port that `port` says, asked before every request. */
export function createSender(port: () => number): Sender {
  const log: SentDelivery[] = []
  const attempt = async (event: Signed): Promise<boolean> => {
    const status = await post(port(), event)
    const sha256 = createHash('sha256').update(event.body).digest('hex')
    log.push({ eventId: event.eventId, sha256, outcome: outcomeOf(status) })
    return status !== null && status >= 200 && status <= 299
  }
  return {
    log,
    async deliver(event, withinMs = 20_000) {
      const until = performance.now() + withinMs
      while (!(await attempt(event))) {
        if (performance.now() > until) return false
        await sleep(againMs)
      }
      return true
    },
  }
}

function outcomeOf(status: number | null): SentDelivery['outcome'] {
  if (status === null) return 'info'
  if (status >= 200 && status <= 299) return 'ok'
  return status >= 400 && status <= 499 && status !== 408 && status !== 429 ? 'fail' : 'info'
}

function post(port: number, event: Signed): Promise<number | null> {
  return new Promise((resolve) => {
    const outgoing = request(
      {
        host: '127.0.0.1',
        port,
        path: `/webhooks/${event.source}`,
        method: 'POST',
        agent: false,
        timeout: answerMs,
        headers: { ...event.headers(), 'content-length': event.body.length },
      },
      (answer) => {
        answer.resume()
        answer.on('end', () => resolve(answer.complete ? (answer.statusCode ?? null) : null))
        answer.on('error', () => resolve(null))
      },
    )
    outgoing.on('timeout', () => outgoing.destroy())
    outgoing.on('error', () => resolve(null))
    outgoing.end(event.body)
  })
}
