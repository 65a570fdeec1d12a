import { createHash } from 'node:crypto'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  DestinationLog,
  operationOf,
  type LoggedCall,
  type Meaning,
} from '../support/destination-log.ts'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import type { OracleConnection } from '../support/oracle.ts'
import {
  findOutboxViolations,
  outboxInvariants,
  type OutboxHistory,
} from '../support/outbox-oracle.ts'
import type { TestDatabase } from '../support/test-database.ts'

/** What the bell, whose requests are stored as an envelope, is sent as a body. */
const rungBody = 'ring'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const id = (n: number): string => `00000000-0000-5000-8000-${String(n).padStart(12, '0')}`

/** Operation 1: sent at its second call, whose first was done and never answered. */
const repeated = id(1)
/** 2: refused. */
const refused = id(2)
/** 3: canceled before it was ever called. */
const canceled = id(3)
/** 4: nobody knows, and nobody can be asked. */
const unknown = id(4)
/** 5: found by a lookup. */
const found = id(5)
/** 6: proven not to be done, then sent under the next key. */
const renewed = id(6)
/** 7: at a destination that knows no key again: done twice. */
const rung = id(7)
/** 8: sent because an operator says so. */
const resolved = id(8)

interface Seed {
  readonly n: number
  readonly state: string
  readonly destination?: string
  readonly effect?: boolean
  readonly attempts: readonly (readonly [
    kind: string,
    generation: number,
    outcome: string | null,
    afterMs: number,
  ])[]
}

const seeds: readonly Seed[] = [
  {
    n: 1,
    state: 'sent',
    effect: true,
    attempts: [
      ['call', 1, 'uncertain', 0],
      ['call', 1, 'sent', 500],
    ],
  },
  { n: 2, state: 'dead', attempts: [['call', 1, 'refused', 0]] },
  { n: 3, state: 'canceled', attempts: [] },
  { n: 4, state: 'uncertain', attempts: [['call', 1, null, 0]] },
  {
    n: 5,
    state: 'sent',
    attempts: [
      ['call', 1, 'uncertain', 0],
      ['lookup', 1, 'present', 5000],
    ],
  },
  {
    n: 6,
    state: 'sent',
    attempts: [
      ['call', 1, 'uncertain', 0],
      ['lookup', 1, 'absent', 5000],
      ['call', 2, 'sent', 5500],
    ],
  },
  {
    n: 7,
    state: 'sent',
    destination: 'bell',
    attempts: [
      ['call', 1, 'uncertain', 0],
      ['call', 1, 'sent', 9000],
    ],
  },
  { n: 8, state: 'sent', attempts: [['call', 1, 'uncertain', 0]] },
]

function operationSql({ n, state, destination = 'mail', effect = false, attempts }: Seed): string {
  const request = destination === 'bell' ? JSON.stringify({ body: rungBody }) : `body-${n}`
  const finished = ['sent', 'canceled', 'discarded'].includes(state)
  const columns = effect
    ? `'o1', 'license', '', 'license', 1`
    : `${n === 3 ? `'o1'` : 'null'}, null, null, 'key-${n}', null`
  return [
    `insert into outbox_operations (operation_id, destination, order_id, effect_type, effect_reference, name, decision_id,
       request_sha256, request_bytes, promise, window_ms, state, key_generation, attempts, next_attempt_at, finished_at)
     values ('${id(n)}', '${destination}', ${columns}, sha256('${request}'), ${request.length}, '${destination === 'bell' ? 'at_least_once' : 'once'}', 0,
       '${state}', ${attempts.at(-1)?.[1] ?? 1}, ${attempts.length}, null, ${finished ? 'now()' : 'null'})`,
    `insert into outbox_requests values ('${id(n)}', '${request}')`,
    ...attempts.map(
      ([kind, generation, , afterMs], at) =>
        `insert into outbox_attempts (operation_id, number, kind, key_generation, lease, dispatcher, started_at)
         values ('${id(n)}', ${at + 1}, '${kind}', ${generation}, nextval('outbox_lease_seq'), 'd', '2026-01-01'::timestamptz + ${afterMs} * interval '1 ms')`,
    ),
    ...attempts.flatMap(([, , outcome], at) =>
      outcome === null
        ? []
        : [
            `insert into outbox_answers (attempt_id, outcome)
             select attempt_id, '${outcome}' from outbox_attempts where operation_id = '${id(n)}' and number = ${at + 1}`,
          ],
    ),
  ].join('; ')
}

