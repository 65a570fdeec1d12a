import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { audit } from '../../src/report/audit.ts'
import { explain } from '../../src/report/explain.ts'
import { createOutboxBench, type OutboxBench } from '../support/dispatch-bench.ts'
import { busy, done, scripted, unknown } from '../support/scripted-destination.ts'

// what the dispatcher and people really write, read by the reports
const day = 24 * 3_600_000
const mail = scripted({ maxAttempts: 3 })
const bank = scripted({ replaysFailures: true }, { lookup: true })
const fax = scripted({ idempotency: 'none', retentionMs: 0, marginMs: 0 })
let bench: OutboxBench

beforeAll(async () => {
  bench = await createOutboxBench({ mail, bank, fax })
})
afterAll(() => bench.close())
beforeEach(async () => {
  for (const each of [mail, bank, fax]) each.reset()
  await bench.clear()
})

async function rounds(count: number): Promise<void> {
  for (let round = 0; round < count; round++) {
    await bench.run()
    await bench.due()
  }
}

async function story(id: string): Promise<string[]> {
  const found = await explain(bench.db, id)
  return (found?.records ?? []).flatMap((record) => record.timeline.map((entry) => entry.text))
}

const by = { reason: 'the bank said so', actor: 'ada' }

describe('the audit', () => {
  it('holds after everything that can become of an operation', async () => {
    mail.next(busy, unknown, done)
    await bench.add('mail', 'retried')
    await rounds(3)
    mail.next({ kind: 'refused', error: 'no', settlesEarlier: true })
    const dead = await bench.add('mail', 'dead')
    await bench.run()
    fax.next(unknown, done)
    await bench.add('fax', 'twice')
    await rounds(2)

    // forgotten, proved absent, and sent under a new key
    bank.next(unknown, done)
    bank.nextLookup({ kind: 'no_answer', error: 'busy' }, { kind: 'absent' })
    const renewed = await bench.add('bank', 'renewed')
    await bench.run()
    await bench.age(renewed, day)
    await bench.due()
    await rounds(3)
    expect(await bench.operation(renewed)).toMatchObject({ state: 'sent', key_generation: 2 })

    // a person retries, resolves and discards
    const acts = await bench.parts.outboxActs()
    bank.next({ kind: 'refused', error: 'closed', settlesEarlier: true }, done)
    const reopened = await bench.add('bank', 'reopened')
    await bench.run()
    await acts.retry(reopened, by)
    await bench.run()
    expect(await bench.operation(reopened)).toMatchObject({ state: 'sent', key_generation: 2 })
    mail.otherwise(unknown)
    const asked = await bench.add('mail', 'asked')
    await rounds(4)
    // its key is forgotten, and nobody can look: a person is asked
    await bench.age(asked, day)
    await rounds(1)
    expect(await bench.operation(asked)).toMatchObject({
      state: 'uncertain',
      next_attempt_at: null,
    })
    expect((await audit(bench.db)).checks.filter((each) => !each.holds)).toEqual([])
    await acts.resolve(asked, { as: 'sent' }, by)
    await acts.discard(dead, by)

    const report = await audit(bench.db)
    expect(report.checks.filter((each) => !each.holds)).toEqual([])
    const states = await bench.rows<{ state: string; operations: number }>(
      'select state, count(*)::integer as operations from outbox_operations group by state order by state',
    )
    expect(states).toEqual([
      { state: 'discarded', operations: 1 },
      { state: 'sent', operations: 5 },
    ])
  })

  it('finds a second call that a changed contract let through after the key was forgotten', async () => {
    mail.next(unknown, done)
    const id = await bench.add('mail', 'late')
    await bench.run()
    // as if the destination had been declared to remember for a moment only
    await bench.rows('update outbox_operations set window_ms = 0 where operation_id = $1', [id])
    await bench.rows(`update outbox_destinations set window_ms = 0 where destination = 'mail'`)
    await new Promise((resolve) => setTimeout(resolve, 1100))
    await bench.due()
    await bench.run()
    const broken = (await audit(bench.db)).checks.filter((each) => !each.holds)
    expect(broken.map((each) => each.check)).toEqual(['called_past_window'])
    expect(broken[0]?.examples[0]?.key).toBe(`${id} attempt 2`)
    await bench.parts.register()
  })
})

describe('explain', () => {
  it('tells every attempt of an operation as the dispatcher made it', async () => {
    bank.next(unknown, done)
    bank.nextLookup({ kind: 'absent' })
    const id = await bench.add('bank', 'transfer')
    await bench.run()
    await bench.age(id, day)
    await bench.due()
    await rounds(2)
    expect(await story(id)).toEqual([
      'operation transfer to bank was recorded',
      'transfer to bank: call 1, uncertain',
      'transfer to bank: lookup 2, absent',
      'transfer to bank: call 3, sent',
    ])
  })
})
