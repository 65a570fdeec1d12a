/**
 * Erasure against every column of the schema: a canary is planted in each one that can hold free text, also in rows
 * that are about somebody else, and every other column says here why it cannot. A new column has to take a side.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { applyErasure } from '../../src/compose/erase.ts'
import { scripted } from '../support/scripted-destination.ts'
import { createProbe, probe, probeWorkflow, type Probe } from '../support/probe.ts'
import { fulfill } from '../../src/workflow/decision.ts'

const ada = 'user:canary.51c8'
const mail = 'ada@canary.51c8.example'
const crm = scripted()

let bench: Probe
beforeAll(async () => {
  bench = await createProbe({
    destinations: { crm },
    workflows: [
      probeWorkflow({
        decide: ({ event, order }) => {
          const subject = (event as { subject?: string }).subject ?? ''
          return fulfill({
            to: 'paid',
            subject,
            effects: [{ type: 'grant', send: [{ to: 'crm', body: { order: order.id } }] }],
            entitle: [{ subject, entitlement: 'pro' }],
          } as never)
        },
      }),
    ],
  })
})
afterAll(() => bench.close())

/** Free text, of one of us, of a provider, of an app or of a destination: `table` to columns. */
const planted: Readonly<Record<string, readonly string[]>> = {
  bulk_acts: ['reason', 'filter', 'details'],
  bulk_items: ['message'],
  customer_links: ['subject'],
  entitlement_ends: ['subject'],
  entitlements: ['subject'],
  evidence: ['body'],
  fetch_budgets: ['last_error'],
  fetches: ['last_error'],
  findings: ['evidence', 'dismissed_evidence', 'closed_because'],
  fulfillment_effects: ['data'],
  inbox_dead: ['reason'],
  inbox_delayed: ['last_error'],
  inbox_ignored: ['reason'],
  ledger_decisions: ['reason', 'evidence'],
  operation_reads: ['reason'],
  operator_acts: ['target', 'reason', 'details'],
  orders: ['subject'],
  outbox_answers: ['error', 'answer', 'receipt'],
  outbox_operations: ['receipt', 'last_error'],
  outbox_requests: ['request'],
  payload_reads: ['reason'],
  payloads: ['body'],
  payloads_held: ['body'],
  reconciliation_runs: ['error'],
  repairs: ['plan', 'reason', 'previous_state', 'new_state'],
  shadow_differences: ['subject', 'here', 'there'],
  subject_merges: ['from_subject', 'into_subject'],
}

/** Columns by name, wherever they stand, that hold no free text: and why. */
const elsewhere: Readonly<Record<string, readonly string[]>> = {
  'ids and names of orders, events, objects, payments and operations stay': [
    'order_id',
    'event_id',
    'object_id',
    'payment_id',
    'customer_id',
    'effect_reference',
    'name',
    'order_ids',
    'target',
    'reference',
    'cursor',
    'waits_for',
  ],
  'who acted, where and as what: people of ours, and processes': [
    'actor',
    'database_role',
    'approved_by',
    'ended_by',
    'owner',
    'dispatcher',
    'leased_by',
    'worker',
    'host',
    'how',
  ],
  'words of the configuration, or of ours': [
    'act',
    'state',
    'was',
    'code',
    'roles',
    'kind',
    'workflow',
    'class',
    'severity',
    'outcome',
    'promise',
    'destination',
    'combine',
    'entitlement',
    'currency',
    'via',
    'event_type',
    'event_types',
    'effect_type',
    'effect_types',
    'api_version',
    'rearmed_by',
    'at_deadline',
    'version',
    'workflow_version',
    'from_state',
    'to_state',
    'while_states',
    'environment',
    'provider',
    'provider_account',
    'source',
    'budget',
    // why access changed: one of three words
    'because',
    // figures of a pass
    'coverage',
  ],
  'hashes, keys and contexts of traces': [
    'token_sha256',
    'browser_sha256',
    'nonce',
    'verifier',
    'body_sha256',
    'request_sha256',
    'secret',
    'trace',
  ],
  'the erasure itself: it is written with the pseudonym': ['pseudonym'],
}

