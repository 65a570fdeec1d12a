import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { OracleConnection } from '../support/oracle.ts'
import {
  judgeFindings,
  ledgerDifferences,
  ledgerOf,
  truthOf,
  type Expected,
  type FindingRow,
} from '../support/reconcile-oracle.ts'
import {
  changesBetween,
  reconcileInvariants,
  reconcileViolations,
  settledState,
} from '../support/reconcile-tables.ts'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import { makeWorld } from '../support/reconcile-world.ts'
import type { TestDatabase } from '../support/test-database.ts'

const id = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`

/** Two events of the provider, one of them found by reconciliation; a finding with a repair that was verified. */
const clean = [
  `insert into sources (source_id, provider, provider_account, environment) overriding system value values (1, 'stripe', 'stripe', 'test'), (2, 'hookledger', 'hookledger', 'test')`,
  `insert into inbox_events (event_key, source_id, event_id, event_type, via, body_sha256, body_bytes) overriding system value
   values (1, 1, 'evt_1', 'paid', 'webhook', '\\x00', 1), (2, 1, 'evt_2', 'refunded', 'reconciliation', '\\x00', 1), (3, 2, '${id(2)}', 'repair.tampered', 'repair', '\\x00', 1)`,
  `insert into ledger_decisions (decision_id, event_key, order_id, kind, final, reason, actor) overriding system value
   values (1, 1, 'o1', 'fulfilled', true, 'paid', 'worker'), (2, 2, 'o1', 'moved', true, 'refunded', 'worker'), (3, 3, 'o1', 'repaired', true, 'seen in psql', 'ada')`,
  `insert into reconciliation_checkpoints (source_id, kind, through) values (1, 'event', now() - interval '2 minutes')`,
  `insert into findings (finding_id, class, kind, severity, state, owner, order_id, evidence, due_at) values ('${id(1)}', 'contradiction', 'tampered', 'high', 'closed', 'x', 'o1', '{}', now())`,
  `insert into repairs (repair_id, finding_id, plan, reason, actor, order_id, previous_state, new_state, decision_id, verified_at)
   values ('${id(2)}', '${id(1)}', '{"to": "paid"}', 'seen in psql', 'ada', 'o1', '{}', '{}', 3, now())`,
  `insert into operator_acts (act, target, reason, actor) values ('repair apply', 'finding:${id(1)}', 'seen in psql', 'ada')`,
].join('; ')

const truth = {
  listed: [
    { id: 'evt_1', createdAt: new Date(Date.now() - 3_600_000) },
    { id: 'evt_2', createdAt: new Date(Date.now() - 3_000_000) },
  ],
  delivered: ['evt_1'],
}

const seeds: readonly (readonly [string, string, string])[] = [
  ['an event that no pass found', `delete from inbox_events where event_key = 2`, 'L2_missing'],
  [
    'a delivered event that a pass says it found',
    `update inbox_events set via = 'reconciliation' where event_key = 1`,
    'L2_delivered_again',
  ],
  [
    'an event that is stored twice',
    `alter table inbox_events drop constraint inbox_events_identity_key; insert into inbox_events (event_key, source_id, event_id, event_type, body_sha256, body_bytes) overriding system value values (9, 1, 'evt_2', 'refunded', '\\x00', 1)`,
    'L2_injected_twice',
  ],
  [
    'an injected event that nobody decided',
    `delete from ledger_decisions where event_key = 2`,
    'L2_undecided',
  ],
  [
    'a checkpoint past an event that is not here',
    `update inbox_events set event_id = 'evt_other' where event_key = 2`,
    'I13_checkpoint_ahead',
  ],
  [
    'a checkpoint in the future',
    `update reconciliation_checkpoints set through = now() + interval '1 hour'`,
    'I13_checkpoint_beyond_now',
  ],
  [
    'a repair of a decision that is gone',
    `delete from ledger_decisions where decision_id = 3`,
    'I11_repair_unexplained',
  ],
  [
    'a repair whose decision says something else',
    `update ledger_decisions set kind = 'moved' where decision_id = 3`,
    'I11_repair_unexplained',
  ],
  [
    'a repair in a transaction of its own',
    `update repairs set xid = '3'::xid8`,
    'I11_repair_apart',
  ],
  [
    'a repair by somebody else than its decision says',
    `update ledger_decisions set actor = 'eve' where decision_id = 3`,
    'I11_repair_other_actor',
  ],
  ['a manual decision without its repair', `delete from repairs`, 'I12_decided_without_repair'],
  [
    'a repair that no act of a person stands behind',
    `delete from operator_acts`,
    'I12_without_act',
  ],
  [
    'a finding closed before the provider was asked again',
    `update repairs set verified_at = null`,
    'I12_closed_unverified',
  ],
  [
    'a repair that was made twice',
    `insert into repairs (repair_id, finding_id, plan, reason, actor, order_id, previous_state, new_state, verified_at) values ('${id(3)}', '${id(1)}', '{"to": "paid"}', 'seen in psql', 'ada', 'o1', '{}', '{}', now())`,
    'I12_repaired_twice',
  ],
]

let database: TestDatabase
let pool: pg.Pool
beforeAll(async () => {
  database = await createHookledgerDatabase()
  pool = database.pool({ options: '-c search_path=hookledger,public' })
  await pool.query(`begin; set local session_replication_role = replica; ${clean}; commit`)
})
afterAll(() => database.drop())

/** Seeds a violation and asks the oracle, all in one transaction that is rolled back. */
async function seeing(seed: string): Promise<readonly string[]> {
  const client = await pool.connect()
  try {
    await client.query('begin; set local session_replication_role = replica')
    if (seed !== '') await client.query(seed)
    const inside = { connect: () => Promise.resolve(within(client)) } as OracleConnection
    const violations = await reconcileViolations(inside, truth)
    return [...new Set(violations.map(({ invariant }) => invariant))]
  } finally {
    await client.query('rollback')
    client.release()
  }
}

/** The oracle's own transaction becomes a savepoint of ours. */
function within(client: pg.PoolClient): pg.PoolClient {
  const translated = (text: string): string =>
    text.startsWith('begin')
      ? 'savepoint oracle'
      : text === 'rollback'
        ? 'rollback to oracle'
        : text
  return {
    query: (text: string, values?: unknown[]) => client.query(translated(text), values),
    release: () => {},
  } as unknown as pg.PoolClient
}

describe('the oracle of reconciliation, asked about tables', () => {
  it('sees nothing wrong where nothing is', async () => {
    expect(await seeing('')).toEqual([])
  })

  it.each(seeds)('sees %s', async (_, seed, invariant) => {
    expect(await seeing(seed)).toContain(invariant)
  })

  it('is seeded with a violation of each of its invariants', () => {
    expect(
      reconcileInvariants.filter((name) => !seeds.some(([, , seen]) => seen === name)),
    ).toEqual([])
  })

  it('sees every row that a second pass adds, changes or takes away, and no count of sightings', async () => {
    const before = await settledState(pool)
    await pool.query(`update findings set times_seen = times_seen + 1, last_seen_at = now()`)
    expect(changesBetween(before, await settledState(pool))).toEqual([])
    await pool.query(`update findings set evidence = '{"now": 1}'`)
    await pool.query(
      `insert into inbox_events (event_key, source_id, event_id, event_type, via, body_sha256, body_bytes) overriding system value values (9, 1, 'evt_3', 'paid', 'reconciliation', '\\x00', 1)`,
    )
    const changed = changesBetween(before, await settledState(pool))
    expect(changed.map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([
      'inbox_events +',
      'findings +',
      'findings -',
    ])
  })
})

const expected: Expected = {
  kinds: ['tampered'],
  class: 'contradiction',
  order: '1',
  stands: 'open',
  required: true,
}
const row: FindingRow = {
  id: id(1),
  kind: 'tampered',
  class: 'contradiction',
  state: 'open',
  order: '1',
  words: '{}',
}

describe('the oracle of reconciliation, asked about findings', () => {
  it.each([
    ['nothing where what was seeded was found', [expected], [row], []],
    ['a discrepancy that was missed', [expected], [], ['missed: tampered of 1']],
    [
      'one of another kind',
      [expected],
      [{ ...row, kind: 'paid_there' }],
      ['missed: tampered of 1', 'invented: paid_there of 1 (open) {}'],
    ],
    [
      'one of another class',
      [expected],
      [{ ...row, class: 'lag' }],
      ['not contradiction: tampered of 1'],
    ],
    [
      'one that closed by itself',
      [expected],
      [{ ...row, state: 'closed' }],
      ['not open: tampered of 1 (closed)'],
    ],
    [
      'one of another order',
      [expected],
      [{ ...row, order: '2' }],
      ['missed: tampered of 1', 'invented: tampered of 2 (open) {}'],
    ],
    ['one that nobody seeded', [], [row], ['invented: tampered of 1 (open) {}']],
  ] as const)('sees %s', (_, must, found, wrong) => {
    expect(judgeFindings(must, found)).toEqual(wrong)
  })
})

describe('the oracle of reconciliation, asked about the ledger', () => {
  it('sees an order that is not what the objects of its provider add up to', async () => {
    const world = makeWorld('oracle', 12, { seeded: 0 })
    const truth = truthOf(world.double)
    expect([...ledgerDifferences(truth, truth)]).toEqual([])
    expect(ledgerDifferences(await ledgerOf(pool), truth).size).toBeGreaterThan(8)
    const [paid] = [...truth].find(([, order]) => order.subject !== null) ?? []
    const changed = new Map(truth)
    changed.set(paid!, { ...truth.get(paid!)!, subject: null, payments: {} })
    const [line] = [...ledgerDifferences(changed, truth).values()]
    expect(line).toEqual([
      expect.stringMatching(/^subject is null, must be email:/),
      expect.stringMatching(/^payments is \[\], must be /),
    ])
  })
})
