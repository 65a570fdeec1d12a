/** Ends processes that are nobody's children any more, each known by id and start time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { readProcess } from './process-table.ts'
import type { ProcessEntry } from './process-table.ts'

/** Sends the signal and waits; true when all of them have ended within `timeoutMs`. */
export async function endProcesses(
  entries: readonly ProcessEntry[],
  signal: NodeJS.Signals,
  timeoutMs: number,
): Promise<boolean> {
  for (const entry of entries.filter(isSameProcess)) {
    try {
      process.kill(entry.pid, signal)
    } catch {
      // It ended in the meantime.
    }
  }
  const deadline = performance.now() + timeoutMs
  while (entries.some(isSameProcess)) {
    if (performance.now() > deadline) return false
    await sleep(20)
  }
  return true
}

function isSameProcess(entry: ProcessEntry): boolean {
  const now = readProcess(entry.pid)
  return now !== null && !now.zombie && now.startedAt === entry.startedAt
}
