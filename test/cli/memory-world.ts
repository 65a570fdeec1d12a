/** A world for commands that writes into memory. */
import { Environment } from '../../src/cli/environment.ts'
import type { CommandWorld } from '../../src/cli/command.ts'
import { runCli } from '../../src/cli/run-cli.ts'

/** What a command line printed, and its exit code. */
export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Where to run. */
export interface RunOptions {
  readonly cwd?: string
  readonly variables?: Readonly<Record<string, string | undefined>>
  /** Whether stdout and stderr are terminals. */
  readonly tty?: boolean
}

/** Runs one command line in this process. */
export async function run(line: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const printed = { stdout: '', stderr: '' }
  const cwd = options.cwd ?? process.cwd()
  const stream = (name: 'stdout' | 'stderr') => ({
    isTTY: options.tty === true,
    write: (text: string) => {
      printed[name] += text
    },
  })
  const world: CommandWorld = {
    environment: new Environment(
      { HOOKLEDGER_DATA_DIR: '/nonexistent/hookledger', ...options.variables },
      cwd,
    ),
    cwd,
    program: 'hookledger',
    stdout: stream('stdout'),
    stderr: stream('stderr'),
  }
  const code = await runCli(line, world)
  return { code, ...printed }
}
