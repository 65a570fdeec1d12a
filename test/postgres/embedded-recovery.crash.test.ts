import { spawn } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { endProcesses } from '../../src/postgres/embedded/end-processes.ts'
import { processesOf } from '../../src/postgres/embedded/orphan.ts'
import { isRunning } from '../../src/postgres/embedded/process-table.ts'
import { chooseServerAccount } from '../../src/postgres/embedded/server-account.ts'
import { startEmbeddedPostgres } from '../../src/postgres/embedded/start.ts'
import type { EmbeddedPostgres } from '../../src/postgres/embedded/start.ts'
import { copyDataDir, makeTestDir, removeDataDir } from '../support/data-dirs.ts'
import { bundleDriver, makeProject, startDriver } from '../support/embedded-project.ts'
import type { Driver } from '../support/embedded-project.ts'
import { queryOnce } from '../support/once-query.ts'

const root = makeTestDir()
const project = join(root, 'project')
const drivers = new Set<Driver>()
const servers = new Set<EmbeddedPostgres>()
let dataDir: string
let count = 0

beforeAll(async () => makeProject(await bundleDriver(join(root, 'bundle')), project))

beforeEach(() => {
  count += 1
  dataDir = join(root, `data-${count}`)
})

afterEach(async () => {
  for (const driver of drivers) driver.child.kill('SIGKILL')
  drivers.clear()
  for (const server of servers) await server.stop('immediate')
  servers.clear()
  await endProcesses(processesOf(clusterDir()), 'SIGKILL', 10_000)
  removeDataDir(dataDir)
})

afterAll(() => rmSync(root, { recursive: true, force: true }))

const clusterDir = () => join(dataDir, 'postgres', 'cluster')

function drive(): Driver {
  const driver = startDriver(project, dataDir)
  drivers.add(driver)
  return driver
}

async function start(notes: string[] = []): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, log: (note) => void notes.push(note) })
  servers.add(server)
  return server
}

async function killParent(driver: Driver): Promise<void> {
  const gone = new Promise((resolve) => driver.child.once('exit', resolve))
  driver.child.kill('SIGKILL')
  await gone
}

/** A driver whose server has one committed row. */
async function driverWithRow(): Promise<Driver> {
  copyDataDir(inject('postgresTemplateDir'), dataDir)
  const driver = drive()
  await queryOnce((await driver.report).url, 'create table kept as select 42 as answer')
  return driver
}

async function expectRow(server: EmbeddedPostgres): Promise<void> {
  expect(await queryOnce(server.url, 'select answer from kept')).toEqual([{ answer: 42 }])
}

