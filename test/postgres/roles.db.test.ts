import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pendingMigrations } from '../../src/postgres/migrate.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { adviseRoles } from '../../src/postgres/role-advice.ts'
import { makeRoles, roleName, rolesExist, rolesSql } from '../../src/postgres/roles.ts'
import { createTestDatabase } from '../support/test-database.ts'
import { createRoleBench, dropRoles, loginRoles, refusal, type RoleBench } from './role-logins.ts'

let bench: RoleBench
let eventKey: string

beforeAll(async () => {
  bench = await createRoleBench()
  const { admin } = bench
  await admin.query(
    `insert into sources (provider, provider_account, environment) values ('stripe', 'acct', 'test')`,
  )
  const { rows } = await admin.query<{ event_key: string }>(
    `insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes) values (1, 'evt_1', 'x', sha256('secret'), 6) returning event_key`,
  )
  eventKey = rows[0]?.event_key ?? ''
  await admin.query(
    `insert into payloads select event_key, (received_at at time zone 'UTC')::date, 'secret' from inbox_events`,
  )
  await admin.query(
    `insert into ledger_decisions (event_key, order_id, kind, final, reason, actor) values ($1, 'o1', 'skipped', true, 'r', 'a')`,
    [eventKey],
  )
  await admin.query(
    `insert into fulfillment_effects (order_id, effect_type, decision_id) values ('o1', 'license', 1)`,
  )
})
afterAll(() => bench.drop())

/** What a role may do with each statement: `done`, or the SQLSTATE of the refusal. */
async function outcomes(
  pool: pg.Pool,
  statements: readonly string[],
): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const text of statements) found[text] = await refusal(pool, text)
  return found
}

function all(statements: readonly string[], outcome: string): Record<string, string> {
  return Object.fromEntries(statements.map((text) => [text, outcome]))
}

describe('makeRoles', () => {
  it('makes roles of which none is powerful, and none but the owner owns anything', async () => {
    const { rows } = await bench.admin.query(
      `select r.rolname, rolcanlogin, rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls as powerful,
        has_schema_privilege(r.oid, $1, 'create') as creates, (select count(*)::int from pg_class c where c.relowner = r.oid) > 0 as owns,
        exists (select from pg_auth_members m where m.member = r.oid) as member
      from pg_roles r where rolname like $1 || '\\_%' order by 1`,
      [bench.schemaName],
    )
    const row = (role: string, owner: boolean) => ({
      rolname: `${bench.schemaName}_${role}`,
      rolcanlogin: !owner,
      powerful: false,
      creates: owner,
      owns: owner,
      member: false,
    })
    expect(rows).toEqual(
      ['console', 'owner', 'privacy', 'receiver', 'worker'].map((role) =>
        row(role, role === 'owner'),
      ),
    )
  })

  it('hands everything in the schema to the owner, also what is made later', async () => {
    await bench.admin.query('select make_payload_partitions(10)')
    const { rows } = await bench.admin.query(
      `select c.relname as name from pg_class c where relnamespace = $1::regnamespace and c.relowner <> $2::regrole
       union all select proname from pg_proc p where pronamespace = $1::regnamespace and p.proowner <> $2::regrole`,
      [bench.schemaName, roleName(bench.schemaName, 'owner')],
    )
    expect(rows).toEqual([])
  })

  it('can be run again, takes back what somebody gave, and gives back what somebody took', async () => {
    const worker = roleName(bench.schemaName, 'worker')
    await bench.admin.query(`grant delete, select on payloads to ${worker}`)
    await bench.admin.query(`revoke insert on orders from ${worker}`)
    await Promise.all([makeRoles(bench.db), makeRoles(bench.db), makeRoles(bench.db)])
    const { rows } = await bench.admin.query(
      `select has_table_privilege($1, 'payloads', 'delete') as taken, has_table_privilege($1, 'orders', 'insert') as given`,
      [worker],
    )
    expect(rows).toEqual([{ taken: false, given: true }])
    expect(await rolesExist(bench.db)).toBe(true)
  })

  it('prints a script that comes to the same when somebody runs it', async () => {
    const rights = `select o.name, acl.grantee::regrole::text as role, acl.privilege_type, o.col from (
        select c.oid, relname::text as name, relacl as acl, '' as col, relnamespace as ns from pg_class c
        union all select p.oid, proname::text, proacl, '', pronamespace from pg_proc p
        union all select c.oid, c.relname::text, a.attacl, a.attname::text, c.relnamespace from pg_class c join pg_attribute a on a.attrelid = c.oid
      ) o, aclexplode(o.acl) acl where o.ns = $1::regnamespace order by 1, 2, 3, 4`
    const read = async (pool: pg.Pool, schema: string) =>
      (await pool.query<{ name: string; role: string }>(rights, [schema])).rows.map((row) => ({
        ...row,
        role: row.role.replace(`${schema}_`, ''),
      }))
    const made = await read(bench.admin, bench.schemaName)
    const other = await createTestDatabase()
    const schema = `${bench.schemaName}_p`
    try {
      const pool = other.pool()
      for (const { sql } of await pendingMigrations(createDatabase(pool, schema), 'test'))
        await pool.query(sql)
      await pool.query(rolesSql(schema))
      const ofDays = ({ name }: { name: string }) => /^payloads_\d/.test(name)
      const printed = await read(pool, schema)
      expect(printed.filter((row) => !ofDays(row))).toEqual(made.filter((row) => !ofDays(row)))
    } finally {
      await other.drop()
      await dropRoles(schema)
    }
  })

  it('tells a login that may not make roles what to do instead', async () => {
    await expect(
      makeRoles(createDatabase(bench.as.worker, bench.schemaName)),
    ).rejects.toMatchObject({
      code: 'HKL_CONFIG_INVALID',
      message: expect.stringContaining('hookledger migrate --roles --print'),
    })
  })

  it('refuses a schema name that leaves no room for the names of roles', () => {
    expect(() => rolesSql('s'.repeat(55))).toThrow(/shorter schema name/)
    expect(() => rolesSql('x"; drop schema public; --')).toThrow(/lower-case identifier/)
  })
})

