import { describe, expect, it } from 'vitest'
import type { RequestReceiverOptions } from '../../src/inbox/receive-request.ts'
import { createRequestReceiver } from '../../src/inbox/receive-request.ts'
import type { IngestOutcome, IngestRequest } from '../../src/inbox/receiver.ts'
import { hostileBytes } from '../http/recorded-ingest.ts'

const url = 'https://shop.example/webhooks/stripe'

function create(outcome?: IngestOutcome, workOff?: RequestReceiverOptions['workOff']) {
  const received: IngestRequest[] = []
  const refused: string[] = []
  const worked: bigint[][] = []
  const stored: IngestOutcome = {
    status: 200,
    events: [
      { eventId: 'evt_new', eventKey: 7n, duplicate: false, decision: null },
      { eventId: 'evt_unfinished', eventKey: 5n, duplicate: true, decision: null },
      { eventId: 'evt_finished', eventKey: 3n, duplicate: true, decision: 'fulfilled' },
      { eventId: 'evt_unread', eventKey: null, duplicate: true, decision: null },
    ],
  }
  const receive = createRequestReceiver({
    receiver: {
      hasSource: (name) => name === 'stripe',
      ingest: (request) => {
        received.push(request)
        if (request.source === 'stripe') return Promise.resolve(outcome ?? stored)
        return Promise.resolve({
          status: 404,
          code: 'HKL_INBOX_SOURCE_UNKNOWN',
          message: 'unknown',
        })
      },
      refuse: (source, reason, refusal) => {
        refused.push(`${source} ${reason} ${refusal.status}`)
        return refusal
      },
    },
    limits: { bodyBytes: 1024, requestTimeoutMs: 200 },
    workOff:
      workOff ??
      ((keys) => {
        worked.push([...keys])
        return Promise.resolve()
      }),
  })
  return { receive, received, refused, worked }
}

function post(body: RequestInit['body'], headers: Record<string, string> = {}): Request {
  return new Request(url, {
    method: 'POST',
    body: body ?? null,
    headers,
    duplex: 'half',
  } as RequestInit)
}

function stream(...chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk)
    },
  })
}

describe('receive', () => {
  it('hands over the exact bytes and headers, and answers 200', async () => {
    const { receive, received } = create()
    const answer = await receive(post(hostileBytes, { 'Stripe-Signature': 't=1' }), {
      source: 'stripe',
    })
    expect([answer.status, await answer.json()]).toEqual([200, { received: true }])
    expect(Buffer.from(received[0]?.rawBody ?? []).equals(hostileBytes)).toBe(true)
    expect((received[0]?.headers as Headers).get('stripe-signature')).toBe('t=1')
  })

  it('takes an empty body', async () => {
    const { receive, received } = create()
    expect((await receive(post(null), { source: 'stripe' })).status).toBe(200)
    expect(received[0]?.rawBody.byteLength).toBe(0)
  })

  it('says what ingest says, with Retry-After', async () => {
    const { receive } = create({
      status: 503,
      code: 'HKL_INBOX_UNAVAILABLE',
      message: 'again',
      retryAfterSeconds: 5,
    })
    const answer = await receive(post('{}'), { source: 'stripe' })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
    expect(await answer.json()).toEqual({
      error: { code: 'HKL_INBOX_UNAVAILABLE', message: 'again' },
    })
  })

  it('works off what has no final decision yet, when the platform keeps the process for it', async () => {
    const { receive, worked } = create()
    const kept: Promise<unknown>[] = []
    await receive(post('{}'), { source: 'stripe', waitUntil: (work) => kept.push(work) })
    await Promise.all(kept)
    expect(worked).toEqual([[7n, 5n]])
  })

  it('works off nothing without waitUntil, and nothing that was not stored', async () => {
    const { receive, worked } = create()
    await receive(post('{}'), { source: 'stripe' })
    const refusing = create({ status: 400, code: 'HKL_INBOX_SIGNATURE_INVALID', message: 'no' })
    await refusing.receive(post('{}'), {
      source: 'stripe',
      waitUntil: () => {
        throw new Error('asked for nothing')
      },
    })
    expect([worked, refusing.worked]).toEqual([[], []])
  })

  it('answers 200 for what is stored although working it off fails', async () => {
    const { receive } = create(undefined, () => Promise.reject(new Error('no')))
    const kept: Promise<unknown>[] = []
    const answer = await receive(post('{}'), {
      source: 'stripe',
      waitUntil: (work) => kept.push(work),
    })
    expect(answer.status).toBe(200)
    await expect(Promise.all(kept)).resolves.toHaveLength(1)
  })

  it('answers 200 for what is stored although the platform refuses to wait', async () => {
    const { receive, worked } = create()
    const answer = await receive(post('{}'), {
      source: 'stripe',
      waitUntil: () => {
        throw new Error('outside of a request')
      },
    })
    expect(answer.status).toBe(200)
    expect(worked).toHaveLength(1)
  })

  it('answers 503 with the fix when the body was read before', async () => {
    const { receive, received, refused } = create()
    const read = post('{}')
    await read.text()
    const held = post('{}')
    held.body?.getReader()
    for (const request of [read, held]) {
      const answer = await receive(request, { source: 'stripe' })
      expect(answer.status).toBe(503)
      expect(await answer.json()).toMatchObject({
        error: {
          code: 'HKL_INBOX_BODY_CONSUMED',
          message: expect.stringContaining('request.json()') as string,
        },
      })
    }
    expect(received).toEqual([])
    expect(refused).toEqual(['stripe body_consumed 503', 'stripe body_consumed 503'])
  })

  it('refuses other methods, encodings, unknown sources and too many bytes', async () => {
    const { receive, received } = create()
    const get = await receive(new Request(url), { source: 'stripe' })
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST'])
    expect(
      (await receive(post('{}', { 'content-encoding': 'gzip' }), { source: 'stripe' })).status,
    ).toBe(415)
    expect(
      (await receive(post('{}', { 'content-length': '5000' }), { source: 'stripe' })).status,
    ).toBe(413)
    const large = stream(new Uint8Array(600), new Uint8Array(600))
    expect((await receive(post(large), { source: 'stripe' })).status).toBe(413)
    expect(received).toEqual([])
    expect((await receive(post('{}'), { source: 'nobody' })).status).toBe(404)
  })

  it('answers 408 to a body that does not end, and 400 to one that breaks off', async () => {
    const { receive, received, refused } = create()
    expect((await receive(post(stream(new Uint8Array(5))), { source: 'stripe' })).status).toBe(408)
    const broken = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.error(new Error('gone'))
      },
    })
    expect((await receive(post(broken), { source: 'stripe' })).status).toBe(400)
    expect(received).toEqual([])
    expect(refused).toEqual(['stripe too_slow 408', 'stripe aborted 400'])
  })
})