describe('startEmbeddedPostgres after a kill', () => {
  it('replaces a server that outlived its parent', async () => {
    const driver = await driverWithRow()
    const { pid } = await driver.report
    await killParent(driver)
    expect(isRunning(pid)).toBe(true)
    const notes: string[] = []
    const server = await start(notes)
    expect(isRunning(pid)).toBe(false)
    expect(notes).toEqual([expect.stringContaining(String(pid))])
    await expectRow(server)
  })

  it('recovers when the parent, the server and all its processes were killed at once', async () => {
    const driver = await driverWithRow()
    driver.child.kill('SIGKILL')
    await endProcesses(processesOf(clusterDir()), 'SIGKILL', 10_000)
    expect(existsSync(join(clusterDir(), 'postmaster.pid'))).toBe(true)
    await expectRow(await start())
  })

  it('ends backends that are too busy to notice that their server was killed', async () => {
    const driver = await driverWithRow()
    const { url, pid } = await driver.report
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {})
    await client.connect()
    const busy = client
      .query('do $$ declare n bigint := 0; begin loop n := n + 1; end loop; end $$')
      .catch(() => {})
    const { rows } = await query(url, `select pid from pg_stat_activity where query like 'do %'`)
    const backend = (rows[0] as { pid: number }).pid
    driver.child.kill('SIGKILL')
    process.kill(pid, 'SIGKILL')
    await expect.poll(() => isRunning(pid)).toBe(false)
    expect(isRunning(backend)).toBe(true)
    const server = await start()
    expect(isRunning(backend)).toBe(false)
    await busy
    await expectRow(server)
  })

  it('waits for a server that still recovers from an earlier crash', async () => {
    const first = await driverWithRow()
    const { url } = await first.report
    // Enough to replay that the next server is still at it when its parent is killed.
    await queryOnce(
      url,
      'create table filler as select repeat(n::text, 50) from generate_series(1, 400000) n',
    )
    first.child.kill('SIGKILL')
    await endProcesses(processesOf(clusterDir()), 'SIGKILL', 10_000)
    const second = drive()
    await expect.poll(() => processesOf(clusterDir()).length, { interval: 5 }).toBeGreaterThan(1)
    await killParent(second)
    const server = await start()
    await expectRow(server)
    expect(await queryOnce(server.url, 'select count(*)::int as n from filler')).toEqual([
      { n: 400_000 },
    ])
  })

  it('gets there from every moment at which its first start was killed', async () => {
    for (let delayMs = 40; delayMs < 900; delayMs += 60) {
      const driver = drive()
      await sleep(delayMs)
      await killParent(driver)
    }
    const server = await start()
    expect(await queryOnce(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    const leftovers = readdirSync(join(dataDir, 'postgres')).filter((name) => /^init-/.test(name))
    expect(leftovers).toEqual([])
    expect(processesOf(clusterDir()).filter((entry) => / -D /.test(entry.command))).toHaveLength(1)
  })

  it('does not take another program with the recorded process id for the server', async () => {
    copyDataDir(inject('postgresTemplateDir'), dataDir)
    const account = chooseServerAccount(clusterDir())
    const other = spawn('sleep', ['60'], { ...account, cwd: '/', stdio: 'ignore' })
    try {
      const lines = [other.pid, clusterDir(), 1, 5432, '', '127.0.0.1', '', 'ready']
      writeFileSync(join(clusterDir(), 'postmaster.pid'), `${lines.join('\n')}\n`)
      const server = await start()
      expect(await queryOnce(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
      expect(other.exitCode).toBeNull()
      expect(isRunning(other.pid ?? 0)).toBe(true)
    } finally {
      other.kill('SIGKILL')
    }
  })

  it('finds the orphan also after the data directory was moved', async () => {
    const driver = await driverWithRow()
    const { pid } = await driver.report
    await killParent(driver)
    mkdirSync(join(root, 'moved'), { recursive: true })
    const from = dataDir
    dataDir = join(root, 'moved', `data-${count}`)
    renameSync(from, dataDir)
    const server = await start()
    expect(isRunning(pid)).toBe(false)
    await expectRow(server)
  })

  it('does not take the server of the original for its own in a copy', async () => {
    await (
      await driverWithRow()
    ).report
    const copy = join(root, `copy-${count}`)
    mkdirSync(copy)
    copyFileSync(join(clusterDir(), 'postmaster.pid'), join(copy, 'postmaster.pid'))
    expect(processesOf(clusterDir()).length).toBeGreaterThan(3)
    expect(processesOf(copy)).toEqual([])
  })

  it('leaves a living holder and its server alone', async () => {
    const driver = await driverWithRow()
    const { url, pid } = await driver.report
    await expect(start()).rejects.toMatchObject({
      code: 'HKL_EMBEDDED_IN_USE',
      message: expect.stringContaining(`process ${driver.child.pid}`) as string,
    })
    expect(isRunning(pid)).toBe(true)
    expect(await queryOnce(url, 'select answer from kept')).toEqual([{ answer: 42 }])
    await driver.stop()
    await expectRow(await start())
  })

  it('lets one of several processes that recover at once win', async () => {
    await killParent(await driverWithRow())
    const rivals = [drive(), drive(), drive(), drive()]
    const reports = await Promise.all(rivals.map((rival) => rival.report))
    const winners = reports.filter((report) => report.code === undefined)
    const losers = reports.filter((report) => report.code === 'HKL_EMBEDDED_IN_USE')
    expect([winners.length, losers.length]).toEqual([1, 3])
    expect(await queryOnce(winners[0]?.url ?? '', 'select answer from kept')).toEqual([
      { answer: 42 },
    ])
    await Promise.all(rivals.map((rival) => rival.stop()))
  })
})

describe('the server and its parent', () => {
  it('does not get the Ctrl-C of the terminal', async () => {
    const driver = await driverWithRow()
    const { url, pid } = await driver.report
    // What a terminal does: the signal goes to the whole process group of the parent.
    process.kill(-(driver.child.pid ?? 0), 'SIGINT')
    await sleep(300)
    expect(isRunning(pid)).toBe(true)
    expect(await queryOnce(url, 'select answer from kept')).toEqual([{ answer: 42 }])
    await driver.stop()
    expect(isRunning(pid)).toBe(false)
  })

  it('shuts down when the parent exits without stopping it', async () => {
    const driver = await driverWithRow()
    const { pid } = await driver.report
    driver.child.stdin?.write('exit\n')
    await expect.poll(() => isRunning(pid), { timeout: 20_000 }).toBe(false)
    await expectRow(await start())
  })
})

async function query(url: string, text: string): Promise<{ rows: unknown[] }> {
  let rows: unknown[] = []
  await expect.poll(async () => (rows = await queryOnce(url, text)).length).toBeGreaterThan(0)
  return { rows }
}
