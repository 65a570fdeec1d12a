/**
 * An hour of a shop's traffic that meets an outage, and what comes of it once the outage is over: how long
 * until everything is decided, how long until the provider was gone through, and what was found.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  expectedFindings,
  findingsOf,
  judgeFindings,
  ledgerDifferences,
  ledgerOf,
  truthOf,
} from './reconcile-oracle.ts'
import { providerTruth, type ReconcileProof } from './reconcile-proof.ts'
import { reconcileViolations } from './reconcile-tables.ts'
import { eventsOf, makeWorld, type Fate, type World } from './reconcile-world.ts'

/** Orders of the hour; about seven events each. */
const ordersAnHour = 250

/** What was measured. Times are in milliseconds after the end of the outage. */
export interface Recovery {
  readonly events: number
  /** Deliveries that were answered 200 while the outage lasted. */
  readonly accepted: number
  /** When the ledger was what the provider's objects add up to. */
  readonly recoveredMs: number
  /** When a pass had gone through everything. */
  readonly reconciledMs: number
  /** Findings by kind and state: `event_missing closed`. */
  readonly findings: Readonly<Record<string, number>>
  /** What is wrong after all; none when everything recovered. */
  readonly wrong: readonly string[]
}

/** An hour in which the provider did its part. */
export function hourOfTraffic(seed: string): World {
  return makeWorld(seed, ordersAnHour, { lossy: 0, dropped: 0, hidden: 0, seeded: 0 })
}

/** Sends deliveries of the hour, all of them or the first `most`; the statuses that they were answered with. */
export async function sendAll(
  proof: ReconcileProof,
  { arrivals }: World,
  most: number = arrivals.length,
): Promise<readonly number[]> {
  const statuses: number[] = []
  const waiting = arrivals.slice(0, most)
  const sender = async (): Promise<void> => {
    for (let event = waiting.shift(); event !== undefined; event = waiting.shift())
      statuses.push(await proof.send(event))
  }
  await Promise.all(Array.from({ length: 64 }, sender))
  return statuses
}

/** Waits until the shop has recovered by itself and a whole pass was made, and judges the end. */
export async function recovery(
  proof: ReconcileProof,
  world: World,
  {
    accepted,
    fate,
    endedAt,
  }: { readonly accepted: number; readonly fate: Fate; readonly endedAt: number },
): Promise<Recovery> {
  const truth = truthOf(world.double)
  const isRecovered = async (): Promise<boolean> =>
    ledgerDifferences(await ledgerOf(proof.pool), truth).size === 0
  const recoveredMs = await within(endedAt, isRecovered)
  const reconciledMs = await within(endedAt, () => isReconciled(proof))
  // what every event came to if it was never delivered, or always
  const seen = { ...world, fates: new Map(eventsOf(world).map(({ id }) => [id, fate])) }
  const found = await findingsOf(proof.pool)
  const violations = await reconcileViolations(proof.pool, providerTruth(seen))
  const findings: Record<string, number> = {}
  for (const { kind, state } of found)
    findings[`${kind} ${state}`] = (findings[`${kind} ${state}`] ?? 0) + 1
  return {
    events: eventsOf(world).length,
    accepted,
    recoveredMs,
    reconciledMs,
    findings,
    wrong: [
      ...judgeFindings(expectedFindings(seen, []), found),
      ...violations.map(({ invariant, key }) => `${invariant} ${key}`),
    ],
  }
}

/** A pass that began after everything was there has come to its end, and nothing waits. */
async function isReconciled({ pool }: ReconcileProof): Promise<boolean> {
  const { rows } = await pool.query<{ done: boolean }>(
    `select exists (select from reconciliation_runs where state = 'complete')
       and not exists (select from inbox_ready) and not exists (select from findings where kind = 'event_missing' and state <> 'closed') as done`,
  )
  return rows[0]?.done === true
}

async function within(endedAt: number, holds: () => Promise<boolean>): Promise<number> {
  const deadline = performance.now() + 60_000
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error('the shop did not recover within a minute')
    await sleep(50)
  }
  return Math.round(performance.now() - endedAt)
}

/** Shows the figures where somebody wants to write them down: HOOKLEDGER_FIGURES=1. */
export function showFigures(name: string, { wrong: _, ...figures }: Recovery): void {
  if (process.env['HOOKLEDGER_FIGURES'])
    process.stderr.write(`${name}: ${JSON.stringify(figures)}\n`)
}
