/**
 * What was wrong with a world, a line for each: the tables, every change of access, and the ends of lives. What
 * must be is computed from the lives alone.
 */
import { findViolations } from './oracle.ts'
import type { Life } from './subscription-living.ts'
import { differences, expectedEnd, unjustified } from './subscription-oracle.ts'
import type { PlayedWorld, SubscriptionProof } from './subscription-proof.ts'
import { actualEnds, goneVersion, mirrorViolations, tracedAccess } from './subscription-tables.ts'
import { orderOf, type FactEvent } from './subscription-workflow.ts'
import { accountOf, type ToldBody } from './subscription-world.ts'

/** The order of a life. */
export function orderOfLife(life: Life): string {
  return orderOf(accountOf(life), life.id)
}

/** What was wrong with a world before any pass: the tables, every change of access, and the ends of what was told. */
export async function wrongAfterPlay(
  proof: SubscriptionProof,
  played: PlayedWorld,
): Promise<string[]> {
  const { world, told } = played
  const wrong = await wrongTables(proof, played, false)
  const ends = await actualEnds(proof.pool)
  const facts = new Set([...told.values()].flatMap(({ body }) => factId(body) ?? []))
  const toldLast = lastTold(proof, played)
  for (const life of world.lives) {
    const must = expectedEnd(life, (id) => facts.has(`${life.account} ${id}`))
    const is = ends.get(orderOfLife(life))
    if (toldLast.has(life)) wrong.push(...differences(orderOfLife(life), is, must))
  }
  return wrong
}

function factId(body: ToldBody): string | null {
  if (body.type.startsWith('customer.subscription.')) return null
  return `${body.account ?? ''} ${(body as FactEvent).data.object.id}`
}

/** Lives of which an event came when the subscription was already what it is at the end. */
function lastTold(proof: SubscriptionProof, { told }: PlayedWorld): ReadonlySet<Life> {
  const lives = new Set<Life>()
  for (const { life, version, body } of told.values()) {
    const last = life.steps.at(-1)?.object ?? null
    const isLast = version === (last === null ? goneVersion : Number(last.metadata.version))
    if (isLast && proof.looksAt(body.type)) lives.add(life)
  }
  return lives
}

/** What was wrong after a pass: now every life must have ended in the tables as it did at the provider. */
export async function wrongAfterPass(
  proof: SubscriptionProof,
  played: PlayedWorld,
): Promise<string[]> {
  const wrong = await wrongTables(proof, played, true)
  const ends = await actualEnds(proof.pool)
  const toldLast = lastTold(proof, played)
  for (const life of played.world.lives) {
    // only who was told, or looks again after a day, can know: that is judged then
    if (isGoneUntold(life, toldLast)) continue
    wrong.push(
      ...differences(
        orderOfLife(life),
        ends.get(orderOfLife(life)),
        expectedEnd(life, () => true),
      ),
    )
  }
  return wrong
}

/** Lives that ended with a deletion that nobody told: no list shows what is gone. */
export function goneUntold(proof: SubscriptionProof, played: PlayedWorld): readonly Life[] {
  const toldLast = lastTold(proof, played)
  return played.world.lives.filter((life) => isGoneUntold(life, toldLast))
}

function isGoneUntold(life: Life, toldLast: ReadonlySet<Life>): boolean {
  return life.steps.at(-1)?.object === null && !toldLast.has(life)
}

/** What was wrong after a pass a day later: what was ever looked at is found gone; the rest never gave access. */
export async function wrongAfterADay(
  proof: SubscriptionProof,
  played: PlayedWorld,
): Promise<string[]> {
  const wrong = await wrongTables(proof, played, true)
  const ends = await actualEnds(proof.pool)
  const heardOf = new Set(
    [...played.told.values()]
      .filter(({ body }) => proof.looksAt(body.type))
      .map(({ life }) => life),
  )
  for (const life of goneUntold(proof, played)) {
    const order = orderOfLife(life)
    const is = ends.get(order)
    const must = expectedEnd(life, () => true)
    // of these nobody can know more than that invoices were paid: their state stays the first one
    if (heardOf.has(life)) wrong.push(...differences(order, is, must))
    else if (is !== undefined) wrong.push(...differences(order, is, { ...must, state: is.state }))
  }
  return wrong
}

async function wrongTables(
  proof: SubscriptionProof,
  { world, told, sent }: PlayedWorld,
  passed: boolean,
): Promise<string[]> {
  const lives = new Map(world.lives.map((life) => [orderOfLife(life), life]))
  const trace = await tracedAccess(proof.pool)
  const violations = await findViolations(proof.pool, { deliveries: sent, effects: null }, true)
  return [
    ...violations
      .filter(({ invariant }) => !passed || !notAfterPass.has(invariant))
      .map(({ invariant, key }) => `${invariant} ${key}`),
    ...(await mirrorViolations(proof.pool, [...told.values()], true)),
    ...[...trace].flatMap(([order, changes]) => unjustified(order, lives.get(order), changes)),
  ]
}

/** After a pass there are events that nobody sent. */
const notAfterPass: ReadonlySet<string> = new Set(['I4_forged'])
