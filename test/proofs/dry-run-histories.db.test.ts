import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, stripe, type Hookledger } from 'hookledger'
import { runConfiguredDryRun } from '../../src/compose/dry-run.ts'
import { partsOf } from '../../src/hookledger.ts'
import type { DryRunDifference } from '../../src/inbox/dry-run-compare.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { signStripe } from '../../src/testing/sign.ts'
import { stripeBody } from '../../src/testing/stripe-events.ts'
import type { Workflow } from '../../src/workflow/workflow.ts'
import { factWorkflow } from '../support/fact-workflow.ts'
import {
  bodiesOf,
  expectedRecords,
  factsOfOrders,
  openingOf,
  schedules,
  workflowSpecs,
  type OrderFacts,
} from '../support/histories.ts'
import { createProbe, probeWorkflow, workOff, type Probe } from '../support/probe.ts'

/** Another seed tries other histories: HOOKLEDGER_SEED=7. */
const seed = Number(process.env['HOOKLEDGER_SEED'] || 1)
/** What is not played by then is left out: the machine decides how many histories a run tries, the seed which. */
const playingMs = Number(process.env['HOOKLEDGER_PLAY_MS'] || 9000)
const bounds = { seed, numRuns: Math.max(300, Math.round(playingMs / 20)) }
const secret = 'whsec_histories_0123456789'
const source = stripe({ environment: 'test', signingSecrets: [secret] })

let bench: Probe
beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow()] })
})
afterAll(() => bench.close())

function hookledgerOf(workflow: Workflow): Hookledger {
  return createHookledger({
    environment: 'test',
    sources: { stripe: source },
    workflows: [{ ...workflow, sources: ['stripe'] }],
    limits: { workBatch: 3 },
    database: bench.pool,
  })
}

/** Delivers a schedule, in which a negative number opens an order, and works beside it. */
async function play(
  hookledger: Hookledger,
  workflow: string,
  facts: readonly OrderFacts[],
  schedule: readonly (readonly number[])[],
): Promise<void> {
  const events = bodiesOf(facts)
  for (const batch of schedule) {
    for (const index of batch) {
      if (index < 0) {
        const opening = openingOf(facts[-1 - index] as OrderFacts)
        await hookledger.openOrder(bench.pool, { ...opening, workflow })
        continue
      }
      const rawBody = Buffer.from(stripeBody(events[index] as object))
      await hookledger.ingest({ source: 'stripe', headers: signStripe(rawBody, secret), rawBody })
    }
    await hookledger.runOnce({ budgetMs: 5000 })
  }
  await workOff(hookledger)
}

async function differences(hookledger: Hookledger, since: Date): Promise<DryRunDifference[]> {
  const found: DryRunDifference[] = []
  const db = createDatabase(bench.pool, 'hookledger')
  await runConfiguredDryRun(db, partsOf(hookledger).config, since, {
    onDifference: (each) => found.push(each),
  })
  return found
}

const played = fc
  .tuple(workflowSpecs(), workflowSpecs(), factsOfOrders(3))
  .chain(([spec, other, facts]) =>
    fc.record({
      spec: fc.constant(spec),
      other: fc.constant({ ...other, opens: spec.opens }),
      facts: fc.constant(facts),
      schedule: schedules(bodiesOf(facts).length, facts.length),
    }),
  )

describe('a dry run over histories that a provider can produce', () => {
  it(
    'finds nothing under the code that decided them, wherever it begins, and under other code what that would come to',
    async () => {
      let runs = 0
      let differed = 0
      const until = performance.now() + playingMs
      await fc.assert(
        fc.asyncProperty(played, async ({ spec, other, facts, schedule }) => {
          if (performance.now() > until) return
          await bench.reset()
          await bench.rows(`delete from workflow_states`)
          const name = `facts${runs++}`
          const hookledger = hookledgerOf(factWorkflow(spec, name))
          await partsOf(hookledger).register()
          await play(hookledger, name, facts, schedule)
          const moments = await bench.rows<{ at: Date }>(
            `select distinct date_trunc('milliseconds', decided_at) as at from ledger_decisions order by 1`,
          )
          const cuts = [new Date(0), ...moments.map(({ at }) => at).filter((_, i) => i % 4 === 1)]
          for (const cut of cuts) expect(await differences(hookledger, cut)).toEqual([])

          const ends = new Map(
            (await differences(hookledgerOf(factWorkflow(other, name)), new Date(0)))
              .filter(({ event }) => event === null)
              .map(({ order_id, now }) => [order_id, now.split(', entitles')[0]]),
          )
          const before = expectedRecords(spec, facts)
          const wanted = expectedRecords(other, facts)
          for (const [order, { state }] of Object.entries(wanted)) {
            if (before[order]?.state !== state) differed++
            if (ends.has(order) || before[order]?.state !== state)
              expect([order, ends.get(order)]).toEqual([order, state])
          }
        }),
        bounds,
      )
      expect(runs).toBeGreaterThan(3)
      expect(differed).toBeGreaterThan(0)
    },
    playingMs + 50_000,
  )
})
