import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'

interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

async function victim(what: string, meanwhile?: (pid: number) => Promise<void>): Promise<Ending> {
  const file = join(import.meta.dirname, 'watchdog-victim.ts')
  const child = spawn(process.execPath, ['--import', 'tsx', file, what], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  const ready = new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk) => {
      stdout += String(chunk)
      if (stdout.includes('ready')) resolve()
    })
  })
  child.stderr.on('data', (chunk) => (stderr += String(chunk)))
  const ended = new Promise<Ending>((resolve) =>
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr })),
  )
  await ready
  if (meanwhile !== undefined) await meanwhile(child.pid ?? 0)
  return ended
}

describe('startWatchdog', () => {
  it.each(['blocked inside', 'blocked in the second of two'])(
    'kills a process that is %s a batch, and says so',
    async (what) => {
      const { signal, stderr, stdout } = await victim(what)
      expect(signal).toBe('SIGKILL')
      expect(stdout).not.toContain('done')
      expect(stderr).toContain('the event loop did not turn for 400 ms inside a batch')
    },
  )

  it.each(['blocked outside', 'blocked after leaving', 'turning inside', 'stopped'])(
    'leaves a process alone that is %s',
    async (what) => {
      expect(await victim(what)).toMatchObject({ code: 0, signal: null, stdout: 'ready\ndone\n' })
    },
  )

  it('does not count the time for which the whole process was suspended', async () => {
    const ending = await victim('suspended inside', async (pid) => {
      process.kill(pid, 'SIGSTOP')
      await sleep(2000)
      process.kill(pid, 'SIGCONT')
    })
    expect(ending).toMatchObject({ code: 0, signal: null, stdout: 'ready\ndone\n' })
  })
})
