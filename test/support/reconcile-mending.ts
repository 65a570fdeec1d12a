/**
 * Mends what passes left open, as a person with the command line would: the plan that is made without a
 * choice where there is one, else what a shop would choose; and tells what is wrong afterwards, a line each.
 */
import { HookledgerError } from '../../src/core/errors.ts'
import { partsOf } from '../../src/hookledger.ts'
import { ledgerDifferences, ledgerOf, truthOf } from './reconcile-oracle.ts'
import { wrongRows, type ReconcileProof } from './reconcile-proof.ts'
import type { SeedName, Sown } from './reconcile-seeds.ts'
import { changesBetween, settledState } from './reconcile-tables.ts'
import type { World } from './reconcile-world.ts'

/** What a repair brings back entirely to what the provider's objects add up to. */
const mended: ReadonlySet<SeedName> = new Set<SeedName>([
  'state changed',
  'entitlement withheld',
  'entitlement given',
  'quantity changed',
  'refund passed over',
  'dispute passed over',
  'payment passed over',
])

/** What is chosen where there is no plan without a choice: nothing here can take an effect back. */
const chosen: Readonly<Record<string, { readonly choice: string } | { readonly to: string }>> = {
  paid_here: { to: 'canceled' },
  order_stuck: { to: 'canceled' },
}

/** Repairs every open finding, passes again, and judges. */
export async function mend(
  proof: ReconcileProof,
  world: World,
  sown: readonly Sown[],
): Promise<readonly string[]> {
  // somebody mends the workflow first: a repair decides by the code that there is
  proof.mendWorkflow()
  const wrong: string[] = []
  for (const finding of await openFindings(proof)) wrong.push(...(await repair(proof, finding)))
  // the repairs alone, before any pass can help
  wrong.push(...(await unmended(proof, world, sown)))
  const { complete, runs } = await proof.pass()
  if (!complete)
    wrong.push(`the pass after the repairs: ${runs.map(({ error }) => error).join(', ')}`)
  const left = await openFindings(proof)
  wrong.push(...left.map(({ kind, order }) => `still open after its repair: ${kind} of ${order}`))
  wrong.push(...(await wrongRows(proof, world, sown)))
  wrong.push(...(await unmended(proof, world, sown)))
  wrong.push(...(await unexplained(proof, world)))
  const before = await settledState(proof.pool)
  await proof.pass()
  const changes = changesBetween(before, await settledState(proof.pool))
  return [...wrong, ...changes.map((line) => `a pass after the repairs: ${line}`)]
}

interface OpenFinding {
  readonly id: string
  readonly kind: string
  readonly order: string | null
}

/** What somebody did to an order's row is in the way of every other repair of it: first. */
async function openFindings({ pool }: ReconcileProof): Promise<readonly OpenFinding[]> {
  const { rows } = await pool.query<OpenFinding>(
    `select finding_id::text as id, kind, order_id as order from findings where state in ('open', 'repairing') order by kind = 'tampered' desc, finding_id`,
  )
  return rows
}

/** The plan that there is, or the choice that a shop would make. */
async function repair(
  { hookledger }: ReconcileProof,
  { id, kind, order }: OpenFinding,
): Promise<readonly string[]> {
  const repairs = await partsOf(hookledger).repairs()
  const refused: string[] = []
  const by = { reason: `seen at the provider: ${kind}`, actor: 'ada' }
  for (const choice of [{}, chosen[kind], { choice: 'keep' }]) {
    if (choice === undefined) continue
    try {
      await repairs.apply(id, by, choice)
      return []
    } catch (error) {
      if (isChoice(error)) {
        refused.push(error.message)
        continue
      }
      // an earlier repair of the same order may have ended it
      if (error instanceof HookledgerError && error.code === 'HKL_FINDING_NOT_OPEN') return []
      const what = error instanceof Error ? error.message : 'no error'
      return [`${kind} of ${order} cannot be repaired: ${what}`]
    }
  }
  return [`${kind} of ${order} leaves no choice: ${refused.join('; ')}`]
}

function isChoice(error: unknown): error is HookledgerError {
  return (
    error instanceof HookledgerError &&
    (error.code === 'HKL_REPAIR_CHOICE' || error.code === 'HKL_REPAIR_IMPOSSIBLE')
  )
}

/** Orders that a repair brings back entirely, and that are not what the provider says. */
async function unmended(
  { pool }: ReconcileProof,
  world: World,
  sown: readonly Sown[],
): Promise<readonly string[]> {
  const strict = new Set(
    sown.filter((each) => mended.has(each.name) && !goesOn(world, each)).map(({ into }) => into),
  )
  return [...ledgerDifferences(await ledgerOf(pool), truthOf(world.double))]
    .filter(([id]) => strict.has(id))
    .map(([id, lines]) => `order ${id} after its repair: ${lines.join('; ')}`)
}

/**
 * An order whose events went on from what somebody had made of it: its decisions say then what they would not
 * have said, and restoring what they say is a matter for a person.
 */
function goesOn({ orders, fates }: World, { name, into }: Sown): boolean {
  if (!/^(state|entitlement|quantity) /.test(name)) return false
  const events = orders.find(({ order }) => order.id === into)?.events ?? []
  return events.some(({ id }) => fates.get(id) !== 'delivered')
}

/** Orders that are not what the provider says, and of which no finding or repair says why. */
async function unexplained({ pool }: ReconcileProof, world: World): Promise<readonly string[]> {
  const { rows } = await pool.query<{ words: unknown }>(
    `select jsonb_build_array(order_id) as words from repairs
     union all select jsonb_build_array(order_id, evidence) from findings where state = 'dismissed'`,
  )
  const told = rows.map(({ words }) => JSON.stringify(words))
  return [...ledgerDifferences(await ledgerOf(pool), truthOf(world.double))]
    .filter(([id]) => !told.some((words) => words.includes(`"${id}"`)))
    .map(([id, lines]) => `order ${id}, unexplained: ${lines.join('; ')}`)
}
