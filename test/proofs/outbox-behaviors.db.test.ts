import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  startAdversary,
  type Act,
  type AdversarialDestination,
  type AdversaryOptions,
} from '../support/adversarial-destination.ts'
import { createOutboxProof, type Opponent, type OutboxProof } from '../support/outbox-proof.ts'

const orders = 4

/** What one destination does, and what must come of it. */
interface Case {
  /** To the first two requests of each operation; it works from then on. */
  readonly act: Act
  readonly options?: AdversaryOptions
  readonly opponent?: Omit<Opponent, 'adversary'>
  readonly comesTo: 'sent' | 'dead'
  /** Of each operation; exactly. Null: once for each of its requests, three at least. */
  readonly applied: number | null
}

const sent = { comesTo: 'sent', applied: 1 } as const
const dead = { comesTo: 'dead', applied: 0 } as const

const cases: Readonly<Record<string, Case>> = {
  works: { act: 'works', ...sent },
  'works-and-says-nothing': { act: 'works_and_says_nothing', ...sent },
  'works-and-resets': { act: 'works_and_resets', ...sent },
  'works-and-answers-late': { act: 'works_and_answers_late', ...sent },
  'works-late': { act: 'works_late', ...sent },
  'works-and-drips': { act: 'works_and_drips', ...sent },
  'works-and-floods': { act: 'works_and_floods', ...sent },
  'works-and-cuts-its-answer': { act: 'works_and_cuts_its_answer', ...sent },
  'works-and-answers-500': { act: 'works_and_answers_500', ...sent },
  'answers-500': { act: 'answers_500', ...sent },
  'answers-200-with-an-error': {
    act: 'answers_200_with_an_error',
    opponent: { declared: { readsBodies: true } },
    ...dead,
  },
  'says-nothing': { act: 'says_nothing', ...sent },
  resets: { act: 'resets', ...sent },
  'talks-garbage': { act: 'talks_garbage', ...sent },
  'is-busy-with-it': { act: 'is_busy_with_it', ...sent },
  'asks-to-wait': { act: 'asks_to_wait', ...sent },
  'asks-to-wait-for-ages': {
    act: { does: 'asks_to_wait', status: 503, retryAfter: '1000000000' },
    ...sent,
  },
  'asks-to-wait-until-a-date': {
    act: { does: 'asks_to_wait', status: 429, retryAfter: 'Fri, 31 Dec 2100 23:59:59 GMT' },
    ...sent,
  },
  'asks-to-wait-for-less-than-nothing': {
    act: { does: 'asks_to_wait', status: 503, retryAfter: '-5' },
    ...sent,
  },
  'asks-to-wait-in-words': {
    act: { does: 'asks_to_wait', status: 429, retryAfter: 'soon' },
    ...sent,
  },
  refuses: { act: 'refuses', ...dead },
  'refuses-with-400': { act: { does: 'refuses', status: 400 }, ...dead },
  'refuses-at-the-door': { act: 'refuses_at_door', ...dead },
  redirects: { act: 'redirects', ...dead },
  'redirects-with-302': { act: { does: 'redirects', status: 302, to: 'http://[::1]:1/' }, ...dead },
  'honors-no-keys': {
    act: 'works_and_resets',
    options: { honorsKeys: false },
    opponent: { honorsKeys: false, declared: { contract: { idempotency: 'none' } } },
    comesTo: 'sent',
    applied: null,
  },
}

const adversaries = new Map<string, AdversarialDestination>()
let bench: OutboxProof
beforeAll(async () => {
  const opponents: Record<string, Opponent> = {}
  for (const [name, { act, options = {}, opponent = {} }] of Object.entries(cases)) {
    const adversary = await startAdversary({
      lateMs: 600,
      dripMs: 30,
      script: ({ earlier }) => (earlier < 2 ? act : 'works'),
      ...options,
    })
    adversaries.set(name, adversary)
    opponents[name] = { adversary, ...opponent }
  }
  bench = await createOutboxProof(opponents)
  await bench.pay(orders)
  await bench.dispatch(2)
  await bench.expectQuiet(40_000)
}, 90_000)
afterAll(async () => {
  await bench.close()
  await Promise.all([...adversaries.values()].map((each) => each.close()))
})

function adversaryOf(name: string): AdversarialDestination {
  const adversary = adversaries.get(name)
  if (adversary === undefined) throw new Error(`there is no ${name}`)
  return adversary
}

describe('a destination that misbehaves', () => {
  it.each(Object.keys(cases))('ends in one known state for every operation: %s', async (name) => {
    const { act, comesTo, applied } = cases[name] as Case
    const { log } = adversaryOf(name)
    // the fault was really met, by every operation
    const does = typeof act === 'string' ? act : act.does
    expect(log.hits().get(does) ?? 0).toBeGreaterThanOrEqual(orders)
    expect(
      await bench.probe.rows(
        `select state, count(*)::int as n from outbox_operations where destination = $1 group by state`,
        [name],
      ),
    ).toEqual([{ state: comesTo, n: orders }])
    const times = [...log.applications().values()]
    if (applied === 0) expect(times).toEqual([])
    else if (applied === null) expect(Math.min(...times)).toBeGreaterThanOrEqual(3)
    else expect(times).toEqual(Array.from({ length: orders }, () => applied))
  })

  it('is never followed to where it redirects', () => {
    expect(adversaryOf('redirects').internalHits).toBe(0)
  })

  it('is not listened to for longer than its answer is of use', () => {
    const { flooded, log } = adversaryOf('works-and-floods')
    const floods = log.hits().get('works_and_floods') ?? 0
    expect(floods).toBeGreaterThanOrEqual(orders)
    // what the kernel's buffers take beyond the 4 KiB that are kept
    expect(flooded / floods).toBeLessThan(16 * 1024 * 1024)
  })

  it('does not hold up another', async () => {
    const [row] = await bench.probe.rows<{ held_up: number; slow: number }>(
      `select count(*) filter (where destination = 'works')::int as held_up,
         count(*) filter (where destination = 'works-and-says-nothing')::int as slow
       from outbox_operations where finished_at >= (
         select min(finished_at) from outbox_operations where destination = 'works-and-says-nothing')`,
    )
    expect(row).toEqual({ held_up: 0, slow: orders })
  })

  it('has every answer kept within 4 KiB', async () => {
    const [row] = await bench.probe.rows<{ most: number; n: number }>(
      `select max(octet_length(answer))::int as most, count(*)::int as n from outbox_answers where answer is not null`,
    )
    expect(row?.n).toBeGreaterThan(orders)
    expect(row?.most).toBeLessThanOrEqual(4096)
  })

  it('shows every one of its calls where it honors no keys', async () => {
    const name = 'honors-no-keys'
    const calls = adversaryOf(name).log.calls()
    expect(calls.length).toBeGreaterThanOrEqual(3 * orders)
    expect(
      await bench.probe.rows(
        `select promise, sum(attempts)::int as attempts from outbox_operations where destination = $1 group by 1`,
        [name],
      ),
    ).toEqual([{ promise: 'at_least_once', attempts: calls.length }])
  })
})