describe('adviseRoles', () => {
  it('has nothing to say to the separate logins, and names who else may read bodies', async () => {
    for (const role of loginRoles)
      expect(await adviseRoles(createDatabase(bench.as[role], bench.schemaName))).toEqual([])
    await bench.admin.query(
      `grant select (body) on payloads to ${roleName(bench.schemaName, 'console')}`,
    )
    expect(await adviseRoles(createDatabase(bench.as.console, bench.schemaName))).toEqual([
      expect.stringContaining('may read them'),
    ])
    await bench.admin.query(
      `grant select on payloads_held to ${roleName(bench.schemaName, 'worker')}`,
    )
    expect(await adviseRoles(createDatabase(bench.as.privacy, bench.schemaName))).toEqual([
      expect.stringContaining(`P9 does not hold for ${roleName(bench.schemaName, 'worker')}`),
    ])
    await makeRoles(bench.db)
    expect(await adviseRoles(createDatabase(bench.as.console, bench.schemaName))).toEqual([])
  })

  it('says so where the log of the server would show the beginning of a body', async () => {
    const pool = bench.database.pool({ options: '-c log_error_verbosity=default' })
    expect(await adviseRoles(createDatabase(pool, bench.schemaName))).toContainEqual(
      expect.stringContaining('log_error_verbosity is default'),
    )
  })
})

