import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRandom } from '../../src/testing/stripe-double/random.ts'
import { wrongAfterPlay } from '../support/subscription-judging.ts'
import {
  createSubscriptionProof,
  type PlayedWorld,
  type SubscriptionProof,
} from '../support/subscription-proof.ts'
import { mirrorInvariants, mirrorViolations } from '../support/subscription-tables.ts'
import { makeSubscriptionWorld } from '../support/subscription-world.ts'

const used = `(select min((d.evidence -> 'fetch' ->> 'evidence')::bigint) from ledger_decisions d where d.evidence -> 'fetch' is not null)`
const looked = `select order_id, source_id, kind, object_id from looked_at limit 1`

/** What breaks each invariant; null: what the provider knows is other. */
const seeded: Readonly<Record<string, string | null>> = {
  M1_answer_older_than_its_event: null,
  M2_decided_without_a_look: `update ledger_decisions set evidence = evidence - 'fetch'
    where decision_id = (select max(decision_id) from ledger_decisions where evidence -> 'fetch' is not null)`,
  M3_late_answer_counted: `update evidence set is_late = true where evidence_id = ${used}`,
  M4_went_back: `update ledger_decisions d set evidence = jsonb_set(d.evidence, '{fetch,number}', '"0"')
    where d.decision_id = (select max(decision_id) from ledger_decisions where evidence -> 'fetch' is not null
      and order_id = (select order_id from ledger_decisions where evidence -> 'fetch' is not null group by order_id having count(*) > 1 order by order_id limit 1))`,
  M5_numbers: `update looked_at set answered = answered - 1, applied = 0 where order_id = (select order_id from looked_at where answered > 0 limit 1)`,
  M6_another_accounts_answer: `update orders set source_id = source_id + 1000 where order_id = (select order_id from looked_at limit 1)`,
  M7_waits_for_nobody: `insert into inbox_gathers (event_key, received_on, order_id, source_id, kind, object_id, wanted, attempts)
    select 9999999, current_date, l.*, 99, 0 from (${looked}) l`,
  M8_request_left: `insert into fetches (order_id, source_id, kind, object_id, workflow, event_type, event_key, wanted)
    select l.*, 'subscriptions', 'customer.subscription.updated', 1, 99 from (${looked}) l`,
}

/** What an order must not be, and what is said of it. */
const ends: readonly (readonly [string, string, RegExp])[] = [
  [
    'access that nothing justified',
    `update entitlements set quantity = 99 where order_id = (select order_id from entitlements where active order by order_id limit 1)`,
    /99 .* which nothing ever justified/,
  ],
  [
    'another state than the provider has',
    `update orders set state = 'unpaid' where order_id = (select order_id from orders where state = 'active' order by order_id desc limit 1)`,
    /is unpaid, must be active/,
  ],
  [
    'an invoice that counts for nothing',
    `delete from fulfillment_effects where effect_type = 'credits' and effect_reference = (select min(effect_reference) from fulfillment_effects where effect_type = 'credits')`,
    /facts, credits in_\w+: is undefined/,
  ],
  [
    'a refund that nobody made',
    `insert into fulfillment_effects (order_id, effect_type, effect_reference, decision_id, data)
     select order_id, 'refund', 're_invented', decision_id, '{"cents": 5}' from fulfillment_effects order by order_id limit 1`,
    /facts, refund re_invented: is 5, must be undefined/,
  ],
]

let proof: SubscriptionProof
let played: PlayedWorld
beforeAll(async () => {
  proof = await createSubscriptionProof()
  const world = makeSubscriptionWorld(createRandom('oracle'), {
    lives: 40,
    ticks: 20,
    arrival: { late: 0.3, lateTicks: 5, again: 0.2, lost: 0 },
    base: Math.floor(Date.now() / 1000) - 7200,
  })
  const latency = { beforeMs: 2, afterMs: 20, limited: 0, broken: 0 }
  played = await proof.play('oracle', world, { workers: 2, gatherers: 1, latency, tickMs: 20 })
})
afterAll(() => proof.close())

async function sow(sql: string): Promise<void> {
  const client = await proof.pool.connect()
  try {
    // append-only tables refuse it otherwise; what writes changes of access down must still run
    await client.query(
      `alter table entitlements enable always trigger trace_access; set session_replication_role = replica; ${sql}`,
    )
  } finally {
    await client.query('set session_replication_role = default')
    client.release()
  }
}

const names = (violations: readonly string[]): string[] => [
  ...new Set(violations.map((each) => each.split(' ')[0] ?? '')),
]

describe('the oracle of mirrors', () => {
  it('sees nothing wrong where nothing is', async () => {
    expect(await wrongAfterPlay(proof, played)).toEqual([])
    expect(played.provider.calls.length).toBeGreaterThan(40)
  })

  it('has a seeded violation for each thing that it judges', () => {
    expect(Object.keys(seeded).sort()).toEqual([...mirrorInvariants].sort())
  })

  it.each(Object.entries(seeded))('sees %s', async (invariant, sql) => {
    const told = [...played.told.values()]
    expect(names(await mirrorViolations(proof.pool, told, true))).not.toContain(invariant)
    if (sql !== null) await sow(sql)
    const [first, ...rest] = told
      .filter(({ body }) => body.type.startsWith('customer.subscription.'))
      .map((each) => (sql === null ? { ...each, version: each.version + 2_000_000 } : each))
    if (first === undefined) throw new Error('nothing was told')
    expect(names(await mirrorViolations(proof.pool, [first, ...rest], true))).toContain(invariant)
  })

  it.each(ends)('sees %s', async (_, sql, complaint) => {
    expect((await wrongAfterPlay(proof, played)).join('\n')).not.toMatch(complaint)
    await sow(sql)
    expect((await wrongAfterPlay(proof, played)).join('\n')).toMatch(complaint)
  })
})
