/**
 * What the operating system says about processes. A process is known by its id together with the moment
 * it started, so that an id that was given to another program is never mistaken for the first one.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { hostname } from 'node:os'

/** One running process. */
export interface ProcessEntry {
  readonly pid: number
  readonly parentPid: number
  /** Dead, but not yet collected by its parent. */
  readonly zombie: boolean
  /** When it started, in a form that is only good for comparing. */
  readonly startedAt: string
  readonly command: string
}

/** Where process ids mean something: one machine since its last boot, one namespace. */
export interface ProcessScope {
  readonly host: string
  readonly boot: string
  readonly namespace: string
}

const hasProcFs = process.platform === 'linux' && existsSync('/proc/self/stat')

/** The scope of this process. */
export function currentScope(): ProcessScope {
  if (!hasProcFs) return { host: hostname(), boot: '', namespace: '' }
  return {
    host: hostname(),
    boot: readTrimmed('/proc/sys/kernel/random/boot_id'),
    namespace: linkTarget('/proc/self/ns/pid'),
  }
}

/** The process with this id, or null when there is none that can be seen. */
export function readProcess(pid: number): ProcessEntry | null {
  if (!hasProcFs) return runPs(['-p', String(pid)])[0] ?? null
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may itself contain spaces and parentheses: count from the last one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    return {
      pid,
      parentPid: Number(fields[1]),
      zombie: fields[0] === 'Z' || fields[0] === 'X',
      startedAt: fields[19] ?? '',
      command: command.replaceAll('\0', ' ').trim(),
    }
  } catch {
    return null
  }
}

/** All processes that can be seen. */
export function listProcesses(): ProcessEntry[] {
  if (!hasProcFs) return runPs(['-A'])
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readProcess(Number(name)))
    .filter((entry) => entry !== null)
}

/** The processes that are meant, and all that descend from them. */
export function withDescendants(isMeant: (entry: ProcessEntry) => boolean): ProcessEntry[] {
  const all = listProcesses()
  const found = new Set(all.filter(isMeant))
  // A set that grows while it is walked is walked to its end.
  for (const { pid } of found) {
    for (const entry of all) if (entry.parentPid === pid) found.add(entry)
  }
  return [...found]
}

/** Whether a process with this id runs. A zombie does not: it can do nothing any more. */
export function isRunning(pid: number): boolean {
  const entry = readProcess(pid)
  if (entry) return !entry.zombie
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Not permitted means that it exists and is hidden from us.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Whether the process works in this directory; null when the system does not tell. */
export function worksIn(pid: number, directory: string): boolean | null {
  if (!hasProcFs) return null
  try {
    const cwd = statSync(`/proc/${pid}/cwd`)
    const wanted = statSync(directory)
    return cwd.dev === wanted.dev && cwd.ino === wanted.ino
  } catch {
    return null
  }
}

function runPs(selection: string[]): ProcessEntry[] {
  const columns = 'pid=,ppid=,stat=,lstart=,command='
  const { stdout } = spawnSync('ps', ['-ww', ...selection, '-o', columns], {
    encoding: 'utf8',
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
    maxBuffer: 64 * 1024 * 1024,
  })
  return (stdout ?? '').split('\n').flatMap((line) => {
    // lstart is five words: Mon Nov 30 15:01:02 2026.
    const match = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+((?:\S+\s+){4}\S+)\s+(.*)$/.exec(line)
    if (!match) return []
    const [, pid = '', parentPid = '', stat = '', startedAt = '', command = ''] = match
    const zombie = stat.startsWith('Z')
    return [{ pid: Number(pid), parentPid: Number(parentPid), zombie, startedAt, command }]
  })
}

function readTrimmed(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return ''
  }
}

function linkTarget(file: string): string {
  try {
    return readlinkSync(file)
  } catch {
    return ''
  }
}
