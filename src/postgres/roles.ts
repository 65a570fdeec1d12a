/**
 * The separate roles: owner, receiver, worker, console, privacy. None of the last four owns anything;
 * each may do what its part of the product does and nothing else. One role is enough to run; then
 * reading a payload without a record of it is prevented by nothing (P9), and `adviseRoles` says so.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Database } from './executor.ts'
import { retryOnLocks } from './lock-retry.ts'
import { runtimeRights, type RuntimeRole } from './role-rights.ts'
import { schemaPrefix } from './schema-name.ts'
import { describeDatabaseError, sqlstateOf } from './sqlstate.ts'

/** What a role is for. */
export type RoleName = 'owner' | RuntimeRole

/** Every role. */
export const roleNames: readonly RoleName[] = ['owner', 'receiver', 'worker', 'console', 'privacy']

/** The roles that run things; the owner only owns. */
const runtimeRoles: readonly RuntimeRole[] = ['receiver', 'worker', 'console', 'privacy']

/**
 * The name of a role of a schema: `<schema>_<role>`.
 *
 * @throws HookledgerError HKL_SCHEMA_NAME when PostgreSQL would cut it short
 */
export function roleName(schemaName: string, role: RoleName): string {
  schemaPrefix(schemaName)
  const name = `${schemaName}_${role}`
  if (name.length > 63) {
    throw new HookledgerError(
      'HKL_SCHEMA_NAME',
      `the role ${name} would be longer than PostgreSQL's 63 characters: use a shorter schema name for separate roles`,
    )
  }
  return name
}

/**
 * The script that makes the roles, gives them their rights, and hands everything in the schema to the
 * owner; it may be run any number of times. The roles can log in once an administrator has given them
 * passwords: no password is ever made or stored here.
 */
export function rolesSql(schemaName: string): string {
  return [
    `-- Separate roles for schema ${schemaName}: one log-in for each part, none of which owns anything.`,
    `-- Give them passwords afterwards, for example: alter role ${roleName(schemaName, 'receiver')} password '…';`,
    ...makeStatements(schemaName),
    ...rightsStatements(schemaName),
  ]
    .map((statement) => (statement.startsWith('--') ? statement : `${statement};`))
    .join('\n')
    .concat('\n')
}

/** What pg_has_role must be asked before SET ROLE: newer servers have members who may not. */
export const mayActAs: string = `case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end`

/** Whether every role of the schema exists and may use it. */
export async function rolesExist(db: Database): Promise<boolean> {
  const names = runtimeRoles.map((role) => roleName(db.schemaName, role))
  const [row] = await db.query<{ exist: boolean }>({
    text: `select count(*) = cardinality($1::text[]) as exist from pg_roles r
      where r.rolname = any ($1::text[]) and has_schema_privilege(r.oid, $2::text, 'usage')`,
    values: [names, db.schemaName],
  })
  return row?.exist === true
}

/**
 * Makes the roles, or brings their rights up to date.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID when this login may not: somebody who may runs the script
 */
export async function makeRoles(db: Database): Promise<void> {
  await applyStatements(db, [...makeStatements(db.schemaName), ...rightsStatements(db.schemaName)])
}

/** Gives the roles their rights anew, after a migration has made new tables. */
export async function renewRights(db: Database): Promise<void> {
  await applyStatements(db, rightsStatements(db.schemaName))
}

async function applyStatements(db: Database, statements: readonly string[]): Promise<void> {
  try {
    await retryOnLocks(() =>
      db.transaction(
        async (tx) => {
          for (const text of statements) await tx.query({ text })
        },
        { setup: `set local lock_timeout = '200ms'` },
      ),
    )
  } catch (error) {
    if (sqlstateOf(error) !== '42501') throw error
    throw new HookledgerError(
      'HKL_CONFIG_INVALID',
      `this login may not make roles (${describeDatabaseError(error)}): print the script with "hookledger migrate --roles --print" and run it as one that may`,
      { cause: error },
    )
  }
}

function makeStatements(schemaName: string): string[] {
  const owner = roleName(schemaName, 'owner')
  return [
    ...roleNames.map((role) =>
      makeRole(roleName(schemaName, role), role === 'owner' ? 'nologin' : 'login'),
    ),
    // whoever runs this goes on to run migrations, as the owner
    `do $$ begin
  if not pg_has_role(current_user, '${owner}', ${mayActAs}) then execute format('grant ${owner} to %I', current_user); end if;
end $$`,
    handOver(schemaName, owner),
    ...runtimeRoles.flatMap((role) => roleSettings(roleName(schemaName, role), role)),
  ]
}

function makeRole(name: string, login: 'login' | 'nologin'): string {
  return `do $$ begin
  create role ${name} ${login} nosuperuser nocreatedb nocreaterole noreplication nobypassrls;
exception when duplicate_object or unique_violation then null;
end $$`
}

/** Settings that hold whatever pooler or client stands between: nothing may lower the flush of a 2xx. */
function roleSettings(name: string, role: RoleName): string[] {
  return [
    `alter role ${name} set idle_in_transaction_session_timeout = '30s'`,
    `alter role ${name} set log_parameter_max_length_on_error = 0`,
    ...(role === 'receiver' ? [`alter role ${name} set synchronous_commit = on`] : []),
  ]
}

/** What is not the owner's yet becomes its own; later migrations run as the owner. */
function handOver(schemaName: string, owner: string): string {
  return `do $$ declare thing record; begin
  if (select nspowner from pg_namespace where nspname = '${schemaName}') <> '${owner}'::regrole then
    alter schema "${schemaName}" owner to ${owner};
  end if;
  for thing in
    select c.oid::regclass::text as name,
      case c.relkind when 'v' then 'view' when 'S' then 'sequence' else 'table' end as kind
    from pg_class c
    where c.relnamespace = '"${schemaName}"'::regnamespace and c.relkind in ('r', 'p', 'v', 'S') and c.relowner <> '${owner}'::regrole
      -- the sequence of an identity goes with its table
      and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and c.relkind = 'S' and d.deptype in ('a', 'i'))
    order by c.relkind <> 'p', c.relname
  loop
    execute format('alter %s %s owner to ${owner}', thing.kind, thing.name);
  end loop;
  for thing in
    select p.oid::regprocedure::text as name from pg_proc p
    where p.pronamespace = '"${schemaName}"'::regnamespace and p.proowner <> '${owner}'::regrole order by 1
  loop
    execute format('alter function %s owner to ${owner}', thing.name);
  end loop;
end $$`
}

function rightsStatements(schemaName: string): string[] {
  const schema = `schema "${schemaName}"`
  const all = runtimeRoles.map((role) => roleName(schemaName, role)).join(', ')
  return [
    // anew from nothing: a right that was taken out of the lists must not stay
    ...['all tables in ', 'all sequences in ', 'all functions in ', ''].map(
      (what) => `revoke all on ${what}${schema} from ${all}`,
    ),
    `grant usage on ${schema} to ${all}`,
    ...runtimeRoles.flatMap((role) =>
      runtimeRights[role].map(
        ([right, kind, object]) =>
          `grant ${right} on ${kind} ${schemaPrefix(schemaName)}${object} to ${roleName(schemaName, role)}`,
      ),
    ),
  ]
}
