import type { Destination } from '../../../src/outbox/destination.ts'
import { custom } from '../../../src/outbox/destinations/custom.ts'
import { http } from '../../../src/outbox/destinations/http.ts'
import { NotDone } from '../../../src/outbox/destinations/not-done.ts'
import { stripeCalls } from '../../../src/outbox/destinations/stripe.ts'
import { conformance, type OutsideAct, type SeenCall, type Subject } from './conformance.ts'
import {
  startServer,
  type Script,
  type ScriptedServer,
  type SeenRequest,
} from './scripted-server.ts'

const bearer = 'sk_test_0123456789abcdef'
const signing = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const unstorable = 'nul \0 and half \ud800 of a pair'

/** What an HTTP server does for each act; `made` is the body of something that was made. */
function scriptOf(act: () => OutsideAct, made: (key: string) => Record<string, unknown>): Script {
  return (request, response) => {
    const json = { 'content-type': 'application/json' }
    const answer = (status: number, body: unknown, headers: Record<string, string> = {}): void => {
      response.writeHead(status, { ...json, ...headers })
      response.end(JSON.stringify(body))
    }
    const quoted = { error: { type: 'invalid_request_error', message: quote(request) } }
    switch (act()) {
      case 'works':
        return answer(200, made(String(request.headers['idempotency-key'])))
      case 'refuses':
        return answer(422, quoted)
      case 'is busy':
        return answer(429, quoted, { 'retry-after': '7' })
      case 'fails':
        return answer(500, quoted)
      case 'hangs':
        return
      case 'floods':
        return answer(200, { ...made(unstorable), status: unstorable, much: 'x'.repeat(200_000) })
    }
  }
}

/** The request with everything that it carried, as a careless service writes it into its errors. */
function quote({ headers, body }: SeenRequest): string {
  return `${JSON.stringify(headers)} ${body.toString('utf8')}`
}

/** What of a request stays the same at every attempt. */
function seenCall({ method, path, headers, body }: SeenRequest): SeenCall {
  const own = new Set([
    'idempotency-key',
    'webhook-id',
    'webhook-timestamp',
    'webhook-signature',
    'connection',
    'host',
  ])
  const kept = Object.entries(headers).filter(([name]) => !own.has(name))
  return {
    key: String(headers['idempotency-key']),
    content: JSON.stringify([method, path, kept, body.toString('latin1')]),
  }
}

/** A subject over a server of its own. */
async function overServer(
  make: (server: ScriptedServer) => Destination,
  made: (key: string) => Record<string, unknown>,
  rest: Pick<Subject, 'body' | 'impossible' | 'secrets'>,
): Promise<Subject> {
  const server = await startServer()
  const destination = make(server)
  const subject: Subject = {
    destination,
    twin: () => make(server),
    ...rest,
    seen: () => server.seen.filter((request) => request.method === 'POST').map(seenCall),
    act: 'works',
    async [Symbol.asyncDispose]() {
      await destination.close?.()
      await server[Symbol.asyncDispose]()
    },
  }
  server.script = scriptOf(() => subject.act, made)
  return subject
}

conformance('http', (callMs) =>
  overServer(
    (server) =>
      http({
        url: `${server.url}/messages`,
        allow: [server.host],
        secretHeaders: { authorization: `Bearer ${bearer}` },
        signingSecret: signing,
        lookup: async ({ get }) => {
          const answer = await get('/known')
          if (answer.status === 404) return { kind: 'absent' }
          if (answer.status !== 200) return { kind: 'no_answer', error: answer.text }
          return { kind: 'present', receipt: {} }
        },
        contract: { callMs },
      }) as Destination,
    (key) => ({ id: key }),
    {
      body: { to: 'ada@example.com', lines: ['ü', 1, null] },
      impossible: { body: { card: '4242', send: () => 'now' }, quote: '4242' },
      secrets: [bearer, signing, signing.slice(6)],
    },
  ),
)

conformance('stripe', (callMs) =>
  overServer(
    (server) =>
      stripeCalls({ apiKey: bearer, apiBase: server.url, contract: { callMs } }) as Destination,
    (key) => ({ id: key, object: 'refund', status: 'succeeded', amount: 900, currency: 'eur' }),
    {
      body: { call: 'refunds.create', params: { payment_intent: 'pi_1', amount: 900 } },
      impossible: { body: { call: 'refunds.create', params: { a: () => '4242' } }, quote: '4242' },
      secrets: [bearer],
    },
  ),
)

conformance('function', (callMs) => {
  const calls: SeenCall[] = []
  const make = (): Destination =>
    custom({
      contract: { idempotency: 'key', callMs },
      call: ({ key, body, signal }) => {
        calls.push({ key, content: JSON.stringify(body) })
        switch (subject.act) {
          case 'works':
            return Promise.resolve({ id: key })
          case 'refuses':
            return Promise.reject(new NotDone('never', { forGood: true }))
          case 'is busy':
            return Promise.reject(new NotDone('busy', { retryAfterMs: 7000 }))
          case 'fails':
            return Promise.reject(new Error(`${bearer} was not taken`))
          case 'hangs':
            return new Promise((_, reject) => {
              signal.addEventListener('abort', () => reject(new Error('aborted')))
            })
          case 'floods': {
            const much = Array.from({ length: 500 }, (_, at) => [`k${at}`, 'x'.repeat(5000)])
            return Promise.resolve({ id: unstorable, ...Object.fromEntries(much) })
          }
        }
      },
      lookup: () => {
        if (subject.act === 'hangs') return new Promise(() => undefined)
        return Promise.reject(new Error(bearer))
      },
    })
  const subject: Subject = {
    destination: make(),
    twin: make,
    body: { to: 'ada@example.com', lines: ['ü', 1, null] },
    impossible: { body: { card: '4242', send: () => 'now' }, quote: '4242' },
    secrets: [bearer],
    seen: () => calls,
    act: 'works',
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
  return Promise.resolve(subject)
})
