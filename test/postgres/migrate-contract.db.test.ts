/**
 * What users' queries, the audit and the console rely on. Views and columns may be added; a change that
 * takes one away, renames it or gives it another type would break a running older version.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { migrations } from '../../src/postgres/migrations.generated.ts'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import type { TestDatabase } from '../support/test-database.ts'

let database: TestDatabase
let rows: <R extends object>(text: string) => Promise<R[]>
beforeAll(async () => {
  database = await createHookledgerDatabase()
  const pool = database.pool()
  rows = async <R extends object>(text: string) => (await pool.query(text)).rows as R[]
})
afterAll(() => database.drop())

const contract: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  webhook_inbox: {
    event_key: 'bigint',
    provider: 'text',
    provider_account: 'text',
    environment: 'text',
    event_id: 'text',
    event_type: 'text',
    via: 'text',
    received_at: 'timestamp with time zone',
    occurred_at: 'timestamp with time zone',
    body_sha256: 'bytea',
    state: 'text',
    attempts: 'integer',
    deliveries: 'bigint',
    last_error: 'text',
    order_id: 'text',
    decision_id: 'bigint',
    waits_for: 'text',
    deadline_at: 'timestamp with time zone',
    next_attempt_at: 'timestamp with time zone',
  },
  decisions: {
    decision_id: 'bigint',
    event_key: 'bigint',
    provider: 'text',
    provider_account: 'text',
    environment: 'text',
    event_id: 'text',
    event_type: 'text',
    order_id: 'text',
    workflow: 'text',
    kind: 'text',
    final: 'boolean',
    from_state: 'text',
    to_state: 'text',
    entitles: 'boolean',
    reason: 'text',
    evidence: 'jsonb',
    workflow_version: 'text',
    actor: 'text',
    attempts: 'smallint',
    supersedes: 'bigint',
    decided_at: 'timestamp with time zone',
    xid: 'xid8',
  },
  orders: {
    order_id: 'text',
    workflow: 'text',
    provider_account: 'text',
    state: 'text',
    subject: 'text',
    expected_amount: 'bigint',
    currency: 'text',
    version: 'bigint',
    opened_at: 'timestamp with time zone',
    updated_at: 'timestamp with time zone',
  },
  order_names: { source_id: 'integer', kind: 'text', name: 'text', order_id: 'text' },
  payments: {
    source: 'text',
    provider: 'text',
    provider_account: 'text',
    environment: 'text',
    payment_id: 'text',
    order_id: 'text',
    amount: 'bigint',
    currency: 'text',
    applied: 'boolean',
    decision_id: 'bigint',
    recorded_at: 'timestamp with time zone',
  },
  fulfillment_effects: {
    order_id: 'text',
    effect_type: 'text',
    effect_reference: 'text',
    decision_id: 'bigint',
    amount: 'bigint',
    currency: 'text',
    payment_id: 'text',
    data: 'jsonb',
    recorded_at: 'timestamp with time zone',
    xid: 'xid8',
  },
  entitlements: {
    order_id: 'text',
    subject: 'text',
    entitlement: 'text',
    quantity: 'bigint',
    valid_until: 'timestamp with time zone',
    active: 'boolean',
    granted_by: 'bigint',
    changed_by: 'bigint',
    version: 'bigint',
  },
  current_entitlements: {
    subject: 'text',
    entitlement: 'text',
    quantity: 'bigint',
    valid_until: 'timestamp with time zone',
  },
  findings: {
    finding_id: 'uuid',
    class: 'text',
    kind: 'text',
    severity: 'text',
    state: 'text',
    owner: 'text',
    order_id: 'text',
    event_key: 'bigint',
    evidence: 'jsonb',
    due_at: 'timestamp with time zone',
    first_seen_at: 'timestamp with time zone',
    last_seen_at: 'timestamp with time zone',
    closed_at: 'timestamp with time zone',
    times_seen: 'bigint',
  },
  deliveries: {
    source_id: 'integer',
    event_id: 'text',
    received_at: 'timestamp with time zone',
    body_sha256: 'bytea',
  },
  operator_acts: {
    act_id: 'bigint',
    act: 'text',
    target: 'text',
    reason: 'text',
    actor: 'text',
    database_role: 'text',
    details: 'jsonb',
    acted_at: 'timestamp with time zone',
  },
  mirrored_objects: {
    order_id: 'text',
    workflow: 'text',
    provider: 'text',
    provider_account: 'text',
    environment: 'text',
    kind: 'text',
    object_id: 'text',
    sent: 'bigint',
    answered: 'bigint',
    applied: 'bigint',
    answered_at: 'timestamp with time zone',
    evidence_id: 'bigint',
    decision_id: 'bigint',
  },
  evidence: {
    evidence_id: 'bigint',
    order_id: 'text',
    source_id: 'integer',
    kind: 'text',
    object_id: 'text',
    number: 'bigint',
    is_found: 'boolean',
    is_late: 'boolean',
    requested_at: 'timestamp with time zone',
    fetched_at: 'timestamp with time zone',
    body_sha256: 'bytea',
    body_bytes: 'integer',
  },
  payload_reads: {
    read_id: 'bigint',
    event_key: 'bigint',
    evidence_id: 'bigint',
    reason: 'text',
    actor: 'text',
    database_role: 'text',
    read_at: 'timestamp with time zone',
  },
  rejections: {
    source: 'text',
    reason: 'text',
    first_at: 'timestamp with time zone',
    last_at: 'timestamp with time zone',
    times: 'bigint',
  },
  workflow_states: { workflow: 'text', state: 'text', entitles: 'boolean' },
  workflow_versions: {
    workflow: 'text',
    version: 'text',
    event_types: 'text[]',
    effect_types: 'text[]',
  },
  migrations: {
    migration_id: 'integer',
    name: 'text',
    runs_from: 'integer',
    applied_at: 'timestamp with time zone',
  },
}

describe('the names that others rely on', () => {
  it.each(Object.keys(contract))('keeps %s, with its columns and their types', async (name) => {
    const columns = await rows<{ name: string; type: string }>(
      `select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute
       where attrelid = 'hookledger.${name}'::regclass and attnum > 0 and not attisdropped`,
    )
    expect(Object.fromEntries(columns.map((column) => [column.name, column.type]))).toMatchObject(
      contract[name] ?? {},
    )
  })
})

describe('the schema', () => {
  const source = migrations.map(({ sql }) => sql).join('\n')

  it('names every constraint and index itself', async () => {
    const found = await rows<{ name: string; table: string }>(
      `select c.conname as name, t.relname as table from pg_constraint c join pg_class t on t.oid = c.conrelid
         where connamespace = 'hookledger'::regnamespace and contype <> 'n'
       union select i.indexrelid::regclass::text, t.relname from pg_index i join pg_class t on t.oid = i.indrelid
         where t.relnamespace = 'hookledger'::regnamespace`,
    )
    // migrations itself is made before the first migration; a partition's key is named after it
    const own = found
      .map(({ name, table }) => ({ name: name.replace(/^hookledger\./, ''), table }))
      .filter(
        ({ name, table }) =>
          table !== 'migrations' &&
          !(/^payloads_(default|\d{8})$/.test(table) && name === `${table}_pkey`),
      )
    expect(own.length).toBeGreaterThan(60)
    expect(own.filter(({ name }) => !new RegExp(`\\b${name}\\b`).test(source))).toEqual([])
    expect(own.filter(({ name }) => !/_(pkey|key|idx|fkey|check)$/.test(name))).toEqual([])
  })

  it('compares every key byte-wise, whatever the collation of the database', async () => {
    const found = await rows(
      `select i.indexrelid::regclass::text as name from pg_index i join pg_class t on t.oid = i.indrelid
       where t.relnamespace = 'hookledger'::regnamespace
         and exists (select from unnest(i.indcollation::oid[]) o(oid) where o.oid not in (0, 'pg_catalog."C"'::regcollation))`,
    )
    expect(found).toEqual([])
  })

  it('has no key from a hot table but those of P4', async () => {
    const found = await rows<{ name: string }>(
      `select conname as name from pg_constraint where connamespace = 'hookledger'::regnamespace and contype = 'f' order by 1`,
    )
    expect(found.map(({ name }) => name)).toEqual([
      // what a person plans at once: nothing that an event writes
      'bulk_items_bulk_fkey',
      'entitlements_granted_by_fkey',
      'ledger_decisions_state_fkey',
      // a row a repair: nothing that an event writes
      'repairs_finding_fkey',
    ])
  })

  it('counts money and keys in whole numbers of 64 bits', async () => {
    const found = await rows<{ name: string; type: string }>(
      `select c.relname || '.' || a.attname as name, format_type(a.atttypid, a.atttypmod) as type from pg_attribute a join pg_class c on c.oid = a.attrelid
       where c.relnamespace = 'hookledger'::regnamespace and c.relkind in ('r', 'p', 'v') and a.attnum > 0 and (attname ~ 'amount$' or attname in ('event_key', 'decision_id'))`,
    )
    expect(found.length).toBeGreaterThan(10)
    expect(found.filter(({ type }) => type !== 'bigint')).toEqual([])
  })
})

describe('an entitling decision', () => {
  it('names the state that entitles, or is refused', async () => {
    const insert = (columns: string, values: string) =>
      rows(
        `insert into hookledger.ledger_decisions (kind, final, reason, actor, entitles${columns}) values ('fulfilled', true, 'r', 'a', true${values})`,
      )
    await expect(insert('', '')).rejects.toMatchObject({
      code: '23514',
      constraint: 'ledger_decisions_entitles_check',
    })
    await expect(insert(', order_id, workflow', `, 'o', 'license'`)).rejects.toMatchObject({
      code: '23514',
    })
    await expect(insert(', workflow, to_state', `, 'license', 'paid'`)).rejects.toMatchObject({
      code: '23514',
    })
    await expect(
      insert(', order_id, workflow, to_state', `, 'o', 'license', 'paid'`),
    ).rejects.toMatchObject({ code: '23503' })
    await rows(
      `insert into hookledger.workflow_states (workflow, state, entitles) values ('license', 'paid', true)`,
    )
    await expect(
      insert(', order_id, workflow, to_state', `, 'o', 'license', 'paid'`),
    ).resolves.toEqual([])
  })
})