const clean = [
  `insert into ledger_decisions (decision_id, order_id, workflow, kind, final, to_state, entitles, reason, evidence, actor) overriding system value
   values (1, 'o1', 'shop', 'fulfilled', true, 'paid', true, 'paid', '{"operations": ["${repeated}"]}', 'worker'),
     (2, 'o1', 'shop', 'canceled', false, null, null, 'the order is refunded', '{"operation": "${canceled}"}', 'dispatcher')`,
  `insert into fulfillment_effects (order_id, effect_type, decision_id) values ('o1', 'license', 1)`,
  ...seeds.map(operationSql),
  `insert into findings (finding_id, class, kind, severity, owner, evidence, due_at)
   values (gen_random_uuid(), 'contradiction', 'operation_dead', 'high', 'x', '{"operation": "${refused}"}', now()),
     (gen_random_uuid(), 'lag', 'operation_uncertain', 'high', 'x', '{"operation": "${unknown}"}', now())`,
  `insert into operator_acts (act, target, reason, actor) values ('outbox_resolve', '${resolved}', 'seen in their console', 'ada')`,
].join('; ')

let calls = 0
function call(
  log: DestinationLog,
  key: string,
  body: string,
  work: LoggedCall['work'],
  answer: readonly [number, Meaning] | null,
): void {
  const number = calls++
  log.write({ kind: 'received', call: number, key, sha256: sha256(body), behavior: 'seeded' })
  if (work !== 'none') log.write({ kind: work, call: number, key })
  if (answer === null) log.write({ kind: 'unanswered', call: number, key })
  else log.write({ kind: 'answered', call: number, key, status: answer[0], means: answer[1] })
}

/** The logs that belong to the clean tables; `without` leaves out what was seen of an operation. */
function logs(without?: string): { mail: DestinationLog; bell: DestinationLog } {
  const mail = new DestinationLog()
  const bell = new DestinationLog()
  const seen = (key: string, ...rest: [string, LoggedCall['work'], [number, Meaning] | null]) => {
    if (operationOf(key) !== without) call(key.startsWith(rung) ? bell : mail, key, ...rest)
  }
  seen(repeated, 'body-1', 'applied', null)
  seen(repeated, 'body-1', 'replayed', [200, 'done'])
  seen(refused, 'body-2', 'none', [422, 'not_done'])
  seen(unknown, 'body-4', 'applied', null)
  seen(found, 'body-5', 'applied', null)
  if (found !== without)
    mail.write({ kind: 'looked_up', call: -1, key: found, status: 200, means: 'done' })
  seen(renewed, 'body-6', 'none', null)
  seen(`${renewed}:2`, 'body-6', 'applied', [200, 'done'])
  seen(rung, rungBody, 'applied', null)
  seen(rung, rungBody, 'applied', [200, 'done'])
  seen(resolved, 'body-8', 'applied', null)
  return { mail, bell }
}

function history(of: { mail: DestinationLog; bell: DestinationLog } = logs()): OutboxHistory {
  return {
    destinations: {
      mail: { log: of.mail, honorsKeys: true, sends: 'request', windowMs: 1000 },
      bell: { log: of.bell, honorsKeys: false, sends: 'body', windowMs: null },
    },
    routes: [{ effectType: 'license', destination: 'mail', name: 'license' }],
    added: [2, 3, 4, 5, 6, 7, 8].map((n) => ({
      destination: n === 7 ? 'bell' : 'mail',
      key: `key-${n}`,
    })),
  }
}

let database: TestDatabase
let pool: pg.Pool
beforeAll(async () => {
  database = await createHookledgerDatabase()
  pool = database.pool({ options: '-c search_path=hookledger,public' })
  await pool.query(`begin; set local session_replication_role = replica; ${clean}; commit`)
})
afterAll(() => database.drop())

