import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findCluster } from '../../src/postgres/embedded/location.ts'
import { locatePackageBinaries } from '../../src/postgres/embedded/package-binaries.ts'
import { choosePort, rememberPort } from '../../src/postgres/embedded/port.ts'
import { openServerLog } from '../../src/postgres/embedded/server-log.ts'
import { clusterName, serverArguments } from '../../src/postgres/embedded/server-settings.ts'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'hookledger-files-'))
})

afterEach(() => rmSync(directory, { recursive: true, force: true }))

describe('openServerLog', () => {
  it('cuts a log that has grown, keeps one earlier part, and goes on at the new end', () => {
    const file = join(directory, 'postgres.log')
    const large = 'x'.repeat(5 * 1024 * 1024)
    writeFileSync(file, large)
    const log = openServerLog(file)
    writeSync(log.fd, 'after\n')
    log.close()
    expect(readFileSync(file, 'utf8')).toBe('after\n')
    expect(statSync(`${file}.1`).size).toBe(large.length)
  })

  it('keeps a small log as it is', () => {
    const file = join(directory, 'postgres.log')
    writeFileSync(file, 'before\n')
    openServerLog(file).close()
    expect(readFileSync(file, 'utf8')).toBe('before\n')
    expect(existsSync(`${file}.1`)).toBe(false)
  })

  it('finds the fatal line of this run, and neither an earlier one nor an answer to a client', () => {
    const file = join(directory, 'postgres.log')
    writeFileSync(file, '10:00 [1] FATAL:  of an earlier run\n')
    const log = openServerLog(file)
    expect(log.firstFatal()).toBeNull()
    appendFileSync(file, '10:01 [2] FATAL:  the database system is starting up\n')
    appendFileSync(file, '10:02 [2] PANIC:  could not write\n10:03 [2] FATAL:  and so on\n')
    expect(log.firstFatal()).toBe('could not write')
    log.close()
  })
})

describe('choosePort', () => {
  it('chooses the remembered port while it is free, and another when it is taken', async () => {
    const port = await choosePort(directory)
    rememberPort(directory, port)
    expect(await choosePort(directory)).toBe(port)
    const other = createServer().listen(port, '127.0.0.1')
    await new Promise((resolve) => other.once('listening', resolve))
    expect(await choosePort(directory)).not.toBe((other.address() as AddressInfo).port)
    await new Promise((resolve) => other.close(resolve))
  })

  it('is not disturbed by nonsense in its file', async () => {
    writeFileSync(join(directory, 'port'), 'many')
    expect(await choosePort(directory)).toBeGreaterThan(0)
  })
})

describe('findCluster', () => {
  const pointer = () => join(directory, 'location.json')

  it('is in the data directory unless something else is recorded', () => {
    expect(findCluster(directory)).toBe(join(directory, 'cluster'))
  })

  it('finds a cluster that had not yet moved to the place that is recorded', () => {
    const home = mkdtempSync(join(directory, 'home-'))
    writeFileSync(pointer(), JSON.stringify({ home, from: directory }))
    writeFileSync(join(directory, 'cluster'), '')
    expect(findCluster(directory)).toBe(join(directory, 'cluster'))
    writeFileSync(join(home, 'cluster'), '')
    expect(findCluster(directory)).toBe(join(home, 'cluster'))
  })

  it.each([
    ['gone', JSON.stringify({ home: '/nonexistent/home', from: '/nonexistent' })],
    ['not readable', '{"home":'],
  ])('refuses to begin anew when the recorded place is %s', (_, content) => {
    writeFileSync(pointer(), content)
    expect(() => findCluster(directory)).toThrow(
      expect.objectContaining({
        code: 'HKL_EMBEDDED_START_FAILED',
        message: expect.stringContaining(pointer()) as string,
      }),
    )
  })
})

describe('locatePackageBinaries', () => {
  it('finds the binaries of this machine', () => {
    const { root, version } = locatePackageBinaries()
    expect(existsSync(join(root, 'bin', 'initdb'))).toBe(true)
    expect(version).toMatch(/^\d+\.\d+/)
  })

  it.each([
    ['there is no build for the platform', 'sunos-sparc', undefined],
    ['the package is not installed', undefined, ['/nonexistent/package.json']],
  ])('says in one line to set DATABASE_URL when %s', (_, build, from) => {
    expect(() => locatePackageBinaries(build, from)).toThrow(
      expect.objectContaining({
        code: 'HKL_EMBEDDED_UNAVAILABLE',
        message: expect.stringMatching(/^[^\n]*DATABASE_URL[^\n]*$/) as string,
      }),
    )
  })
})

describe('serverArguments', () => {
  it('names the processes of each cluster differently, within what PostgreSQL keeps of a name', () => {
    expect(clusterName('/a/cluster')).not.toBe(clusterName('/b/cluster'))
    expect(clusterName(`/${'long/'.repeat(100)}cluster`).length).toBeLessThan(64)
  })

  it('lets given settings win, but not over the port', () => {
    const args = serverArguments('/a', 5, { max_connections: '7', port: '6' })
    expect(args).toContain('max_connections=7')
    expect(args).toContain('port=5')
    expect(args.filter((arg) => arg.startsWith('port='))).toHaveLength(1)
  })
})
