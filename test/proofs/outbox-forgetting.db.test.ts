import { afterEach, describe, expect, it } from 'vitest'
import {
  startAdversary,
  type AdversarialDestination,
  type AdversaryOptions,
} from '../support/adversarial-destination.ts'
import { createOutboxProof, type Opponent, type OutboxProof } from '../support/outbox-proof.ts'
import { until } from '../support/probe.ts'

const hourMs = 3_600_000
const orders = 3

/** A day's retention, and nothing that is tried again by itself before the test says so. */
const patient = { callMs: 5000, leaseMs: 10_000, firstRetryMs: 60_000, maxRetryMs: 60_000 }

let bench: OutboxProof
let mail: AdversarialDestination
afterEach(async () => {
  await bench.close()
  await mail.close()
})

/** Orders whose first call nobody knows the outcome of, and no dispatcher. */
async function startUncertain(
  options: AdversaryOptions,
  declared: Omit<NonNullable<Opponent['declared']>, 'contract'> = {},
  contract: NonNullable<Opponent['declared']>['contract'] = {},
): Promise<void> {
  mail = await startAdversary(options)
  const opponent = {
    adversary: mail,
    declared: { ...declared, contract: { ...patient, ...contract } },
  }
  bench = await createOutboxProof({ mail: opponent })
  await bench.pay(orders)
  await bench.dispatch()
  await until(
    () => bench.states(),
    (states) => states['uncertain'] === orders,
  )
  expect(mail.log.calls()).toHaveLength(orders)
}

/** So many hours pass, for the destination and for the outbox alike. */
async function pass(hours: number): Promise<void> {
  mail.moveClock(hours * hourMs)
  await bench.probe.rows(
    `update outbox_operations set first_attempt_at = first_attempt_at - $1 * interval '1 h', next_attempt_at = now() where state = 'uncertain'`,
    [hours],
  )
}

/** Every operation is looked up so many times in all, each time as soon as the one before is written. */
async function lookAgain(times: number): Promise<void> {
  for (let n = 1; n <= times; n++) {
    await until(
      () =>
        bench.probe.rows<{ n: number }>(
          `select count(*)::int as n from outbox_answers join outbox_attempts using (attempt_id) where kind = 'lookup'`,
        ),
      ([row]) => row?.n === n * orders,
    )
    await bench.probe.rows(
      `update outbox_operations set next_attempt_at = now() where next_attempt_at is not null`,
    )
  }
}

const lookups = (): number => mail.log.entries.filter(({ kind }) => kind === 'looked_up').length
const applied = (): readonly number[] => [...mail.log.applications().values()]
const once = Array.from({ length: orders }, () => 1)

describe('a destination that forgets ids after a day', () => {
  it('is called again under the same id inside the day, and does nothing twice', async () => {
    await startUncertain({
      script: ({ earlier }) => (earlier === 0 ? 'works_and_resets' : 'works'),
    })
    await pass(22)
    await bench.expectQuiet()
    expect(await bench.states()).toEqual({ sent: orders })
    expect(mail.log.calls().map(({ work }) => work)).toEqual(
      ['applied', 'replayed'].flatMap((work) => once.map(() => work)),
    )
  })

  it('is not called again past the day: what it did is found by a lookup', async () => {
    await startUncertain({ script: () => 'works_and_resets' }, { looksUp: true })
    await pass(25)
    await bench.expectQuiet()
    expect(await bench.states()).toEqual({ sent: orders })
    expect(mail.log.calls()).toHaveLength(orders)
    expect(lookups()).toBe(orders)
    expect(applied()).toEqual(once)
  })

  it('is asked already when the margin begins, since its clock is not ours', async () => {
    await startUncertain({ script: () => 'works_and_resets' }, { looksUp: true })
    await pass(23.5)
    await bench.expectQuiet()
    expect(mail.log.calls()).toHaveLength(orders)
    expect(lookups()).toBe(orders)
  })

  it('is called again past the day after it proved that nothing was done', async () => {
    await startUncertain(
      { script: ({ earlier }) => (earlier === 0 ? 'resets' : 'works') },
      { looksUp: true },
    )
    await pass(25)
    await bench.expectQuiet()
    expect(await bench.states()).toEqual({ sent: orders })
    expect(applied()).toEqual(once)
    expect(lookups()).toBe(orders)
    expect(mail.log.calls().every(({ key }) => !key.includes(':'))).toBe(true)
  })

  it('gets a new id, stored and shown, where it would answer the old one with its stored failure', async () => {
    await startUncertain(
      { script: ({ earlier }) => (earlier === 0 ? 'answers_500' : 'works'), replaysFailures: true },
      { looksUp: true },
      { replaysFailures: true },
    )
    await pass(22)
    await until(
      async () => mail.log.calls().length,
      (calls) => calls === 2 * orders,
    )
    // the stored failure again, whatever the destination would do by now
    expect(mail.log.calls().map(({ answer }) => answer?.status)).toEqual(
      Array.from({ length: 2 * orders }, () => 500),
    )
    await until(
      () => bench.states(),
      (states) => states['uncertain'] === orders,
    )
    await pass(3)
    await bench.expectQuiet()
    expect(await bench.states()).toEqual({ sent: orders })
    expect(applied()).toEqual(once)
    expect(
      await bench.probe.rows(
        `select o.key_generation, array_agg(a.key_generation order by a.number) as attempts
         from outbox_operations o join outbox_attempts a on a.operation_id = o.operation_id group by o.operation_id, 1`,
      ),
    ).toEqual(once.map(() => ({ key_generation: 2, attempts: [1, 1, 1, 2] })))
  })

  it('leaves it to a person where it cannot be asked', async () => {
    await startUncertain({
      script: ({ earlier }) => (earlier === 0 ? 'works_and_resets' : 'works'),
    })
    await pass(25)
    await bench.expectQuiet()
    expect(await bench.states()).toEqual({ uncertain: orders })
    expect(mail.log.calls()).toHaveLength(orders)
    expect(
      await bench.probe.rows(
        `select kind, class, severity, state, owner <> '' as owned, due_at > now() as due from findings`,
      ),
    ).toEqual(
      once.map(() => ({
        kind: 'operation_uncertain',
        class: 'lag',
        severity: 'high',
        state: 'open',
        owned: true,
        due: true,
      })),
    )
  })

  it.each(['no_answer', 'garbage'] as const)(
    'is asked again where its lookup says nothing of use (%s)',
    async (says) => {
      let asked = 0
      await startUncertain(
        {
          script: () => 'works_and_resets',
          lookup: () => (asked++ < 2 * orders ? says : 'truth'),
        },
        { looksUp: true },
      )
      await pass(25)
      await lookAgain(3)
      await bench.expectQuiet()
      expect(await bench.states()).toEqual({ sent: orders })
      expect(applied()).toEqual(once)
    },
  )

  it('leaves it to a person where its lookup never says anything', async () => {
    await startUncertain(
      { script: () => 'works_and_resets', lookup: () => 'no_answer' },
      { looksUp: true },
      { maxAttempts: 3 },
    )
    await pass(25)
    await lookAgain(3)
    await bench.expectQuiet()
    expect(await bench.states()).toEqual({ uncertain: orders })
    expect(lookups()).toBe(3 * orders)
    expect(applied()).toEqual(once)
  })
})
