/** A schema with separate roles in a database of its own, and real log-ins of each. */
import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { createDatabase } from '../../src/postgres/pool.ts'
import type { Database } from '../../src/postgres/executor.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { makeRoles, roleName, roleNames, type RoleName } from '../../src/postgres/roles.ts'
import { queryOnce } from '../support/once-query.ts'
import { createTestDatabase, databaseUrl, type TestDatabase } from '../support/test-database.ts'

/** A role that can log in. */
export type LoginRole = Exclude<RoleName, 'owner'>

/** Every role that can log in. */
export const loginRoles: readonly LoginRole[] = ['receiver', 'worker', 'console', 'privacy']

/** A schema whose roles have log-ins. */
export interface RoleBench {
  readonly database: TestDatabase
  /** Distinct for every bench, since roles belong to the whole server. */
  readonly schemaName: string
  /** As superuser. */
  readonly admin: pg.Pool
  readonly db: Database
  /** Pools whose search path is the schema. */
  readonly as: Readonly<Record<LoginRole, pg.Pool>>
  drop(): Promise<void>
}

/** Migrates a database, makes the roles and gives them passwords. */
export async function createRoleBench(): Promise<RoleBench> {
  const database = await createTestDatabase()
  const schemaName = `r_${randomBytes(5).toString('hex')}`
  const admin = database.pool({ options: `-c search_path=${schemaName}` })
  const db = createDatabase(admin, schemaName)
  await migrate(db, { environment: 'test', partitionsAheadDays: 8 })
  await makeRoles(db)
  const as: Partial<Record<LoginRole, pg.Pool>> = {}
  for (const role of loginRoles) as[role] = await logIn(database, schemaName, admin, role)
  return {
    database,
    schemaName,
    admin,
    db,
    as: as as Record<LoginRole, pg.Pool>,
    async drop() {
      await database.drop()
      await dropRoles(schemaName)
    },
  }
}

async function logIn(
  database: TestDatabase,
  schemaName: string,
  admin: pg.Pool,
  role: LoginRole,
): Promise<pg.Pool> {
  const password = randomBytes(12).toString('hex')
  await admin.query(`alter role ${roleName(schemaName, role)} password '${password}'`)
  const url = new URL(database.url)
  url.username = roleName(schemaName, role)
  url.password = password
  return database.pool({ connectionString: url.href, options: `-c search_path=${schemaName}` })
}

/** Drops the roles of a schema whose database is gone. */
export async function dropRoles(schemaName: string): Promise<void> {
  for (const role of roleNames) {
    await queryOnce(databaseUrl('postgres'), `drop role if exists ${roleName(schemaName, role)}`)
  }
}

/** The SQLSTATE with which a statement is refused; `done` when it is not. */
export async function refusal(
  pool: pg.Pool,
  text: string,
  values: unknown[] = [],
): Promise<string> {
  try {
    await pool.query(text, values)
    return 'done'
  } catch (error) {
    return (error as { code?: string }).code ?? 'no code'
  }
}
