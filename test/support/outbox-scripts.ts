/**
 * Destinations whose behavior is drawn at random for each operation, within what a destination can do that
 * keeps its contract: what it refuses it never did, and a request that it took up is done before its margin.
 */
import fc from 'fast-check'
import { expect } from 'vitest'
import {
  startAdversary,
  type Act,
  type AdversarialDestination,
  type AdversaryOptions,
} from './adversarial-destination.ts'
import { createOutboxProof, type Opponent } from './outbox-proof.ts'

/** What is done with an operation: these acts, one a request, and then one for ever. */
export interface OperationScript {
  readonly acts: readonly Act[]
  readonly then: 'works' | 'refuses'
}

const harmless: readonly Act[] = [
  'says_nothing',
  'resets',
  'talks_garbage',
  'is_busy_with_it',
  'answers_500',
  'refuses_at_door',
  'asks_to_wait',
  { does: 'asks_to_wait', status: 503, retryAfter: '0' },
  { does: 'asks_to_wait', status: 429, retryAfter: '-1' },
  { does: 'asks_to_wait', status: 503, retryAfter: '99999999999' },
  { does: 'refuses_at_door', status: 403 },
  { does: 'redirects', status: 308, to: 'http://127.0.0.1:1/' },
]

const working: readonly Act[] = [
  'works_and_says_nothing',
  'works_and_resets',
  'works_and_answers_late',
  'works_and_answers_500',
  'works_and_cuts_its_answer',
  'works_and_drips',
]

function scriptOf(acts: readonly Act[], then: 'works' | 'refuses'): fc.Arbitrary<OperationScript> {
  return fc.record({
    acts: fc.array(fc.constantFrom(...acts), { maxLength: 5 }),
    then: fc.constant(then),
  })
}

/** Scripts that a destination can have; `lateWork` where it may still work on what its caller gave up. */
export function operationScripts({
  lateWork,
}: {
  readonly lateWork: boolean
}): fc.Arbitrary<readonly OperationScript[]> {
  const all: readonly Act[] = [
    ...harmless,
    ...working,
    ...(lateWork ? ['works_late' as const] : []),
  ]
  return fc.array(
    fc.oneof(
      { weight: 4, arbitrary: scriptOf(all, 'works') },
      { weight: 1, arbitrary: scriptOf(harmless, 'refuses') },
    ),
    { minLength: 6, maxLength: 16 },
  )
}

/** A destination of a campaign, with a script for each operation in the order in which they are first seen. */
export interface DrawnDestination {
  readonly scripts: readonly OperationScript[]
  readonly adversary: AdversaryOptions
  readonly opponent: Omit<Opponent, 'adversary'>
}

/** What a campaign came to, added up. */
export interface CampaignTotals {
  readonly behaviors: Map<string, number>
  readonly states: Map<string, number>
  readonly outcomes: Map<string, number>
  generations: number
}

/** Totals of nothing. */
export function noTotals(): CampaignTotals {
  return { behaviors: new Map(), states: new Map(), outcomes: new Map(), generations: 0 }
}

/** Plays operations against drawn destinations until nothing is left to do, and asks the oracle. */
export async function playScripts(
  drawn: Readonly<Record<string, DrawnDestination>>,
  orders: number,
  totals: CampaignTotals,
): Promise<void> {
  const adversaries: AdversarialDestination[] = []
  const opponents: Record<string, Opponent> = {}
  for (const [name, { scripts, adversary: options, opponent }] of Object.entries(drawn)) {
    const adversary = await startAdversary({ lateMs: 300, dripMs: 50, ...options })
    const chosen = new Map<string, OperationScript>()
    adversary.script = ({ operation, earlier }) => {
      const script = chosen.get(operation) ?? scripts[chosen.size % scripts.length]
      if (script === undefined) return 'works'
      chosen.set(operation, script)
      return script.acts[earlier] ?? script.then
    }
    adversaries.push(adversary)
    opponents[name] = { adversary, ...opponent }
  }
  const bench = await createOutboxProof(opponents)
  try {
    await bench.pay(orders)
    await bench.dispatch(2)
    await bench.expectQuiet(60_000)
    const rows = await bench.probe.rows<{ what: string; name: string; n: number }>(
      `select 'states' as what, state as name, count(*)::int as n from outbox_operations group by 2
       union all select 'outcomes', coalesce(outcome, 'none'), count(*)::int from outbox_attempts left join outbox_answers using (attempt_id) group by 2
       union all select 'generations', '', count(*)::int from outbox_operations where key_generation > 1`,
    )
    for (const { what, name, n } of rows) {
      if (what === 'generations') totals.generations += n
      else add(what === 'states' ? totals.states : totals.outcomes, name, n)
    }
    for (const { log, internalHits } of adversaries) {
      for (const [behavior, n] of log.hits()) add(totals.behaviors, behavior, n)
      expect(internalHits).toBe(0)
    }
  } finally {
    await bench.close()
    await Promise.all(adversaries.map((each) => each.close()))
  }
}

function add(to: Map<string, number>, name: string, n: number): void {
  to.set(name, (to.get(name) ?? 0) + n)
}

/** A retention so short that campaigns outlive it. */
const short = { retentionMs: 1500, marginMs: 700 } as const
/** From deciding that a call is still within its window to its attempt's row a busy machine needs some of the margin. */
const shortWindowMs = short.retentionMs - short.marginMs / 2

/** The four ways in which a destination can keep its word. */
export const campaign: fc.Arbitrary<Readonly<Record<string, DrawnDestination>>> = fc.record({
  'honors-for-a-day': operationScripts({ lateWork: true }).map((scripts) => ({
    scripts,
    adversary: {},
    opponent: {},
  })),
  'forgets-and-can-be-asked': operationScripts({ lateWork: true }).map((scripts) => ({
    scripts,
    adversary: { remembersMs: short.retentionMs },
    opponent: { declared: { contract: short, looksUp: true }, windowMs: shortWindowMs },
  })),
  'forgets-and-cannot-be-asked': operationScripts({ lateWork: true }).map((scripts) => ({
    scripts,
    adversary: { remembersMs: short.retentionMs },
    opponent: { declared: { contract: short }, windowMs: shortWindowMs },
  })),
  'replays-its-failures': operationScripts({ lateWork: false }).map((scripts) => ({
    scripts,
    adversary: { remembersMs: short.retentionMs, replaysFailures: true },
    opponent: {
      declared: { contract: { ...short, replaysFailures: true }, looksUp: true },
      windowMs: shortWindowMs,
    },
  })),
  'honors-nothing': operationScripts({ lateWork: true }).map((scripts) => ({
    scripts,
    adversary: { honorsKeys: false },
    opponent: { honorsKeys: false, declared: { contract: { idempotency: 'none' as const } } },
  })),
})
