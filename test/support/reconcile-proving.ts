/**
 * Proves one world: plays it, passes over it, asks the oracle, passes again, and tells what was wrong,
 * a line for each. None: everything seeded was found, nothing was invented, and the second pass changed
 * nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { expectedCredits } from '../../src/testing/simulation/expected-outcome.ts'
import {
  expectedFindings,
  findingsOf,
  judgeFindings,
  ledgerDifferences,
  ledgerOf,
  truthOf,
} from './reconcile-oracle.ts'
import { workOff } from './probe.ts'
import { wrongRows, type ReconcileProof } from './reconcile-proof.ts'
import { mend } from './reconcile-mending.ts'
import type { SeedName } from './reconcile-seeds.ts'
import { changesBetween, settledState } from './reconcile-tables.ts'
import { makeWorld, type World, type WorldChances } from './reconcile-world.ts'

/** What proving a world came to. */
export interface Proven {
  readonly world: World
  /** The contradictions that came to something. */
  readonly sown: readonly SeedName[]
  readonly wrong: readonly string[]
}

/** Plays a world of so many orders and proves the passes over it, as far as nothing is wrong. */
export async function proveWorld(
  proof: ReconcileProof,
  seed: string,
  orders: number,
  chances: Partial<WorldChances> = {},
): Promise<Proven> {
  const world = makeWorld(seed, orders, chances)
  const sown = await proof.play(world)
  const wrong: string[] = []
  const tell = (lines: readonly string[]): void => {
    wrong.push(...lines.map((line) => `world ${seed}: ${line}`))
  }
  const [complaints] = await Promise.all([incomplete(proof), race(proof, world)])
  tell(complaints)
  await workOff(proof.hookledger)
  const different = new Set(
    ledgerDifferences(await ledgerOf(proof.pool), truthOf(world.double)).keys(),
  )
  tell(judgeFindings(expectedFindings(world, sown, different), await findingsOf(proof.pool)))
  tell(await wrongRows(proof, world, sown))
  tell(await wrongLedger(proof, world))
  if (wrong.length === 0) tell(await changedAgain(proof))
  if (wrong.length === 0) tell(await mend(proof, world, sown))
  return { world, sown: sown.map(({ name }) => name), wrong }
}

/** What a second pass over the same changes, which must be nothing. */
async function changedAgain(proof: ReconcileProof): Promise<readonly string[]> {
  const before = await settledState(proof.pool)
  const complaints = await incomplete(proof)
  const changes = changesBetween(before, await settledState(proof.pool))
  return [...complaints, ...changes.map((line) => `second pass: ${line}`)]
}

/** Delivers beside a pass, a little at a time. */
async function race(proof: ReconcileProof, { racing }: World): Promise<void> {
  for (const event of racing) {
    await sleep(5)
    await proof.deliver(event)
  }
}

async function incomplete(proof: ReconcileProof): Promise<readonly string[]> {
  const { complete, runs } = await proof.pass()
  return complete ? [] : [`a pass was not complete: ${runs.map(({ error }) => error).join(', ')}`]
}

/** Orders that nothing contradictory was done to must be what the provider's objects add up to. */
async function wrongLedger({ pool }: ReconcileProof, world: World): Promise<readonly string[]> {
  const seeded = new Set(
    world.orders.flatMap(({ order, seed }) => (seed === null ? [] : [order.id, `${order.id}-b`])),
  )
  const differences = ledgerDifferences(await ledgerOf(pool), truthOf(world.double))
  return [
    ...[...differences]
      .filter(([id]) => !seeded.has(id))
      .map(([id, lines]) => `order ${id} (${scenarioOf(world, id)}): ${lines.join('; ')}`),
    ...(await wrongCredits(pool, world)),
  ]
}

function scenarioOf({ orders, fates }: World, id: string): string {
  const found = orders.find(({ order }) => order.id === id)
  if (found === undefined) return 'unknown'
  const lost = found.events.filter((event) => fates.get(event.id) !== 'delivered')
  return `${found.order.scenario}, ${found.order.naming}, ${found.order.opening}; ${lost.map((event) => `${event.type} ${fates.get(event.id)}`).join(', ')}`
}

async function wrongCredits(
  pool: ReconcileProof['pool'],
  { double }: World,
): Promise<readonly string[]> {
  const must = new Map<string, number>()
  for (const { account, credits } of expectedCredits(double))
    must.set(account, (must.get(account) ?? 0) + credits)
  const { rows } = await pool.query<{ id: string; credits: number }>(
    `select account_id as id, credits::int from shop.accounts`,
  )
  const is = new Map(rows.map(({ id, credits }) => [id, credits]))
  return [...new Set([...must.keys(), ...is.keys()])]
    .filter((id) => must.get(id) !== is.get(id))
    .map((id) => `account ${id} has ${is.get(id)} credits, must have ${must.get(id)}`)
}
