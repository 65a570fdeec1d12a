/** A database of its own for each test that wants one, on the run's server. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'

/** A database to make others from, prepared once in a run (migrated, say). */
export interface DatabaseTemplate {
  /** Distinct for distinct content; letters, digits and underscores. */
  readonly name: string
  /** Fills the empty database; must have closed its connections when it resolves. */
  prepare(url: string): Promise<void>
}

/** A fresh database. */
export interface TestDatabase {
  readonly name: string
  /** URL as superuser. */
  readonly url: string
  /** A pool of its own; `drop` ends it. */
  pool(config?: pg.PoolConfig): pg.Pool
  /** Ends the pools and drops the database, whoever is still connected. */
  drop(): Promise<void>
}

/** Creates an empty database, or a copy of the template. */
export async function createTestDatabase(
  options: { template?: DatabaseTemplate } = {},
): Promise<TestDatabase> {
  const name = `t_${process.pid}_${randomBytes(5).toString('hex')}`
  const source = options.template ? await ensureTemplate(options.template) : 'template0'
  await asAdmin((admin) => admin.query(`create database ${name} template ${source}`))
  const url = databaseUrl(name)
  const pools = new Set<pg.Pool>()
  return {
    name,
    url,
    pool(config = {}) {
      const pool = new pg.Pool({ connectionString: url, max: 10, ...config })
      // A killed idle connection is what many tests are about; unheard it would end the process.
      pool.on('error', () => {})
      pools.add(pool)
      return pool
    },
    async drop() {
      await Promise.all([...pools].filter((pool) => !pool.ended).map((pool) => pool.end()))
      await asAdmin((admin) => admin.query(`drop database if exists ${name} with (force)`))
    },
  }
}

/** URL of a database on the run's server, as superuser. */
export function databaseUrl(name: string): string {
  const url = new URL(inject('postgresAdminUrl'))
  url.pathname = `/${name}`
  return url.href
}

async function ensureTemplate(template: DatabaseTemplate): Promise<string> {
  const name = `template_${template.name}`
  await asAdmin(async (admin) => {
    // Test files run in several processes: the first makes it, the others wait here.
    await admin.query('select pg_advisory_lock(hashtext($1))', [name])
    const { rowCount } = await admin.query('select from pg_database where datname = $1', [name])
    if (rowCount === 1) return
    const unfinished = `${name}_unfinished`
    await admin.query(`drop database if exists ${unfinished} with (force)`)
    await admin.query(`create database ${unfinished} template template0`)
    await template.prepare(databaseUrl(unfinished))
    await admin.query(`alter database ${unfinished} with allow_connections false`)
    await admin.query(`alter database ${unfinished} rename to ${name}`)
  })
  return name
}

async function asAdmin<T>(work: (admin: pg.Client) => Promise<T>): Promise<T> {
  const admin = new pg.Client({ connectionString: databaseUrl('postgres') })
  admin.on('error', () => {})
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.end()
  }
}
