/** A probe whose provider is asked by real gatherers. */
import { stripe, type HookledgerOptions } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import type { HookledgerParts } from '../../src/compose/parts.ts'
import { AskedProvider } from './asked-provider.ts'
import { createProbe, probe, probeSecret, type Probe, type ProbeBody } from './probe.ts'

/** The probe with its provider. */
export interface GatherBench extends Probe {
  readonly provider: AskedProvider
  readonly parts: HookledgerParts
  /** Events that say "look again" about a plan, each of an order of its own unless one is given. */
  look(plan: string, more?: Partial<ProbeBody>): ProbeBody
  /** Delivers and decides as far as that goes: what looks at the provider asks. */
  ask(...bodies: readonly ProbeBody[]): Promise<void>
  /** Puts the clocks of requests and breakers forward, in milliseconds. */
  later(ms: number): Promise<void>
  /** State, entitlements and numbers of an order. */
  order(id: string): Promise<unknown>
}

/** Creates it. */
export async function createGatherBench(
  options: Partial<HookledgerOptions> = {},
  connect = false,
): Promise<GatherBench> {
  const provider = new AskedProvider()
  const source = {
    ...stripe({ environment: 'test', signingSecrets: [probeSecret], connect }),
    calls: provider.calls,
  }
  const bench = await createProbe({
    workflows: [provider.workflow()],
    sources: { probe: source },
    ...options,
  } as Parameters<typeof createProbe>[0])
  const parts = partsOf(bench.hookledger)
  return {
    ...bench,
    provider,
    parts,
    look: (plan, more = {}) => probe('look', { order: `o_${plan}`, plan, ...more }),
    ask: async (...bodies) => {
      await bench.deliver(...bodies)
      const keys = await bench.rows<{ event_key: string }>('select event_key from inbox_ready')
      await parts.workOff(keys.map((row) => BigInt(row.event_key)))
    },
    later: async (ms) => {
      await bench.pool.query(
        `update fetches set due_at = due_at - $1 * interval '1 millisecond',
          leased_until = leased_until - $1 * interval '1 millisecond', asked_at = asked_at - $1 * interval '1 millisecond'`,
        [ms],
      )
      await bench.pool.query(
        `update fetch_budgets set closed_until = closed_until - $1 * interval '1 millisecond',
          refilled_at = refilled_at - $1 * interval '1 millisecond'`,
        [ms],
      )
    },
    order: async (id) =>
      (
        await bench.rows(
          `select o.state, (select string_agg(entitlement || ' ' || quantity, ',') from current_entitlements e where e.subject = o.subject) as has,
            l.sent::int, l.answered::int, l.applied::int
           from orders o left join looked_at l on l.order_id = o.order_id and l.kind = 'plan' where o.order_id = $1`,
          [id],
        )
      )[0],
  }
}
