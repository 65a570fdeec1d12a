import { describe, expect, it } from 'vitest'
import { defaultContract, type DestinationContract } from '../../src/outbox/destination.ts'
import {
  planOf,
  stepAfter,
  type AttemptOutcome,
  type DestinationTraits,
  type OperationStanding,
} from '../../src/outbox/next-step.ts'

const hour = 3_600_000
/** The window is the retention of a day less the margin of an hour. */
const windowMs = 23 * hour

const traits = (
  contract: Partial<DestinationContract> = {},
  canLookUp = false,
): DestinationTraits => ({ contract: { ...defaultContract, ...contract }, canLookUp })

const standing = (given: Partial<OperationStanding> = {}): OperationStanding => ({
  uncertain: false,
  generation: 1,
  keyAgeMs: 0,
  calls: 1,
  lookups: 0,
  ...given,
})

const outcomes: Readonly<Record<string, AttemptOutcome>> = {
  sent: { kind: 'sent', receipt: { id: 1 } },
  retry: { kind: 'retry', error: 'busy' },
  'refused at the door': { kind: 'refused', error: '401', settlesEarlier: false },
  'refused itself': { kind: 'refused', error: '422', settlesEarlier: true },
  uncertain: { kind: 'uncertain', error: 'reset' },
  died: { kind: 'died', error: 'lease' },
  present: { kind: 'present', receipt: { id: 2 } },
  absent: { kind: 'absent' },
  no_answer: { kind: 'no_answer', error: 'down' },
}

describe('planOf', () => {
  it('calls what nothing is unknown of, and begins a new window when the old one is over', () => {
    expect(planOf(standing({ keyAgeMs: null, calls: 0 }), traits())).toEqual({
      act: 'call',
      newWindow: true,
    })
    expect(planOf(standing({ keyAgeMs: windowMs - 1 }), traits())).toMatchObject({
      newWindow: false,
    })
    expect(planOf(standing({ keyAgeMs: windowMs }), traits())).toMatchObject({ newWindow: true })
  })

  it.each([
    [
      'inside the window: the same key again',
      windowMs - 1,
      false,
      { act: 'call', newWindow: false },
    ],
    ['at its end, with a lookup: that', windowMs, true, { act: 'lookup' }],
    ['at its end, without one: a person', windowMs, false, { act: 'ask' }],
  ])('an uncertain operation %s', (_, keyAgeMs, canLookUp, plan) => {
    expect(planOf(standing({ uncertain: true, keyAgeMs }), traits({}, canLookUp))).toMatchObject(
      plan,
    )
  })

  it('goes on with an uncertain operation inside the window, however often it was called', () => {
    const used = standing({ uncertain: true, calls: 100, keyAgeMs: hour })
    expect(planOf(used, traits())).toEqual({ act: 'call', newWindow: false })
    expect(planOf(used, traits({}, true))).toEqual({ act: 'call', newWindow: false })
    const outcome = { kind: 'uncertain', error: 'no answer' } as const
    const told = (calls: number): unknown =>
      stepAfter({ ...used, calls }, outcome, traits(), 0).finding
    expect([told(9), told(10)]).toEqual([null, 'operation_uncertain'])
  })

  it('asks a person once the lookups are used up', () => {
    const used = standing({ uncertain: true, keyAgeMs: windowMs, lookups: 10 })
    expect(planOf(used, traits({}, true))).toMatchObject({ act: 'ask' })
    expect(planOf({ ...used, lookups: 9 }, traits({}, true))).toEqual({ act: 'lookup' })
  })

  it('looks first, else sends again, where no id is honored', () => {
    const none = { idempotency: 'none', retentionMs: 0, marginMs: 0 } as const
    const uncertain = standing({ uncertain: true })
    expect(planOf(uncertain, traits(none, true))).toEqual({ act: 'lookup' })
    expect(planOf(uncertain, traits(none))).toEqual({ act: 'call', newWindow: true })
    expect(planOf({ ...uncertain, calls: 10 }, traits(none))).toMatchObject({ act: 'ask' })
  })
})

