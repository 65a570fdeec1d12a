import { createHash } from 'node:crypto'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { honoredMs, MailDouble } from '../../../src/testing/mail-double/mail-double.ts'
import {
  isAfterTheWork,
  mailFaults,
  seededMailFaults,
  type MailFault,
} from '../../../src/testing/mail-double/mail-faults.ts'
import { serveMailDouble, type ServedMail } from '../../../src/testing/mail-double/serve.ts'

const letter = { to: 'ada@example.com', template: 'license', order: '1001' }
let now: number
let double: MailDouble
let served: ServedMail

beforeEach(async () => {
  now = Date.UTC(2026, 0, 1)
  double = new MailDouble({ clock: () => now })
  served = await serveMailDouble(double)
})

afterEach(async () => {
  await served.close()
  double.close()
})

function post(key: string | null, body: object | string = letter): Promise<Response> {
  return fetch(served.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(key !== null && { 'idempotency-key': key }),
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal: AbortSignal.timeout(300),
  })
}

/** The status of a call, or null where no answer came. */
async function statusOf(call: Promise<Response>): Promise<number | null> {
  return call.then(
    (response) => response.status,
    () => null,
  )
}

/** Meets the first call of every key with one fault. */
function failOnce(fault: MailFault): void {
  double.misbehave(({ calls }) => (calls === 1 ? fault : null))
}

describe('POST /emails', () => {
  test('sends one email a key, and answers the same key with the answer that it stored', async () => {
    const first = await post('op-1')
    const answer: unknown = await first.json()
    expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([202, null])
    const again = await post('op-1')
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([202, 'true'])
    expect(await again.json()).toEqual(answer)
    expect(double.log.counts()).toEqual({ calls: 2, emails: 1, absorbed: 1, faults: {} })
    expect(double.log.emails.map(({ key, email }) => [key, email])).toEqual([['op-1', letter]])
  })

  test('sends one email when many calls come with one key at the same moment', async () => {
    const statuses = await Promise.all(Array.from({ length: 20 }, () => statusOf(post('op-1'))))
    expect(new Set(statuses)).toEqual(new Set([202]))
    expect(double.log.counts()).toMatchObject({ calls: 20, emails: 1, absorbed: 19 })
  })

  test('honors a key for 24 hours, and has forgotten it then', async () => {
    await post('op-1')
    now += honoredMs - 1
    await post('op-1')
    expect(double.log.counts()).toMatchObject({ emails: 1, absorbed: 1 })
    now += 1
    await post('op-1')
    expect(double.log.find('op-1')).toMatchObject({ calls: 3, emails: [{}, {}] })
  })

  test('refuses a known key with another body, and keeps the hash as evidence', async () => {
    await post('op-1')
    expect(await statusOf(post('op-1', { ...letter, order: '1002' }))).toBe(422)
    expect(double.log.counts()).toMatchObject({ calls: 2, emails: 1, absorbed: 0 })
    expect(double.log.find('op-1')?.sha256).toContain(
      createHash('sha256').update(JSON.stringify(letter)).digest('hex'),
    )
    expect(double.log.find('op-1')?.sha256.size).toBe(2)
  })

  test.each([
    ['no key', null, letter, 400],
    ['a key that is too long', 'k'.repeat(256), letter, 400],
    ['no JSON', 'op-1', '{', 422],
    ['null', 'op-1', 'null', 422],
    ['no address', 'op-1', { to: 'nobody' }, 422],
    ['more than an email', 'op-1', { ...letter, text: 'x'.repeat(70_000) }, 413],
  ])('sends nothing for %s', async (_, key, body, status) => {
    expect(await statusOf(post(key, body))).toBe(status)
    expect(double.log.counts().emails).toBe(0)
  })

  test('shows what it sent, the newest first', async () => {
    await post('op-1')
    await post('op-2', { ...letter, order: '1002' })
    await post('op-2', { ...letter, order: '1002' })
    const shown = (await (await fetch(served.url)).json()) as object
    expect(shown).toMatchObject({ calls: 3, emails: 2, absorbed: 1 })
    expect(shown).toMatchObject({
      sent: [
        { order: '1002', operation: 'op-2', calls: 2 },
        { order: '1001', operation: 'op-1', calls: 1 },
      ],
    })
    expect((await fetch(served.url, { method: 'DELETE' })).status).toBe(405)
    expect((await fetch(served.url.replace('emails', 'letters'))).status).toBe(404)
  })
})