/** Of these names, the columns that hold something else in one table. */
const byTable: Readonly<Record<string, readonly string[]>> = {
  // one of the reasons for which requests are refused
  rejections: ['reason'],
  // written with the pseudonym in the place of the name
  erasures: ['reason'],
  // while a change is untold an erasure is refused, and a told one is gone
  entitlement_changes: ['subject'],
}

interface Column {
  readonly table: string
  readonly column: string
  readonly type: string
}

async function columns(): Promise<Column[]> {
  return bench.rows<Column & Record<string, unknown>>(
    `select c.relname as table, a.attname as column, a.atttypid::regtype::text as type
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'hookledger'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and a.atttypid::regtype::text in ('text', 'text[]', 'jsonb', 'json', 'bytea', 'character varying') order by 1, a.attnum`,
  )
}

/** Rows about nobody in particular, one for each table that a short life leaves empty. */
const seeds: readonly string[] = [
  `insert into payloads_held (event_key, body) select min(event_key), '' from inbox_events`,
  `insert into evidence (order_id, source_id, kind, object_id, number, workflow, is_found, requested_at, body_sha256, body_bytes, body)
   select 'o9', min(source_id), 'customer', 'cus_9', 1, 'probe', true, now(), sha256(''), 0, '' from sources`,
  `insert into entitlement_ends (valid_until, order_id, subject, entitlement) values (now() + interval '1 year', 'o9', 'user:4', 'pro')`,
  `insert into customer_links (source_id, customer_id, subject) select min(source_id), 'cus_9', 'user:4' from sources`,
  `insert into fetch_budgets (budget, tokens) values ('probe', 1)`,
  `insert into fetches (order_id, source_id, kind, object_id, workflow, event_type, event_key, wanted) values ('o9', 1, 'plan', 'p9', 'probe', 'look', 1, 1)`,
  `insert into inbox_dead (event_key, received_on, reason, attempts) values (900001, current_date, 'x', 3)`,
  `insert into inbox_delayed (event_key, received_on, attempts, due_at, last_error) values (900002, current_date, 1, now(), 'x')`,
  `insert into inbox_ignored (event_key, received_on, reason, event_type) values (900003, current_date, 'x', 'custom')`,
  `insert into findings (finding_id, class, kind, severity, owner, evidence, due_at)
   values ('00000000-0000-4000-8000-000000000001', 'lag', 'order_stuck', 'low', 'ops', '{}', now())`,
  `insert into repairs (repair_id, finding_id, plan, reason, actor, previous_state, new_state)
   values (gen_random_uuid(), '00000000-0000-4000-8000-000000000001', '{}', 'x', 'ops', '{}', '{}')`,
  `insert into bulk_acts (bulk_id, act, filter, details, targets, reason, actor, needs_approval)
   values ('00000000-0000-4000-8000-000000000002', 'replay', '{}', '{}', 1, 'x', 'ops', false)`,
  `insert into bulk_items (bulk_id, number, target, was) values ('00000000-0000-4000-8000-000000000002', 1, 'event:1', 'dead')`,
  `insert into reconciliation_runs (run_id, source, how, actor, state, finished_at) values (gen_random_uuid(), 'probe', 'manual', 'ops', 'failed', now())`,
  `insert into payload_reads (event_key, reason, actor) values (1, 'x', 'ops')`,
  `insert into operation_reads (operation_id, reason, actor) select operation_id, 'x', 'ops' from outbox_operations limit 1`,
  `insert into operator_acts (act, target, reason, actor) values ('link', 'subject:x', 'x', 'ops')`,
  `insert into shadow_differences (subject, entitlement, kind, order_ids) values ('user:4', 'pro', 'only_here', '{}')`,
  `insert into subject_merges (from_subject, into_subject, act_id) select 'x', 'y', max(act_id) from operator_acts`,
]