describe('stepAfter', () => {
  it.each([
    ['sent', { state: 'sent', receipt: { id: 1 }, nextInMs: null, finding: null }],
    ['present', { state: 'sent', receipt: { id: 2 }, nextInMs: null, finding: null }],
    ['retry', { state: 'pending', finding: null, newWindow: false, newGeneration: false }],
    ['refused at the door', { state: 'dead', nextInMs: null, finding: 'operation_dead' }],
    ['refused itself', { state: 'dead', nextInMs: null, finding: 'operation_dead' }],
    ['uncertain', { state: 'uncertain', finding: null }],
    ['died', { state: 'uncertain', nextInMs: 0, finding: null }],
  ])('%s, of an operation that nothing is unknown of', (name, step) => {
    expect(stepAfter(standing(), outcomes[name] as AttemptOutcome, traits(), 0.5)).toMatchObject(
      step,
    )
  })

  it.each([
    ['sent', { state: 'sent' }],
    ['present', { state: 'sent' }],
    ['refused itself', { state: 'dead', finding: 'operation_dead' }],
    ['retry', { state: 'uncertain', newGeneration: false, newWindow: false }],
    ['refused at the door', { state: 'uncertain', finding: 'operation_uncertain' }],
    ['uncertain', { state: 'uncertain' }],
    ['died', { state: 'uncertain', nextInMs: 0 }],
    ['no_answer', { state: 'uncertain' }],
    ['absent', { state: 'pending', nextInMs: 0, newWindow: true }],
  ])('%s, of an operation of which nobody knows', (name, step) => {
    const before = standing({ uncertain: true, lookups: name === 'no_answer' ? 1 : 0 })
    const outcome = outcomes[name] as AttemptOutcome
    expect(stepAfter(before, outcome, traits({}, true), 0.5)).toMatchObject(step)
  })

  it('takes a new key after proof of absence only where the old one would be answered with a stored failure', () => {
    const before = standing({ uncertain: true, keyAgeMs: windowMs })
    const after = (contract: Partial<DestinationContract>): boolean =>
      stepAfter(before, { kind: 'absent' }, traits(contract, true), 0.5).newGeneration
    expect(after({ replaysFailures: true })).toBe(true)
    expect(after({ replaysFailures: false })).toBe(false)
    expect(after({ replaysFailures: true, idempotency: 'none', retentionMs: 0, marginMs: 0 })).toBe(
      false,
    )
  })

  it('gives up after proof of absence when the calls are used up: nothing is unknown then', () => {
    const before = standing({ uncertain: true, keyAgeMs: windowMs, calls: 10 })
    expect(stepAfter(before, { kind: 'absent' }, traits({}, true), 0.5)).toMatchObject({
      state: 'dead',
      finding: 'operation_dead',
    })
  })

  it('waits as the destination asks, but never longer than its contract allows', () => {
    const wait = (retryAfterMs: number, random = 0): number | null =>
      stepAfter(standing(), { kind: 'retry', error: 'x', retryAfterMs }, traits(), random).nextInMs
    expect(wait(60_000)).toBe(60_000)
    expect(wait(60_000, 0.5)).toBe(60_500)
    expect(wait(10 * hour)).toBe(hour)
    expect(wait(0)).toBe(500)
    expect(wait(Number.NaN)).toBe(500)
    expect(wait(-5)).toBe(500)
  })

  it('grows its pauses from the first to the longest, with jitter', () => {
    const pauses = Array.from(
      { length: 9 },
      (_, n) =>
        stepAfter(
          standing({ calls: n + 1 }),
          { kind: 'retry', error: 'x' },
          traits({ maxRetryMs: 60_000 }),
          0.999999,
        ).nextInMs,
    )
    expect(pauses).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
  })

  it('raises a finding at once when what is uncertain can neither be sent again nor looked up', () => {
    const before = standing({ keyAgeMs: windowMs })
    expect(stepAfter(before, { kind: 'uncertain', error: 'x' }, traits(), 0)).toMatchObject({
      state: 'uncertain',
      nextInMs: null,
      finding: 'operation_uncertain',
    })
  })

  it('looks at where the window will be after the pause, not where it is', () => {
    const before = standing({ keyAgeMs: windowMs - 10, uncertain: true })
    expect(stepAfter(before, { kind: 'uncertain', error: 'x' }, traits(), 0)).toMatchObject({
      nextInMs: null,
      finding: 'operation_uncertain',
    })
  })
})