describe('every role', () => {
  it('is kept from bodies in every table, partitions included', async () => {
    const { rows } = await bench.admin.query(
      `select r.rolname, c.relname from pg_roles r, pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'body'
       where r.rolname = any ($2) and c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p', 'v')
         and (has_column_privilege(r.oid, c.oid, a.attnum, 'select') or has_column_privilege(r.oid, c.oid, a.attnum, 'update'))`,
      [bench.schemaName, loginRoles.map((role) => roleName(bench.schemaName, role))],
    )
    expect(rows).toEqual([])
  })

  it('may neither change nor remove what is recorded', async () => {
    const { rows } = await bench.admin.query(
      `select r.rolname, c.relname, p.privilege from pg_roles r, pg_class c, unnest(array['update', 'delete', 'truncate']) p(privilege)
       where r.rolname = any ($2) and c.relnamespace = $1::regnamespace
         and c.relname in ('ledger_decisions', 'fulfillment_effects', 'ledger_payments', 'operator_acts', 'payload_reads', 'inbox_events',
           'deliveries', 'payloads', 'payloads_held', 'evidence', 'installation', 'migrations', 'sources', 'workflow_states')
         and case p.privilege when 'update' then has_any_column_privilege(r.oid, c.oid, 'update') else has_table_privilege(r.oid, c.oid, p.privilege) end`,
      [bench.schemaName, loginRoles.map((role) => roleName(bench.schemaName, role))],
    )
    // a payment that was recorded and not applied may come to be: of which order and how much stays. Of an
    // answer, only whether it came late
    expect(rows.filter(({ relname }) => relname !== 'evidence')).toEqual([
      {
        rolname: roleName(bench.schemaName, 'worker'),
        relname: 'ledger_payments',
        privilege: 'update',
      },
    ])
    expect(rows.filter(({ relname }) => relname === 'evidence')).toEqual([
      { rolname: roleName(bench.schemaName, 'worker'), relname: 'evidence', privilege: 'update' },
    ])
    const { rows: columns } = await bench.admin.query(
      `select string_agg(attname, ',' order by attname) as columns from pg_attribute
       where attrelid = 'ledger_payments'::regclass and attnum > 0 and has_column_privilege($1, attrelid, attnum, 'update')`,
      [roleName(bench.schemaName, 'worker')],
    )
    expect(columns).toEqual([{ columns: 'applied,decision_id' }])
  })

  it('cannot truncate, make triggers or keys, or create anything', async () => {
    const { rows } = await bench.admin.query(
      `select r.rolname, c.relname, p.privilege from pg_roles r, pg_class c, unnest(array['truncate', 'trigger', 'references']) p(privilege)
       where r.rolname = any ($2) and c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p', 'v') and has_table_privilege(r.oid, c.oid, p.privilege)`,
      [bench.schemaName, loginRoles.map((role) => roleName(bench.schemaName, role))],
    )
    expect(rows).toEqual([])
    for (const role of loginRoles) {
      expect(
        await outcomes(bench.as[role], [
          'create table t (a integer)',
          'create schema mine',
          'create role somebody',
        ]),
      ).toEqual(
        all(['create table t (a integer)', 'create schema mine', 'create role somebody'], '42501'),
      )
    }
  })

  it('runs no function that was not given to it by name, and none of them trusts a search path', async () => {
    const { rows } = await bench.admin.query(
      `select p.proname, p.prosecdef, coalesce(p.proconfig::text, '') like '%search_path=pg_catalog, pg_temp%' as fixed,
         has_function_privilege('public', p.oid, 'execute') as public
       from pg_proc p where pronamespace = $1::regnamespace and proname <> 'refuse_change'`,
      [bench.schemaName],
    )
    expect(rows.length).toBeGreaterThan(8)
    expect(rows.filter((row) => !row.fixed || row.public)).toEqual([])
    const { rows: trigger } = await bench.admin.query(
      `select has_function_privilege('public', 'refuse_change()', 'execute') as public`,
    )
    expect(trigger).toEqual([{ public: false }])
  })
})

describe('the receiver', () => {
  const bodies = [
    'select body from payloads',
    'select 1 from payloads where length(body) > 1',
    'select * from payloads',
    'select count(*) from payloads_held',
    'select body from claimed_payloads(array[1::bigint])',
    `select read_payload(1, 'because', 'me')`,
    'select is_payload_intact(1)',
  ]
  const changes = [
    `update payloads set body = ''`,
    'delete from payloads',
    'delete from inbox_events',
    `update inbox_events set event_type = 'y'`,
    'delete from inbox_ready',
    'update inbox_ready set attempts = 9',
    'delete from deliveries',
    'delete from rejections',
    'update retention set payload_days = 1',
    'truncate deliveries',
  ]
  const others = [
    'select * from inbox_events',
    'select * from webhook_inbox',
    'select reason from ledger_decisions',
    'select * from orders',
    'select * from current_entitlements',
    'select secret from installation',
    `insert into ledger_decisions (kind, final, reason, actor) values ('skipped', false, 'r', 'a')`,
    `insert into fulfillment_effects (order_id, effect_type, decision_id) values ('o', 'license', 1)`,
    `insert into inbox_events (event_key, source_id, event_id, event_type, body_sha256, body_bytes) overriding system value values (9, 1, 'e', 't', '', 0)`,
    `insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes) values (1, 'e', 't', '', 0) returning *`,
    `insert into operator_acts (act, target, reason, actor) values ('a', 't', 'r', 'a')`,
  ]

  it('reads no body back, changes nothing, and sees nothing but identities', async () => {
    expect(await outcomes(bench.as.receiver, bodies)).toEqual(all(bodies, '42501'))
    expect(await outcomes(bench.as.receiver, changes)).toEqual(all(changes, '42501'))
    expect(await outcomes(bench.as.receiver, others)).toEqual(all(others, '42501'))
  })

  it('runs upkeep, but cannot have less kept than is stored', async () => {
    const old = '2020-01-01'
    await bench.admin.query(
      `create table payloads_20200101 partition of payloads for values from ('${old}') to ('2020-01-02')`,
    )
    await bench.admin.query(
      `alter table payloads_20200101 owner to ${roleName(bench.schemaName, 'owner')}`,
    )
    const days = `(current_date - date '${old}')`
    await bench.admin.query(
      `update retention set payload_days = ${days} + 10, identity_days = ${days} + 10`,
    )
    const { rows: kept } = await bench.as.receiver.query(
      'select drop_payload_partitions(0) as n, drop_identities(0, 1000) as i',
    )
    expect(kept).toEqual([{ n: 0, i: 0 }])
    await bench.admin.query('update retention set payload_days = 30, identity_days = 400')
    const { rows: dropped } = await bench.as.receiver.query(
      'select drop_payload_partitions(0) as n',
    )
    expect(dropped).toEqual([{ n: 1 }])
    expect(await refusal(bench.as.receiver, 'select make_payload_partitions(11)')).toBe('done')
    expect(await refusal(bench.as.receiver, 'select drop_payload_partitions(-400)')).toBe('22023')
    const { rows } = await bench.admin.query('select count(*)::int as n from inbox_events')
    expect(rows).toEqual([{ n: 1 }])
  })
})