/** How the canary is written into a column, for each kind of column. */
const forms: Readonly<Record<string, string>> = {
  text: `'told ' || $1 || ', <' || $2 || '>'`,
  jsonb: `jsonb_build_object('said', 'for ' || $1, $2::text, jsonb_build_array($1, 42))`,
  bytea: `convert_to(concat('{"for":"', $1::text, '","to":"', $2::text, '"}'), 'UTF8')`,
}

/** A column that is the name itself, and nothing around it. */
const exactly = /subject$/

it('every column either may hold a subject and is planted with one, or says why it cannot', async () => {
  const all = await columns()
  const reasons = new Set(Object.values(elsewhere).flat())
  const unknown = all.filter(
    ({ table, column }) =>
      planted[table]?.includes(column) !== true &&
      byTable[table]?.includes(column) !== true &&
      !reasons.has(column),
  )
  expect(unknown.map(({ table, column }) => `${table}.${column}`)).toEqual([])
  for (const [table, names] of Object.entries(planted))
    for (const name of names)
      expect(all.map((each) => `${each.table}.${each.column}`)).toContain(`${table}.${name}`)
})

it('an erasure leaves the name in no column of no table, whomever a row is about', async () => {
  await bench.deliver(
    probe('pay', { order: 'o1', subject: ada }),
    probe('pay', { order: 'o9', subject: 'user:4' }),
  )
  await bench.work()
  const all = await columns()
  const free = all.filter(({ table, column }) => planted[table]?.includes(column) === true)
  const client = await bench.pool.connect()
  try {
    // as whoever wrote it before: the guards of append-only tables are not what is tried here
    await client.query(`set session_replication_role = replica`)
    for (const seed of seeds) await client.query(seed)
    for (const { table, column, type } of free) {
      if (exactly.test(column)) continue
      const value =
        table === 'operator_acts' && column === 'target' ? `'subject:' || $1` : (forms[type] ?? '')
      const { rowCount } = await client.query(
        `update ${table} set ${column} = ${value}${/\$2/.test(value) ? '' : ` where $2::text is not null`}`,
        [ada, mail],
      )
      expect([table, column, (rowCount ?? 0) > 0]).toEqual([table, column, true])
    }
    await client.query(`update customer_links set subject = $1`, [ada])
    await client.query(`update entitlement_ends set subject = $1`, [ada])
    await client.query(`update shadow_differences set subject = $1`, [ada])
    await client.query(`update subject_merges set from_subject = $1 || '-old', into_subject = $1`, [
      ada,
    ])
  } finally {
    await client.query(`set session_replication_role = origin`)
    client.release()
  }
  const before = await standsIn(free)
  expect(before).toEqual(free.map(({ table, column }) => `${table}.${column}`).sort())
  const done = await applyErasure(bench.db, {
    subject: ada,
    also: [mail],
    confirm: ada,
    reason: `${mail} asked for it`,
    actor: 'dpo',
  })
  expect(done.applied).toBe(true)
  expect(await standsIn(all)).toEqual([])
  expect(await bench.rows(`select subject from orders where order_id = 'o9'`)).toEqual([
    { subject: 'user:4' },
  ])
})

/** `table.column` of each of these in which the canary stands. */
async function standsIn(of: readonly Column[]): Promise<string[]> {
  const checks = of.map(({ table, column, type }) => {
    const holds =
      type === 'bytea'
        ? `position(convert_to('canary.51c8', 'UTF8') in ${column}) > 0`
        : `position('canary.51c8' in ${column}::text) > 0`
    return `select '${table}.${column}' as place where exists (select from ${table} where ${holds})`
  })
  const found = await bench.rows<{ place: string }>(checks.join(' union all '))
  return found.map(({ place }) => place).sort()
}