describe('every combination', () => {
  const all: [OperationStanding, DestinationTraits][] = []
  for (const uncertain of [false, true])
    for (const keyAgeMs of [null, 0, hour, windowMs - 1, windowMs, 2 * windowMs])
      for (const calls of [0, 1, 9, 10, 11])
        for (const lookups of [0, 1, 9, 10])
          for (const canLookUp of [false, true])
            for (const replaysFailures of [false, true])
              for (const idempotency of ['key', 'none'] as const) {
                const contract = idempotency === 'key' ? {} : { retentionMs: 0, marginMs: 0 }
                all.push([
                  standing({ uncertain, keyAgeMs, calls, lookups }),
                  traits({ ...contract, idempotency, replaysFailures }, canLookUp),
                ])
              }

  it('never calls an uncertain operation under a key that its destination may have forgotten', () => {
    let seen = 0
    for (const [at, of] of all) {
      const plan = planOf(at, of)
      if (!at.uncertain || of.contract.idempotency === 'none' || plan.act !== 'call') continue
      seen++
      expect((at.keyAgeMs ?? 0) < windowMs).toBe(true)
      expect(plan.newWindow).toBe(at.keyAgeMs === null)
    }
    expect(seen).toBeGreaterThan(50)
  })

  it('never plans a lookup where there is none', () => {
    for (const [at, of] of all)
      if (planOf(at, of).act === 'lookup') expect(of.canLookUp && at.uncertain).toBe(true)
  })

  it('ends what is uncertain as dead only by the word of its destination about it', () => {
    let seen = 0
    for (const [at, of] of all) {
      if (!at.uncertain) continue
      for (const outcome of Object.values(outcomes)) {
        const step = stepAfter(at, outcome, of, 0.5)
        if (step.state !== 'dead') continue
        seen++
        const settles =
          outcome.kind === 'absent' || (outcome.kind === 'refused' && outcome.settlesEarlier)
        expect(settles).toBe(true)
      }
    }
    expect(seen).toBeGreaterThan(50)
  })

  it('takes a new key only after proof of absence', () => {
    for (const [at, of] of all)
      for (const outcome of Object.values(outcomes))
        if (stepAfter(at, outcome, of, 0.5).newGeneration) expect(outcome.kind).toBe('absent')
  })

  it('leaves nothing silently stuck: it goes on at some time, or a person is told', () => {
    for (const [at, of] of all) {
      for (const outcome of Object.values(outcomes)) {
        const step = stepAfter(at, outcome, of, 0.5)
        if (step.state === 'sent') expect([step.nextInMs, step.finding]).toEqual([null, null])
        else if (step.nextInMs === null) expect(step.finding).not.toBeNull()
        if (step.state === 'pending') expect(step.nextInMs).not.toBeNull()
        if (step.state === 'dead') expect(step.nextInMs).toBeNull()
        if (step.nextInMs !== null) expect(step.nextInMs).toBeGreaterThanOrEqual(0)
      }
    }
  })

  it('says sent only for what the destination said was done', () => {
    for (const [at, of] of all)
      for (const outcome of Object.values(outcomes))
        expect(stepAfter(at, outcome, of, 0.5).state === 'sent').toBe(
          outcome.kind === 'sent' || outcome.kind === 'present',
        )
  })
})