describe('a fault', () => {
  test.each([
    ['rate_limited', 429, 0],
    ['failed_before', 500, 0],
    ['reset_before', null, 0],
    ['failed_after', 500, 1],
    ['answer_lost', null, 1],
    ['timed_out', null, 1],
  ] as const)('%s: the caller gets %j and %i emails were sent', async (fault, status, emails) => {
    failOnce(fault)
    expect(await statusOf(post('op-1'))).toBe(status)
    expect(double.log.counts().emails).toBe(emails)
    expect(isAfterTheWork(fault)).toBe(emails === 1)
    expect(await statusOf(post('op-1'))).toBe(202)
    await served.close()
    expect(double.log.counts()).toEqual({
      calls: 2,
      emails: 1,
      absorbed: emails,
      faults: { [fault]: 1 },
    })
  })

  test('of 429 says when to come again', async () => {
    failOnce('rate_limited')
    expect((await post('op-1')).headers.get('retry-after')).toBe('1')
  })

  test('is drawn from the seed and the email: every kind comes, and the fourth call is always served', () => {
    const bodies = Array.from({ length: 2000 }, (_, at) => `${at}`)
    const plan = seededMailFaults('seed', 0.2)
    const drawn = bodies.map((sha256) => plan({ sha256, calls: 1 }))
    expect(bodies.map((sha256) => seededMailFaults('seed', 0.2)({ sha256, calls: 1 }))).toEqual(
      drawn,
    )
    const share = drawn.filter((fault) => fault !== null).length / bodies.length
    expect(share).toBeGreaterThan(0.16)
    expect(share).toBeLessThan(0.24)
    for (const fault of mailFaults) expect(drawn).toContain(fault)
    expect(
      bodies.map((sha256) => seededMailFaults('other', 0.2)({ sha256, calls: 1 })),
    ).not.toEqual(drawn)
    expect(
      bodies.every((sha256) => seededMailFaults('seed', 1)({ sha256, calls: 4 }) === null),
    ).toBe(true)
  })
})

describe('the log', () => {
  let dataDir: string
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'hookledger-mail-'))
  })
  afterEach(() => rmSync(dataDir, { recursive: true }))

  /** Stops it, lets something happen to its file, and starts it again. */
  async function reopened(work: () => Promise<void>, meanwhile = (): void => {}): Promise<void> {
    await served.close()
    double.close()
    meanwhile()
    double = new MailDouble({ dataDir, clock: () => now })
    served = await serveMailDouble(double)
    await work()
  }

  test('is found again by the next start: keys are honored, calls and emails counted', async () => {
    await reopened(async () => {
      failOnce('answer_lost')
      expect(await statusOf(post('op-1'))).toBeNull()
    })
    await reopened(async () => {
      expect((await post('op-1')).headers.get('idempotent-replayed')).toBe('true')
    })
    expect(double.log.counts()).toEqual({
      calls: 2,
      emails: 1,
      absorbed: 1,
      faults: { answer_lost: 1 },
    })
  })

  test('loses a torn last line only: an email whose line is torn was never sent', async () => {
    const file = join(dataDir, 'mail-log.jsonl')
    await reopened(async () => void (await post('op-1')))
    const sendAgain = async (): Promise<void> => {
      const calls = double.log.find('op-2')?.calls ?? 0
      expect(double.log.counts().emails).toBe(1)
      expect((await post('op-2')).headers.get('idempotent-replayed')).toBeNull()
      expect(double.log.find('op-2')).toMatchObject({ calls: calls + 1, emails: [{}] })
    }
    await reopened(sendAgain, () => appendFileSync(file, '{"kind":"email","call":2,"key":"op-2",'))
    // and torn in the middle of the email that was sent just now
    await reopened(sendAgain, () => {
      const lines = readFileSync(file, 'utf8').split('\n')
      const sent = lines.findIndex((line) => line.includes('"email"') && line.includes('op-2'))
      truncateSync(file, Buffer.byteLength(lines.slice(0, sent).join('\n')) + 20)
    })
  })
})