describe('the worker', () => {
  const refused = [
    'select body from payloads',
    'select 1 from payloads where length(body) > 1',
    'select body from payloads_held',
    'delete from payloads',
    `insert into payloads_held values (1, 'x')`,
    'select body from evidence',
    `update evidence set body = null`,
    'delete from evidence',
    `select read_evidence(1, 'because', 'me')`,
    `select read_payload(1, 'because', 'me')`,
    'select * from payload_reads',
    `update ledger_decisions set reason = 'another'`,
    'delete from ledger_decisions',
    'truncate ledger_decisions',
    `update fulfillment_effects set data = '{}'`,
    'delete from fulfillment_effects',
    'delete from ledger_payments',
    'update ledger_payments set amount = 0',
    'delete from entitlements',
    `update orders set order_id = 'another'`,
    'delete from operator_acts',
    'delete from findings',
    'delete from inbox_events',
    'delete from workflow_states',
    'update workflow_states set entitles = true',
    `insert into ledger_decisions (kind, final, reason, actor, decided_at) values ('skipped', false, 'r', 'a', '2020-01-01')`,
    `insert into operator_acts (act, target, reason, actor, database_role) values ('a', 't', 'r', 'a', 'somebody else')`,
    'alter table ledger_decisions disable trigger all',
    'drop view webhook_inbox',
  ]

  it('takes nothing from the ledger, forges no time or role, and touches no body', async () => {
    expect(await outcomes(bench.as.worker, refused)).toEqual(all(refused, '42501'))
  })

  it('reads the bodies of what is in work, and of nothing that is finished', async () => {
    const claimed = `select convert_from(body, 'UTF8') as body from claimed_payloads(array[$1::bigint])`
    await bench.admin.query(
      `insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes) values (1, 'evt_2', 'x', sha256('second'), 6)`,
    )
    const { rows: second } = await bench.admin.query<{ event_key: string }>(
      `select event_key from inbox_events where event_id = 'evt_2'`,
    )
    await bench.admin.query(
      `insert into payloads select event_key, (received_at at time zone 'UTC')::date, 'second' from inbox_events where event_id = 'evt_2'`,
    )
    expect((await bench.as.worker.query(claimed, [second[0]?.event_key])).rows).toEqual([])
    for (const key of [eventKey, second[0]?.event_key]) {
      await bench.as.worker.query(
        `insert into inbox_ready (event_key, received_on) values ($1, (now() at time zone 'UTC')::date)`,
        [key],
      )
    }
    expect((await bench.as.worker.query(claimed, [second[0]?.event_key])).rows).toEqual([
      { body: 'second' },
    ])
    expect((await bench.as.worker.query(claimed, [eventKey])).rows).toEqual([])
  })
})

