import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { honoredMs, MailDouble } from '../../../src/testing/mail-double/mail-double.ts'
import { seededMailFaults } from '../../../src/testing/mail-double/mail-faults.ts'
import { serveMailDouble, type ServedMail } from '../../../src/testing/mail-double/serve.ts'
import {
  compareMail,
  type EmailOperation,
} from '../../../src/testing/simulation/mail-comparison.ts'

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

const bodyOf = (order: string): string => JSON.stringify({ to: 'ada@example.com', order })

async function call(key: string, order: string): Promise<number | null> {
  return fetch(served.url, {
    method: 'POST',
    headers: { 'idempotency-key': key },
    body: bodyOf(order),
    signal: AbortSignal.timeout(150),
  }).then(
    (response) => response.status,
    () => null,
  )
}

function operation(order: string, more: Partial<EmailOperation> = {}): EmailOperation {
  return { operationId: `op-${order}`, orderId: order, state: 'sent', calls: 1, ...more }
}

describe('compareMail', { timeout: 30_000 }, () => {
  test('finds nothing when every email was called until it was answered, whatever went wrong on the way', async () => {
    double.misbehave(seededMailFaults('comparison', 0.6))
    const operations: EmailOperation[] = []
    await Promise.all(
      Array.from({ length: 40 }, async (_, at) => {
        const order = String(1001 + at)
        let calls = 1
        while ((await call(`op-${order}`, order)) !== 202) calls++
        operations.push(operation(order, { calls }))
      }),
    )
    expect(compareMail(operations, double.log)).toEqual([])
    const { calls, emails, absorbed, faults } = double.log.counts()
    expect(emails).toBe(40)
    expect(calls).toBeGreaterThan(60)
    expect(absorbed).toBeGreaterThan(5)
    expect(Object.keys(faults).length).toBeGreaterThan(3)
  })

  test('takes the generations of a key for one email', async () => {
    double.misbehave(() => 'failed_before')
    await call('op-1001', '1001')
    double.misbehave(null)
    await call('op-1001:2', '1001')
    expect(compareMail([operation('1001', { calls: 2 })], double.log)).toEqual([])
  })

  test('names an email that is sent by the ledger only', () => {
    expect(compareMail([operation('1001')], double.log)).toEqual([
      'email op-1001 of order 1001 is sent, but arrived 0 times',
    ])
  })

  test('names an email that arrived twice', async () => {
    await call('op-1001', '1001')
    now += honoredMs
    await call('op-1001', '1001')
    expect(compareMail([operation('1001', { calls: 2 })], double.log)).toEqual([
      'email op-1001 of order 1001 is sent, but arrived 2 times',
    ])
  })

  test.each(['pending', 'uncertain', 'dead', 'canceled'])(
    'names an email that is %s',
    async (state) => {
      await call('op-1001', '1001')
      expect(compareMail([operation('1001', { state })], double.log)).toEqual([
        `email op-1001 of order 1001 is ${state}, and arrived 1 times`,
      ])
    },
  )

  test('names a call that the ledger did not commit before it was made', async () => {
    await call('op-1001', '1001')
    expect(compareMail([operation('1001', { calls: 0 })], double.log)).toEqual([
      'email op-1001 of order 1001 was called 1 times, the ledger knows of 0',
    ])
  })

  test('names an email that the ledger does not know', async () => {
    await call('op-1001', '1001')
    expect(compareMail([], double.log)).toEqual([
      'the mail service was called 1 times for op-1001 and sent 1 emails, the ledger knows no such operation',
    ])
  })

  test('names an email that came with other bytes at another call', async () => {
    await call('op-1001', '1001')
    await call('op-1001', '1002')
    expect(compareMail([operation('1001', { calls: 2 })], double.log)).toEqual([
      'email op-1001 of order 1001 did not come with the same bytes every time',
    ])
  })

  test('names an email that is of another order', async () => {
    await call('op-1001', '1002')
    expect(compareMail([operation('1001')], double.log)).toEqual([
      'email op-1001 of order 1001 arrived as one of order 1002',
    ])
  })
})
