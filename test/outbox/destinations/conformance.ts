/**
 * What every kind of destination has to hold, whatever it sends and however: one suite, run over each
 * kind with an outside that does what it is told and keeps what it saw.
 */
import { describe, expect, it } from 'vitest'
import { isPermanent } from '../../../src/core/errors.ts'
import type { CallOutcome, Destination, OutgoingRequest } from '../../../src/outbox/destination.ts'
import { operationId } from './outgoing.ts'

/** What the outside does with a call. */
export type OutsideAct =
  /** Does it, and answers with the key as the id of what it made. */
  | 'works'
  /** Refuses for good, quoting what it was sent, secrets included. */
  | 'refuses'
  /** Did nothing, and asks to come back in 7 seconds. */
  | 'is busy'
  /** Fails in a way that says neither. */
  | 'fails'
  /** Says nothing. */
  | 'hangs'
  /** Does it, and answers with far more than anybody wants, some of it unstorable. */
  | 'floods'

/** A call as the outside saw it. */
export interface SeenCall {
  readonly key: string
  /** What was sent, without what is each attempt's own (a timestamp, a signature). */
  readonly content: string
}

/** A destination with its outside. */
export interface Subject extends AsyncDisposable {
  readonly destination: Destination
  /** Another one of the same configuration. */
  readonly twin: () => Destination
  readonly body: unknown
  /** A body that can never be sent, and a piece of it that no message may quote. */
  readonly impossible: { readonly body: unknown; readonly quote: string }
  readonly secrets: readonly string[]
  readonly seen: () => readonly SeenCall[]
  act: OutsideAct
}

/** Makes a subject; `callMs` is the contract's. */
export type MakeSubject = (callMs: number) => Promise<Subject>

const forever = (): AbortSignal => new AbortController().signal

function requestOf(subject: Subject, id = operationId, generation = 1): OutgoingRequest {
  const { destination, body } = subject
  const key = generation === 1 ? id : `${id}:${generation}`
  const request = destination.encode({ operationId: id, body, orderId: null })
  return { operationId: id, key, request }
}

/** Nothing of this may be in anything that is stored or logged. */
function expectNoSecret(subject: Subject, outcome: object): void {
  const texts = JSON.stringify(outcome, (_, value: unknown) =>
    value instanceof Uint8Array ? new TextDecoder().decode(value) : value,
  )
  for (const secret of subject.secrets) expect(texts).not.toContain(secret)
}

function answerOf(outcome: CallOutcome): Uint8Array {
  return outcome.answer ?? new Uint8Array()
}

/** Runs the suite over a kind. */
export function conformance(kind: string, make: MakeSubject): void {
  describe(`a destination of kind ${kind}`, () => {
    sameBytes(make)
    outcomes(make)
    bounds(make)
    robustness(make)
  })
}

function sameBytes(make: MakeSubject): void {
  it('encodes the same bytes for the same send, in every process that is configured alike', async () => {
    await using subject = await make(5000)
    const { destination, body } = subject
    const twin = subject.twin()
    const send = { operationId, body, orderId: 'order-1' }
    expect(destination.encode(send)).toEqual(destination.encode(send))
    expect(twin.encode(send)).toEqual(destination.encode(send))
    await twin.close?.()
  })

  it('sends the same bytes under the same key at every attempt, and to every outcome', async () => {
    await using subject = await make(5000)
    const request = requestOf(subject)
    for (const act of ['fails', 'is busy', 'works', 'works'] as const) {
      subject.act = act
      await subject.destination.call(request, forever())
    }
    const seen = subject.seen()
    expect(seen).toHaveLength(4)
    expect(new Set(seen.map((call) => call.key))).toEqual(new Set([operationId]))
    expect(new Set(seen.map((call) => call.content)).size).toBe(1)
  })

  it('changes nothing but the key for a later generation', async () => {
    await using subject = await make(5000)
    const first = requestOf(subject)
    const second = requestOf(subject, operationId, 2)
    expect(second.request).toEqual(first.request)
    await subject.destination.call(first, forever())
    await subject.destination.call(second, forever())
    const [before, after] = subject.seen()
    expect([before?.key, after?.key]).toEqual([operationId, `${operationId}:2`])
    expect(after?.content).toBe(before?.content)
  })

  it('keeps calls that run at once apart', async () => {
    await using subject = await make(5000)
    const ids = Array.from(
      { length: 20 },
      (_, at) => `0b6c1a52-7c2f-5d0a-9a6e-${100000000000 + at}`,
    )
    const results = await Promise.all(
      ids.map((id) => subject.destination.call(requestOf(subject, id), forever())),
    )
    expect(results.map((result) => result.kind === 'sent' && result.receipt['id'])).toEqual(ids)
  })
}

