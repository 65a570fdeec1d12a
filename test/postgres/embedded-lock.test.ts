import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { acquireDirectoryLock } from '../../src/postgres/embedded/directory-lock.ts'
import {
  currentScope,
  isRunning,
  listProcesses,
  readProcess,
} from '../../src/postgres/embedded/process-table.ts'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'hookledger-lock-'))
})

afterEach(() => rmSync(directory, { recursive: true, force: true }))

const self = () => ({
  pid: process.pid,
  startedAt: readProcess(process.pid)?.startedAt,
  ...currentScope(),
})

function heldBy(holder: Record<string, unknown>, generation = 7): string {
  const file = join(directory, `lock.${generation}`)
  writeFileSync(file, JSON.stringify(holder))
  return file
}

/** A process id that was in use a moment ago and is not any more. */
async function deadPid(): Promise<number> {
  const child = spawn(process.execPath, ['-e', ''], { stdio: 'ignore' })
  await new Promise((resolve) => child.once('close', resolve))
  return child.pid ?? 0
}

describe('acquireDirectoryLock', () => {
  it('refuses a second holder, also in the same process, and says who has it', async () => {
    const lock = await acquireDirectoryLock(directory)
    await expect(acquireDirectoryLock(directory)).rejects.toMatchObject({
      code: 'HKL_EMBEDDED_IN_USE',
      message: expect.stringContaining('this process') as string,
    })
    lock.release()
    ;(await acquireDirectoryLock(directory)).release()
  })

  it('lets exactly one of many that ask at once have it', async () => {
    const asked = await Promise.allSettled(
      Array.from({ length: 20 }, () => acquireDirectoryLock(directory)),
    )
    expect(asked.filter((result) => result.status === 'fulfilled')).toHaveLength(1)
  })

  it('takes over from a holder that died', async () => {
    heldBy({ ...self(), pid: await deadPid() })
    ;(await acquireDirectoryLock(directory)).release()
  })

  it('does not mistake another program with the same process id for the holder', async () => {
    heldBy({ ...self(), startedAt: 'earlier' })
    ;(await acquireDirectoryLock(directory)).release()
  })

  it('takes over from what ran before the machine was booted', async () => {
    heldBy({ ...self(), boot: 'an earlier boot' })
    ;(await acquireDirectoryLock(directory)).release()
  })

  it('takes over a file that a power failure left empty', async () => {
    writeFileSync(join(directory, 'lock.3'), '')
    ;(await acquireDirectoryLock(directory)).release()
  })

  it('respects a holder in another container that shows signs of life', async () => {
    const file = heldBy({ ...self(), host: 'elsewhere', namespace: 'another', boot: 'another' })
    const beat = setInterval(() => utimesSync(file, new Date(), new Date()), 20)
    try {
      await expect(acquireDirectoryLock(directory, { beatMs: 40 })).rejects.toMatchObject({
        code: 'HKL_EMBEDDED_IN_USE',
      })
    } finally {
      clearInterval(beat)
    }
  })

  it('takes over from a holder in another container that shows none', async () => {
    heldBy({ ...self(), host: 'elsewhere', namespace: 'another', boot: 'another' })
    const notes: string[] = []
    const log = (note: string) => void notes.push(note)
    ;(await acquireDirectoryLock(directory, { beatMs: 10, log })).release()
    expect(notes).toHaveLength(1)
  })

  it('shows signs of life while it holds, and none afterwards', async () => {
    const lock = await acquireDirectoryLock(directory, { beatMs: 10 })
    const file = join(directory, 'lock.1')
    utimesSync(file, new Date(0), new Date(0))
    const elsewhere = { ...self(), host: 'elsewhere', namespace: 'another', boot: 'another' }
    writeFileSync(file, JSON.stringify(elsewhere))
    await expect(acquireDirectoryLock(directory, { beatMs: 20 })).rejects.toMatchObject({
      code: 'HKL_EMBEDDED_IN_USE',
    })
    lock.release()
    ;(await acquireDirectoryLock(directory, { beatMs: 20 })).release()
  })

  it('keeps the highest generation when it gives up, so that a slow rival cannot make it again', async () => {
    const first = await acquireDirectoryLock(directory)
    first.release()
    const second = await acquireDirectoryLock(directory)
    expect(readdirSync(directory)).toEqual(['lock.2'])
    // A second release of an old lock must not touch its successor.
    first.release()
    expect(JSON.parse(readFileSync(join(directory, 'lock.2'), 'utf8'))).toMatchObject({
      pid: process.pid,
    })
    second.release()
  })
})

describe('process table', () => {
  it('finds this process among all, with its parent and its command', () => {
    const entry = listProcesses().find(({ pid }) => pid === process.pid)
    expect(entry).toMatchObject({ parentPid: process.ppid, zombie: false })
    expect(entry?.startedAt).toBe(readProcess(process.pid)?.startedAt)
    expect(entry?.command).not.toBe('')
  })

  it('does not count a process that has ended as running', async () => {
    expect(isRunning(process.pid)).toBe(true)
    expect(isRunning(await deadPid())).toBe(false)
  })

  it('does not count a zombie as running', async () => {
    // The shell becomes a sleep that never collects the child that it started before.
    const parent = spawn('/bin/sh', ['-c', 'sleep 0.05 & exec sleep 60'], { stdio: 'ignore' })
    try {
      const zombie = () => listProcesses().find((entry) => entry.parentPid === parent.pid)
      await expect.poll(() => zombie()?.zombie).toBe(true)
      expect(isRunning(zombie()?.pid ?? 0)).toBe(false)
    } finally {
      parent.kill('SIGKILL')
    }
  })
})
