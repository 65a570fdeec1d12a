/**
 * Finds the command, runs it, and turns whatever happens into an exit code: one line on stderr for a
 * failure, usage for wrong use, a stack only with LOG_LEVEL=debug.
 */
import { stripVTControlCharacters } from 'node:util'
import { renderUsage, type CommandDef } from 'citty'
import { nearest } from '../core/nearest.ts'
import { printable } from '../observe/printable.ts'
import { sharedArgs, usageError, type CommandWorld } from './command.ts'
import { commands } from './commands.ts'
import type { ExitCode } from './exit-codes.ts'
import { fullFailure, tellFailure } from './failure.ts'
import { Output } from './output.ts'
import { version } from '../compose/version.ts'

const root: CommandDef = {
  meta: {
    name: 'hookledger',
    version,
    description: 'Exactly-once fulfillment from at-least-once webhooks, on PostgreSQL',
  },
  args: sharedArgs,
  subCommands: commands,
}

/** Runs one command line, without the program's name. */
export async function runCli(argv: readonly string[], world: CommandWorld): Promise<ExitCode> {
  try {
    const line = hoist(argv[0] === 'help' ? [...argv.slice(1), '--help'] : [...argv])
    if (line.length === 1 && ['--version', '-v'].includes(line[0] ?? '')) {
      world.stdout.write(`${version}\n`)
      return 0
    }
    const found = await find(line)
    if (asksForHelp(line)) {
      world.stdout.write(await usage(found, world))
      return 0
    }
    if (found.command.run === undefined) {
      world.stderr.write(await usage(found, world))
      return 2
    }
    const context = { rawArgs: [...found.rest], args: { _: [] }, cmd: found.command, data: world }
    return (await found.command.run(context as never)) as ExitCode
  } catch (error) {
    return fail(error, world)
  }
}

function fail(error: unknown, world: CommandWorld): ExitCode {
  const { line, exitCode } = tellFailure(error)
  const out = new Output({ ...world, json: false, quiet: false, color: !world.environment.noColor })
  out.error(printable(line))
  if (isDebug(world)) world.stderr.write(`${fullFailure(error)}\n`)
  return exitCode
}

function isDebug(world: CommandWorld): boolean {
  try {
    return world.environment.logLevel === 'debug'
  } catch {
    return false // a bad LOG_LEVEL is what is being told
  }
}

interface Found {
  readonly command: CommandDef
  readonly parent: CommandDef | undefined
  readonly rest: readonly string[]
}

/** Walks down from the root by the words that come first. */
async function find(line: readonly string[]): Promise<Found> {
  let command: CommandDef = root
  let parent: CommandDef | undefined
  let rest = line
  for (;;) {
    const below = (await resolved(command.subCommands)) as Record<string, unknown> | undefined
    if (below === undefined) return { command, parent, rest }
    const [word] = rest
    const isWord = word !== undefined && !word.startsWith('-')
    const name = isWord ? word : ((await resolved(command.default)) as string | undefined)
    if (name === undefined) return { command, parent, rest }
    if (!Object.hasOwn(below, name))
      throw unknownCommand(name, Object.keys(below), parent === undefined ? '' : rest[0])
    // help about a group is about the group, not about what it does when it is called bare
    if (!isWord && asksForHelp(rest)) return { command, parent, rest }
    parent = command
    command = (await resolved(below[name])) as CommandDef
    rest = isWord ? rest.slice(1) : rest
  }
}

function unknownCommand(name: string, known: readonly string[], of: string | undefined): Error {
  const near = nearest(name, known)
  const hint =
    near === null
      ? `; it knows ${known.filter((each) => !each.startsWith('internal-')).join(', ')}`
      : `, did you mean "${near}"?`
  return usageError(`unknown command "${name}"${of === undefined || of === '' ? '' : ''}${hint}`)
}

async function usage(found: Found, world: CommandWorld): Promise<string> {
  const text = `${await renderUsage(found.command, found.parent)}\n`
  return world.stdout.isTTY === true && !world.environment.noColor
    ? text
    : stripVTControlCharacters(text)
}

/** Options may stand before the command: they are moved behind it. */
function hoist(line: string[]): string[] {
  const leading: string[] = []
  while (line[0]?.startsWith('-') === true && line.length > 1) {
    const option = line.shift() ?? ''
    leading.push(option)
    if (option === '--config') leading.push(line.shift() ?? '')
  }
  return [...line, ...leading]
}

function asksForHelp(line: readonly string[]): boolean {
  const end = line.indexOf('--')
  return (end === -1 ? line : line.slice(0, end)).some((word) => word === '--help' || word === '-h')
}

async function resolved(value: unknown): Promise<unknown> {
  return typeof value === 'function' ? (value as () => unknown)() : value
}
