import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import Stripe from 'stripe'
import { expect, test } from 'vitest'
import { createRandom } from '../../../src/testing/stripe-double/random.ts'
import { createStripeDouble } from '../../../src/testing/stripe-double/stripe-double.ts'

const script = fileURLToPath(new URL('./killed-double.ts', import.meta.url))

interface Running {
  child: ChildProcess
  stripe: Stripe
}

async function start(dataDir: string, told: (line: string) => void): Promise<Running> {
  const child = spawn(process.execPath, ['--import', 'tsx', script, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the double ended with ${code}`)))
    createInterface({ input: child.stdout! }).on('line', (line) => {
      if (line.startsWith('port ')) resolve(Number(line.slice(5)))
      else told(line)
    })
  })
  const stripe = new Stripe('sk_test_123', {
    host: '127.0.0.1',
    port,
    protocol: 'http',
    maxNetworkRetries: 0,
    telemetry: false,
  })
  return { child, stripe }
}

async function kill({ child }: Running): Promise<void> {
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

test('whatever the double has said survives kill -9, whole, and a repeated call does its work once', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'stripe-kill-'))
  const random = createRandom('kill')
  const told: string[] = []
  const refunds = new Map<string, string>()
  try {
    for (let round = 0; round < 8; round++) {
      const running = await start(dataDir, (line) => told.push(line))
      const { data } = await running.stripe.paymentIntents.list({ limit: 1 })
      const intent = data[0]!.id
      const calls = Array.from({ length: 20 }, (_, at) => {
        const key = `round-${round}-${at}`
        return running.stripe.refunds
          .create({ payment_intent: intent, amount: 10 }, { idempotencyKey: key })
          .then((refund) => refunds.set(key, refund.id))
          .catch(() => {})
      })
      await sleep(random.integer(0, 40))
      await kill(running)
      await Promise.all(calls)

      // The caller repeats what it got no answer to, with the same key and the same parameters.
      const again = await start(dataDir, (line) => told.push(line))
      for (let at = 0; at < 20; at++) {
        const key = `round-${round}-${at}`
        const refund = await again.stripe.refunds.create(
          { payment_intent: intent, amount: 10 },
          { idempotencyKey: key },
        )
        const known = refunds.get(key)
        if (known !== undefined) expect(refund.id).toBe(known)
        refunds.set(key, refund.id)
      }
      await kill(again)
    }

    const double = createStripeDouble({ signingSecret: 'whsec_test', seed: 'killed', dataDir })
    const paid = told.filter((line) => line.startsWith('paid ')).map((line) => line.split(' '))
    expect(paid.length).toBeGreaterThan(50)
    for (const [, session, refund] of paid) {
      expect(double.find('checkout.session', session!)?.payment_status).toBe('paid')
      expect(double.find('refund', refund!)?.status).toBe('succeeded')
    }
    expect(double.all('refund').filter((refund) => refund.amount === 10)).toHaveLength(160)
    expect(new Set(refunds.values()).size).toBe(160)

    // Each change came with its events or not at all, and none of them twice.
    const events = double.all('event')
    const count = (type: string) => events.filter((event) => event.type === type).length
    expect(new Set(events.map((event) => event.id)).size).toBe(events.length)
    expect(count('refund.created')).toBe(double.all('refund').length)
    const done = double.all('checkout.session').filter((session) => session.status === 'complete')
    expect(count('checkout.session.completed')).toBe(done.length)
    expect(count('charge.updated')).toBe(done.length)
    expect(double.all('payment_intent').every((intent) => intent.status === 'succeeded')).toBe(true)
    expect(double.log.entries('event')).toHaveLength(events.length)
    double.close()
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})