describe('the console', () => {
  const refused = [
    'select body from payloads',
    'select * from payloads',
    `select 1 from payloads where body like '%s%'`,
    'select 1 from payloads where sha256(body) is not null',
    'select event_key from payloads order by body',
    'select body from payloads_held',
    'select body from evidence',
    `select read_evidence(1, 'because', 'me')`,
    'select * from newest_answers(array[1::bigint], 0)',
    'select secret from installation',
    'select * from installation',
    `select read_payload(1, 'because', 'me')`,
    'select body from claimed_payloads(array[1::bigint])',
    'delete from inbox_ready',
    `insert into inbox_ready (event_key, received_on) values (1, current_date)`,
    `update orders set state = 'paid'`,
    `update findings set owner = 'me'`,
    'select drop_payload_partitions(0)',
    `insert into ledger_decisions (kind, final, reason, actor) values ('skipped', false, 'r', 'a')`,
  ]

  it('reads everything that people look at', async () => {
    const views = [
      'webhook_inbox',
      'decisions',
      'payments',
      'current_entitlements',
      'orders',
      'findings',
      'payload_reads',
      'mirrored_objects',
      'fetches',
      'operator_acts',
      'rejections',
    ]
    for (const view of views)
      expect(await refusal(bench.as.console, `select * from ${view}`)).toBe('done')
    const { rows } = await bench.as.console.query(
      'select event_id, state, is_payload_intact(event_key) as intact from webhook_inbox where event_key = $1',
      [eventKey],
    )
    expect(rows).toEqual([{ event_id: 'evt_1', state: 'processed', intact: true }])
  })

  it('sees no body, not even in a condition, and changes nothing', async () => {
    expect(await outcomes(bench.as.console, refused)).toEqual(all(refused, '42501'))
  })
})

describe('the privacy role', () => {
  it('reads an answer of a provider with a reason, which is recorded', async () => {
    const { rows: made } = await bench.admin.query<{ evidence_id: string }>(
      `insert into evidence (order_id, source_id, kind, object_id, number, workflow, is_found, requested_at, body_sha256, body_bytes, body)
       values ('o', 1, 'plan', 'p', 1, 'w', true, now(), sha256('answer'), 6, 'answer') returning evidence_id`,
    )
    const id = made[0]?.evidence_id
    const read = `select convert_from(read_evidence($1, $2, 'ada'), 'UTF8') as body`
    expect((await bench.as.privacy.query(read, [id, 'a complaint'])).rows).toEqual([
      { body: 'answer' },
    ])
    await expect(bench.as.privacy.query(read, [id, ''])).rejects.toMatchObject({ code: '22023' })
    expect(
      await bench.admin
        .query('delete from payload_reads returning evidence_id')
        .catch((error: { code: string }) => error.code),
    ).toBe('42501')
    const { rows } = await bench.as.privacy.query(
      'select event_key, evidence_id, actor from payload_reads where evidence_id is not null',
    )
    expect(rows).toEqual([{ event_key: null, evidence_id: id, actor: 'ada' }])
  })

  it('reads a body with a reason, which is recorded with its login before the body comes back', async () => {
    const { rows } = await bench.as.privacy.query(
      `select convert_from(read_payload($1, 'a complaint', 'ada'), 'UTF8') as body`,
      [eventKey],
    )
    expect(rows).toEqual([{ body: 'secret' }])
    const { rows: reads } = await bench.as.privacy.query(
      'select event_key, reason, actor, database_role from payload_reads where event_key is not null',
    )
    expect(reads).toEqual([
      {
        event_key: eventKey,
        reason: 'a complaint',
        actor: 'ada',
        database_role: roleName(bench.schemaName, 'privacy'),
      },
    ])
  })

  it('reads nothing without a reason and an actor, or of an event that does not exist', async () => {
    expect(await refusal(bench.as.privacy, `select read_payload(1, ' ', 'ada')`)).toBe('22023')
    expect(await refusal(bench.as.privacy, `select read_payload(1, 'a complaint', null)`)).toBe(
      '22023',
    )
    expect(await refusal(bench.as.privacy, `select read_payload(4711, 'a complaint', 'ada')`)).toBe(
      'P0002',
    )
    const { rows } = await bench.as.privacy.query(
      'select count(*)::int as n from payload_reads where event_key is not null',
    )
    expect(rows).toEqual([{ n: 1 }])
  })

  it('cannot read past the record, or change it', async () => {
    const refused = [
      'select body from payloads',
      'select body from payloads_held',
      'select body from evidence',
      'select body from claimed_payloads(array[1::bigint])',
      'delete from payload_reads',
      `update payload_reads set reason = 'none'`,
      `insert into payload_reads (event_key, reason, actor) values (1, 'r', 'a')`,
      'select * from orders',
      'delete from inbox_ready',
    ]
    expect(await outcomes(bench.as.privacy, refused)).toEqual(all(refused, '42501'))
  })
})