function outcomes(make: MakeSubject): void {
  it('tells done, refused, not now and unknown apart', async () => {
    await using subject = await make(5000)
    const come = async (act: OutsideAct): Promise<CallOutcome> => {
      subject.act = act
      return subject.destination.call(requestOf(subject), forever())
    }
    expect(await come('works')).toMatchObject({ kind: 'sent', receipt: { id: operationId } })
    expect(await come('refuses')).toMatchObject({ kind: 'refused' })
    expect(await come('is busy')).toMatchObject({ kind: 'retry', retryAfterMs: 7000 })
    expect(await come('fails')).toMatchObject({ kind: 'uncertain' })
  })

  it('keeps little of an answer, and nothing that cannot be stored', async () => {
    await using subject = await make(5000)
    subject.act = 'floods'
    const outcome = await subject.destination.call(requestOf(subject), forever())
    expect(answerOf(outcome).byteLength).toBeLessThanOrEqual(4096)
    const receipt = outcome.kind === 'sent' ? outcome.receipt : {}
    expect(Object.keys(receipt).length).toBeLessThanOrEqual(20)
    for (const value of Object.values(receipt)) {
      expect(['string', 'number', 'boolean', 'object']).toContain(typeof value)
      if (typeof value === 'object') expect(value).toBeNull()
      if (typeof value !== 'string') continue
      expect(value.length).toBeLessThanOrEqual(255)
      expect(value).not.toContain('\0')
      expect(value.isWellFormed()).toBe(true)
    }
  })

  it('shows no secret, even where the outside quotes it', async () => {
    await using subject = await make(5000)
    expect(subject.secrets.length).toBeGreaterThan(0)
    for (const act of ['works', 'refuses', 'is busy', 'fails', 'floods'] as const) {
      subject.act = act
      expectNoSecret(subject, await subject.destination.call(requestOf(subject), forever()))
    }
    expectNoSecret(subject, subject.destination)
    const stored = new TextDecoder().decode(requestOf(subject).request)
    for (const secret of subject.secrets) expect(stored).not.toContain(secret)
  })
}

function bounds(make: MakeSubject): void {
  it('ends by its signal and does not know what it does not know', async () => {
    await using subject = await make(60_000)
    subject.act = 'hangs'
    const abort = new AbortController()
    const calling = subject.destination.call(requestOf(subject), abort.signal)
    await expect.poll(() => subject.seen().length).toBe(1)
    abort.abort()
    expect(await calling).toMatchObject({ kind: 'uncertain' })
  })

  it('ends by the deadline of its contract without any signal', async () => {
    await using subject = await make(80)
    subject.act = 'hangs'
    expect(await subject.destination.call(requestOf(subject), forever())).toMatchObject({
      kind: 'uncertain',
    })
  })

  it('sends nothing after its signal', async () => {
    await using subject = await make(5000)
    expect(await subject.destination.call(requestOf(subject), AbortSignal.abort())).toMatchObject({
      kind: 'retry',
    })
    expect(subject.seen()).toEqual([])
  })

  it('has a lookup that ends by its signal and takes no silence for a proof', async () => {
    await using subject = await make(60_000)
    subject.act = 'hangs'
    const { lookup } = subject.destination
    expect(lookup).toBeDefined()
    const late = AbortSignal.timeout(80)
    expect(await lookup?.(requestOf(subject), late)).toMatchObject({ kind: 'no_answer' })
    expect(await lookup?.(requestOf(subject), AbortSignal.abort())).toMatchObject({
      kind: 'no_answer',
    })
    subject.act = 'fails'
    expect(await lookup?.(requestOf(subject), forever())).toMatchObject({ kind: 'no_answer' })
  })
}

function robustness(make: MakeSubject): void {
  it('never rejects and never sends what it did not write', async () => {
    await using subject = await make(5000)
    const texts = ['', 'null', '[]', '{"v":99}', '{', '\u0000', '{"v":1,"call":"charges.list"']
    const stored = [
      ...texts.map((text) => new TextEncoder().encode(text)),
      Uint8Array.of(0xff, 0xfe),
    ]
    for (const request of stored) {
      const outcome = await subject.destination.call(
        { operationId, key: operationId, request },
        forever(),
      )
      // A function takes any JSON for its body; what is none is refused by every kind.
      if (isJson(request)) expect(outcome.kind).toMatch(/^(?:refused|sent)$/)
      else expect(outcome).toMatchObject({ kind: 'refused', settlesEarlier: false })
    }
  })

  it('never rejects after it was closed', async () => {
    await using subject = await make(5000)
    const request = requestOf(subject)
    await subject.destination.call(request, forever())
    await subject.destination.close?.()
    const outcome = await subject.destination.call(request, forever())
    expect(outcome.kind).toMatch(/^(?:sent|retry|uncertain)$/)
    await subject.destination.close?.()
  })

  it('refuses a body that can never be sent, for good and without quoting it', async () => {
    await using subject = await make(5000)
    const { body, quote } = subject.impossible
    let refusal: unknown
    try {
      subject.destination.encode({ operationId, body, orderId: null })
    } catch (error) {
      refusal = error
    }
    expect(isPermanent(refusal)).toBe(true)
    expect((refusal as Error).message).not.toContain(quote)
  })

  it('has a contract that can be kept', async () => {
    await using subject = await make(5000)
    const { contract, problem } = subject.destination
    expect(problem).toBeUndefined()
    expect(contract.leaseMs).toBeGreaterThan(contract.callMs)
    expect(contract.retentionMs - contract.marginMs).toBeGreaterThan(0)
    expect(contract.maxRetryMs).toBeGreaterThanOrEqual(contract.firstRetryMs)
  })
}

function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return true
  } catch {
    return false
  }
}
