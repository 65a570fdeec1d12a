/**
 * The database of a drill: one that nobody else uses, made anew before every case. A database that is given must be empty
 * and is left empty; one that holds anything is refused before a byte is written.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { HookledgerError } from '../../core/errors.ts'
import { endProcesses } from '../../postgres/embedded/end-processes.ts'
import { processesOf } from '../../postgres/embedded/orphan.ts'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../../postgres/embedded/start.ts'
import type { Asked } from '../oracle/verdict.ts'

/** A database of a drill's own. */
export interface Scratch {
  /** As its owner; not through the proxy. */
  readonly url: string
  /** What the database's comment says. */
  readonly mark: string
  /** Whether the server can be killed; one that is given only has its sessions ended. */
  readonly isOwn: boolean
  /** Empties it and makes schema and the app's tables anew. Nobody may be connected. */
  reset(): Promise<void>
  /** Asks on a connection of its own. */
  ask<T>(work: (db: Asked) => Promise<T>): Promise<T>
  /** Kills the server with everything in it and starts it again; of a given one, ends every session. */
  crash(): Promise<void>
  close(): Promise<void>
}

/** How the database is made. */
export interface ScratchOptions {
  readonly databaseUrl: string | undefined
  /** Migrates and makes the app's tables, in the database of this url. */
  readonly prepare: (url: string) => Promise<void>
  readonly note: (text: string) => void
}

/** Opens the database of a drill. @throws HookledgerError HKL_CLI_USAGE where the given one is not empty */
export async function openScratch(options: ScratchOptions): Promise<Scratch> {
  const mark = `hookledger drill ${randomUUID()}`
  return options.databaseUrl === undefined
    ? openEmbedded(options, mark)
    : openGiven(options, options.databaseUrl, mark)
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'hookledger-drill',
    connectionTimeoutMillis: 10_000,
  })
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}

const asking =
  (url: string) =>
  async <T>(work: (db: Asked) => Promise<T>): Promise<T> =>
    withClient(url, (client) => work(client as Asked))

function withName(url: string, database: string): string {
  const named = new URL(url)
  named.pathname = `/${database}`
  return named.href
}

const templateName = 'drill_template'
const caseName = 'drill'

async function openEmbedded({ prepare, note }: ScratchOptions, mark: string): Promise<Scratch> {
  const directory = mkdtempSync(join(tmpdir(), 'hookledger-drill-'))
  let server: EmbeddedPostgres = await startEmbeddedPostgres({ dataDir: directory, log: note })
  const { url: home, port } = server
  const url = withName(home, caseName)
  const close = async (): Promise<void> => {
    await server.stop('immediate').catch(() => {})
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    await withClient(home, (client) => client.query(`create database ${templateName}`))
    await prepare(withName(home, templateName))
  } catch (error) {
    await close()
    throw error
  }
  return {
    url,
    mark,
    isOwn: true,
    close,
    ask: asking(url),
    reset: () =>
      withClient(home, async (client) => {
        await client.query(`drop database if exists ${caseName} with (force)`)
        await client.query(`create database ${caseName} template ${templateName}`)
        await client.query(`comment on database ${caseName} is '${mark}'`)
      }),
    async crash() {
      // the server first, or it would see a backend die and begin to recover
      process.kill(server.pid, 'SIGKILL')
      await endProcesses(processesOf(server.clusterDir), 'SIGKILL', 10_000)
      await server.exited
      server = await startEmbeddedPostgres({ dataDir: directory, port, log: note })
    },
  }
}

const ownSchemas = `select nspname as name from pg_namespace where nspname <> 'information_schema' and nspname !~ '^pg_'`

const contents = `select n.nspname || '.' || c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname <> 'information_schema' and n.nspname !~ '^pg_'
  union all select nspname from pg_namespace where nspname not in ('public', 'information_schema') and nspname !~ '^pg_'
  limit 1`

async function openGiven({ prepare }: ScratchOptions, url: string, mark: string): Promise<Scratch> {
  const quoted = await withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>(contents)
    if (rows[0] !== undefined)
      throw new HookledgerError(
        'HKL_CLI_USAGE',
        `--database-url: the database is not empty (it holds ${rows[0].name}); a drill takes an empty one, and empties it again and again`,
      )
    const { rows: named } = await client.query<{ name: string }>(
      `select quote_ident(current_database()) as name`,
    )
    return named[0]?.name ?? ''
  })
  const empty = async (client: pg.Client): Promise<void> => {
    const { rows } = await client.query<{ name: string }>(ownSchemas)
    for (const { name } of rows)
      await client.query(`drop schema "${name.replaceAll('"', '""')}" cascade`)
    await client.query('create schema public')
  }
  const endSessions = (client: pg.Client): Promise<unknown> =>
    client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    )
  return {
    url,
    mark,
    isOwn: false,
    ask: asking(url),
    async reset() {
      await withClient(url, async (client) => {
        await endSessions(client)
        await empty(client)
        await client.query(`comment on database ${quoted} is '${mark}'`)
      })
      await prepare(url)
    },
    async crash() {
      await withClient(url, endSessions)
      await sleep(50)
    },
    close: () =>
      withClient(url, async (client) => {
        await endSessions(client)
        await empty(client)
        await client.query(`comment on database ${quoted} is null`)
      }),
  }
}
