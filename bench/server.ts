/**
 * The database of a run: `DATABASE_URL`, or an embedded server of its own with PostgreSQL's durable
 * settings. Every round of every contestant gets a schema of its own, dropped when it is done.
 */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startEmbeddedPostgres } from '../src/postgres/embedded/start.ts'

/** A server that benchmarks run on. */
export interface BenchServer {
  readonly url: string
  /** What a reader of the figures must know of it. */
  conditions(): Promise<Readonly<Record<string, string>>>
  stop(): Promise<void>
}

const reported = [
  'server_version',
  'fsync',
  'full_page_writes',
  'synchronous_commit',
  'shared_buffers',
  'min_wal_size',
  'max_wal_size',
] as const

/** Starts the embedded server in a temporary directory, or takes `DATABASE_URL`. */
export async function startBenchServer(): Promise<BenchServer> {
  const given = process.env['DATABASE_URL']
  if (given !== undefined && given !== '') {
    return { url: given, conditions: () => readConditions(given), stop: async () => {} }
  }
  const directory = mkdtempSync(join(tmpdir(), 'hookledger-bench-'))
  chmodSync(directory, 0o755) // the server's own account must enter it
  const server = await startEmbeddedPostgres({ dataDir: directory })
  await age(server.url)
  return {
    url: server.url,
    conditions: () => readConditions(server.url),
    stop: async () => {
      await server.stop('immediate')
      removeDirectory(directory)
    },
  }
}

/**
 * A server that has run for a while writes its log into files that it recycles; a new one stops every
 * 16 MB to make and flush a file of zeros, and whoever writes most would be measured by that.
 */
async function age(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(`alter system set min_wal_size = '1GB'`)
    await client.query('select pg_reload_conf()')
    for (let megabytes = 0; megabytes < 900; megabytes += 10) {
      await client.query(`select pg_logical_emit_message(false, 'bench', repeat('x', 10000000))`)
    }
    await client.query('checkpoint')
  })
}

/** The directory, and where the server's part had to be put elsewhere, that too. */
function removeDirectory(directory: string): void {
  const pointer = join(directory, 'postgres', 'location.json')
  if (existsSync(pointer)) {
    const { home } = JSON.parse(readFileSync(pointer, 'utf8')) as { home: string }
    rmSync(home, { recursive: true, force: true })
  }
  rmSync(directory, { recursive: true, force: true })
}

async function readConditions(url: string): Promise<Record<string, string>> {
  return withClient(url, async (client) => {
    const conditions: Record<string, string> = {}
    for (const name of reported) {
      const { rows } = await client.query<Record<string, string>>(`show ${name}`)
      conditions[name] = rows[0]?.[name] ?? ''
    }
    return conditions
  })
}

/** Runs work on one connection of its own. */
export async function withClient<T>(
  url: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** A pool of this size. */
export function createBenchPool(url: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max })
  pool.on('error', () => {})
  return pool
}

/** Drops schemas and what is in them. */
export async function dropSchemas(url: string, names: readonly string[]): Promise<void> {
  await withClient(url, async (client) => {
    for (const name of names) await client.query(`drop schema if exists "${name}" cascade`)
  })
}

/** Fresh statistics and no checkpoint that a contestant inherits from whoever ran before it. */
export async function settle(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query('vacuum (analyze)')
    await client.query('checkpoint')
  })
}