/** Seeds a violation and asks the oracle, all in one transaction that is rolled back. */
async function seeing(seed: string, seen: OutboxHistory): Promise<readonly string[]> {
  const client = await pool.connect()
  try {
    await client.query('begin; set local session_replication_role = replica')
    if (seed !== '') await client.query(seed)
    const inside = { connect: () => Promise.resolve(within(client)) } as OracleConnection
    const violations = await findOutboxViolations(inside, seen, true)
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

const set = (what: string, operation: string): string =>
  `update outbox_operations set ${what} where operation_id = '${operation}'`

const inTables: readonly (readonly [string, string, string])[] = [
  [
    'an effect without its operation',
    `delete from outbox_operations where operation_id = '${repeated}'`,
    'I6_missing',
  ],
  ['an operation of an effect that is not there', `delete from fulfillment_effects`, 'I6_besides'],
  ['an operation that no route asks for', set(`name = 'another'`, repeated), 'I6_besides'],
  [
    'two operations for one effect',
    `insert into outbox_operations (operation_id, destination, order_id, effect_type, effect_reference, name, decision_id, request_sha256, request_bytes, promise, window_ms)
     select '${id(99)}', destination, order_id, effect_type, effect_reference, name, decision_id, request_sha256, request_bytes, promise, window_ms from outbox_operations where operation_id = '${repeated}'`,
    'I6_twice',
  ],
  ['an operation in a transaction of its own', set(`xid = '3'::xid8`, repeated), 'I6_apart'],
  [
    "an operation of another decision than its effect's",
    set('decision_id = 2', repeated),
    'I6_apart',
  ],
  [
    'a decision that does not list its operation',
    `update ledger_decisions set evidence = '{}' where decision_id = 1`,
    'I6_unlisted',
  ],
  [
    'a decision that lists an operation that is not there',
    `update ledger_decisions set evidence = '{"operations": ["${repeated}", "${id(99)}"]}' where decision_id = 1`,
    'I6_unlisted',
  ],
  [
    "an operation of the app's that is gone",
    `delete from outbox_operations where operation_id = '${canceled}'`,
    'I6_app_missing',
  ],
  ['an operation that nobody added', set(`name = 'another'`, refused), 'I6_app_besides'],
  [
    'a call of an operation that is not committed',
    `delete from outbox_operations where operation_id = '${renewed}'`,
    'I7_uncommitted',
  ],
  [
    'a call at a destination that is not its own',
    set(`destination = 'post'`, renewed),
    'I7_uncommitted',
  ],
  [
    'a call without an attempt',
    `delete from outbox_attempts where operation_id = '${repeated}' and number = 2`,
    'I7_unannounced',
  ],
  [
    'a call under a key that no attempt names',
    `update outbox_attempts set key_generation = 1 where operation_id = '${renewed}'`,
    'I7_unannounced',
  ],
  [
    'an attempt that is missing in the middle',
    `delete from outbox_attempts where operation_id = '${renewed}' and number = 2`,
    'I7_attempts_uncounted',
  ],
  ['attempts that were counted wrong', set('attempts = 9', repeated), 'I7_attempts_uncounted'],
  [
    'a hash of other bytes than were sent',
    set(`request_sha256 = sha256('x')`, refused),
    'I8_bytes_changed',
  ],
  [
    'other words in an envelope than were sent',
    `update outbox_requests set request = '{"body": "rang"}' where operation_id = '${rung}'`,
    'I8_bytes_changed',
  ],
  [
    'a stored request that was written anew',
    `update outbox_requests set request = 'body_4' where operation_id = '${unknown}'`,
    'I8_stored_changed',
  ],
  [
    'a request that is gone before its end',
    `delete from outbox_requests where operation_id = '${unknown}'`,
    'I8_bytes_lost',
  ],
  [
    'a new key without proof',
    `update outbox_answers set outcome = 'no_answer' where attempt_id = (select attempt_id from outbox_attempts where operation_id = '${renewed}' and number = 2)`,
    'I8_generation_unproven',
  ],
  [
    'something called sent that a refusal answered',
    set(`state = 'sent', finished_at = now()`, refused),
    'I9_false_sent',
  ],
  ["an operator's word that was never given", `delete from operator_acts`, 'I9_false_sent'],
  [
    'something called sent of which no attempt says so',
    `update outbox_answers set outcome = 'uncertain' where outcome = 'sent'`,
    'I9_sent_without_answer',
  ],
  ['something given up that was done', set(`state = 'dead'`, unknown), 'I9_given_up_but_done'],
  [
    'something canceled that was done',
    set(`state = 'canceled', finished_at = now()`, unknown),
    'I9_given_up_but_done',
  ],
  ['a promise that the destination does not keep', set(`promise = 'once'`, rung), 'I10_promise'],
  [
    'a call past the window of its key',
    `update outbox_attempts set started_at = started_at + interval '1 s' where operation_id = '${repeated}' and number = 2`,
    'P6_past_window',
  ],
  [
    'a call past the window after a dispatcher that died',
    `delete from outbox_answers where outcome = 'uncertain'; update outbox_attempts set started_at = started_at + interval '1 s' where operation_id = '${repeated}' and number = 2`,
    'P6_past_window',
  ],
  [
    'a cancellation that nobody explains',
    `delete from ledger_decisions where kind = 'canceled'`,
    'I11_canceled_unexplained',
  ],
  [
    'an operation that nobody takes up',
    set(`state = 'pending', next_attempt_at = now()`, refused),
    'L1_stuck',
  ],
  ['an uncertain operation that is due', set('next_attempt_at = now()', unknown), 'L1_stuck'],
  [
    'an uncertain operation that nobody is asked about',
    `delete from findings where kind = 'operation_uncertain'`,
    'L1_nobody_asked',
  ],
  [
    'a dead operation whose finding is closed',
    `update findings set state = 'closed' where kind = 'operation_dead'`,
    'L1_nobody_asked',
  ],
  [
    'a finding of what has ended',
    set(`state = 'sent', finished_at = now()`, unknown),
    'L1_finding_left',
  ],
  [
    'an order that nobody woke',
    `insert into outbox_wakes (order_id) values ('o1')`,
    'L1_wake_left',
  ],
]

const inLogs: readonly (readonly [string, () => OutboxHistory, string])[] = [
  [
    'a call of an operation that never was',
    () => {
      const both = logs()
      call(both.mail, id(99), 'x', 'applied', [200, 'done'])
      return history(both)
    },
    'I7_uncommitted',
  ],
  [
    'one call more than there were attempts',
    () => {
      const both = logs()
      call(both.mail, refused, 'body-2', 'none', [422, 'not_done'])
      return history(both)
    },
    'I7_unannounced',
  ],
  [
    'other bytes under the same id',
    () => {
      const both = logs(refused)
      call(both.mail, refused, 'body-2 again', 'none', [422, 'not_done'])
      return history(both)
    },
    'I8_bytes_changed',
  ],
  [
    'two payloads under one id',
    () => {
      const both = logs()
      call(both.mail, unknown, 'another', 'mismatched', null)
      return history(both)
    },
    'I8_two_payloads',
  ],
  [
    'something called sent that no 2xx answered',
    () => {
      const both = logs(renewed)
      call(both.mail, renewed, 'body-6', 'none', null)
      call(both.mail, `${renewed}:2`, 'body-6', 'applied', [500, 'nothing'])
      return history(both)
    },
    'I9_false_sent',
  ],
  [
    'something called sent whose 200 said the contrary',
    () => {
      const both = logs(renewed)
      call(both.mail, `${renewed}:2`, 'body-6', 'none', [200, 'not_done'])
      return history(both)
    },
    'I9_false_sent',
  ],
  ['something called found that no lookup found', () => history(logs(found)), 'I9_false_sent'],
  [
    'an operation that was done twice',
    () => {
      const both = logs()
      call(both.mail, unknown, 'body-4', 'applied', null)
      return history(both)
    },
    'I10_applied_twice',
  ],
  [
    'an operation that was done under two keys',
    () => {
      const both = logs(renewed)
      call(both.mail, renewed, 'body-6', 'applied', null)
      call(both.mail, `${renewed}:2`, 'body-6', 'applied', [200, 'done'])
      return history(both)
    },
    'I10_applied_twice',
  ],
]

describe('the oracle of the outbox', () => {
  it('finds nothing in a clean history', async () => {
    expect(await findOutboxViolations(pool, history(), true)).toEqual([])
  })

  it.each(inTables)('sees %s', async (_, seed, invariant) => {
    expect(await seeing(seed, history())).toContain(invariant)
  })

  it.each(inLogs)('sees in the log %s', async (_, made, invariant) => {
    expect(await seeing('', made())).toContain(invariant)
  })

  it('takes no unfinished work for a violation while it goes on', async () => {
    const client = await pool.connect()
    try {
      await client.query('begin; set local session_replication_role = replica')
      await client.query(set(`state = 'pending', next_attempt_at = now()`, refused))
      const inside = { connect: () => Promise.resolve(within(client)) } as OracleConnection
      expect(await findOutboxViolations(inside, history(), false)).toEqual([])
    } finally {
      await client.query('rollback')
      client.release()
    }
  })

  it('sees a session that stayed in its transaction', async () => {
    const other = await pool.connect()
    try {
      await other.query('begin; select 1')
      const violations = await findOutboxViolations(pool, history(), true)
      expect(violations.map(({ invariant }) => invariant)).toEqual(['L1_session_left'])
    } finally {
      await other.query('rollback')
      other.release()
    }
  })

  it('has a seeded violation for everything that it judges', () => {
    const seeded = new Set([...inTables, ...inLogs].map(([, , invariant]) => invariant))
    seeded.add('L1_session_left')
    expect(outboxInvariants.filter((each) => !seeded.has(each))).toEqual([])
  })
})
