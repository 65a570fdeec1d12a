/**
 * How a command is declared and how its arguments are read: citty declares, lists and explains them;
 * what was typed is read strictly here, since a misspelled option must not be taken for none.
 */
import { parseArgs } from 'node:util'
import { defineCommand, type ArgsDef, type CommandDef, type ParsedArgs } from 'citty'
import { HookledgerError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'
import { nameFlaw, reasonFlaw } from '../core/recorded-text.ts'
import type { Environment } from './environment.ts'
import type { ExitCode } from './exit-codes.ts'
import { Output, type OutputStream } from './output.ts'

/** What the shared options are, for the types of what they give. */
export type SharedArgs = {
  readonly config: { type: 'string'; description: string; valueHint: string }
  readonly json: { type: 'boolean'; description: string }
  readonly quiet: { type: 'boolean'; description: string }
  readonly color: {
    type: 'boolean'
    description: string
    negativeDescription: string
    default: true
  }
}

/** The options that every command takes. */
export const sharedArgs: SharedArgs = {
  config: {
    type: 'string',
    description: 'The configuration; found from here upward without it',
    valueHint: 'FILE',
  },
  json: { type: 'boolean', description: 'One JSON object; lists as one JSON line a row' },
  quiet: { type: 'boolean', description: 'Results only, no narration' },
  color: {
    type: 'boolean',
    description: 'Colors',
    negativeDescription: 'No colors (also NO_COLOR)',
    default: true,
  },
}

/** Where a command runs. */
export interface CommandWorld {
  readonly environment: Environment
  readonly cwd: string
  /** How the command line is called here, for what is suggested to try. */
  readonly program: string
  readonly stdout: OutputStream
  readonly stderr: OutputStream
}

/** What a command is given. */
export interface CommandInput<A extends ArgsDef> {
  readonly args: ParsedArgs<A & SharedArgs>
  /** Every value of an option that may be repeated; commas separate too. */
  readonly list: (name: keyof A & string) => readonly string[]
  readonly out: Output
  readonly world: CommandWorld
}

/** What a command is called and does. */
export interface CommandMeta {
  readonly name: string
  readonly description: string
  /** Not listed: for Hookledger's own child processes. */
  readonly hidden?: boolean
}

/** Declares a command. Its exit code is what `run` resolves with. */
export function command<const A extends ArgsDef>(
  meta: CommandMeta,
  args: A,
  run: (input: CommandInput<A>) => Promise<ExitCode>,
): CommandDef {
  const all: ArgsDef = { ...args, ...sharedArgs }
  return defineCommand({
    meta,
    args: all,
    async run({ rawArgs, data }) {
      const world = data as CommandWorld
      const typed = readArguments(rawArgs, all)
      requireRecordable(typed.args)
      const input: CommandInput<A> = {
        args: typed.args as CommandInput<A>['args'],
        list: (name) => typed.lists.get(name) ?? [],
        out: outputOf(world, typed.args),
        world,
      }
      return run(input)
    },
  } satisfies CommandDef) as CommandDef
}

/** Declares a command of commands (`dead list`). Called bare it does what `otherwise` does, or shows its usage. */
export function commandGroup(
  meta: CommandMeta,
  subCommands: Readonly<Record<string, CommandDef>>,
  otherwise?: string,
): CommandDef {
  return defineCommand({
    meta,
    args: sharedArgs as ArgsDef,
    subCommands: { ...subCommands },
    ...(otherwise !== undefined && { default: otherwise }),
  })
}

/** An error of use, in one line. */
export function usageError(message: string): HookledgerError {
  return new HookledgerError('HKL_CLI_USAGE', message)
}

/**
 * What is recorded with an act is bounded, whichever command it is.
 *
 * @throws HookledgerError HKL_CLI_USAGE
 */
function requireRecordable(args: Readonly<Record<string, unknown>>): void {
  for (const name of ['reason', 'actor', 'owner']) {
    const value = args[name]
    const flaw =
      typeof value !== 'string' ? null : name === 'reason' ? reasonFlaw(value) : nameFlaw(value)
    if (flaw !== null) throw usageError(`--${name} ${flaw}`)
  }
}

function outputOf(world: CommandWorld, args: Readonly<Record<string, unknown>>): Output {
  return new Output({
    stdout: world.stdout,
    stderr: world.stderr,
    json: args['json'] === true,
    quiet: args['quiet'] === true,
    color: args['color'] !== false && !world.environment.noColor,
  })
}

interface TypedArguments {
  readonly args: Record<string, unknown>
  readonly lists: ReadonlyMap<string, readonly string[]>
}

/**
 * Reads what was typed.
 *
 * @throws HookledgerError HKL_CLI_USAGE for an unknown option, a missing value, or too much or too little.
 */
export function readArguments(rawArgs: readonly string[], declared: ArgsDef): TypedArguments {
  const { values, positionals } = parse(rawArgs, declared)
  const args: Record<string, unknown> = { _: positionals }
  const lists = new Map<string, readonly string[]>()
  const waiting = [...positionals]
  for (const [name, arg] of Object.entries(declared)) {
    if (arg.type === 'positional') {
      const value = waiting.shift()
      if (value === undefined && arg.required !== false)
        throw usageError(`${name.toUpperCase()} is missing`)
      args[name] = value
      continue
    }
    const given = values[name]?.at(-1)
    args[name] = given ?? arg.default
    lists.set(
      name,
      (values[name] ?? []).flatMap((value) => (typeof value === 'string' ? split(value) : [])),
    )
    if (given === '') throw usageError(`--${name} has an empty value`)
    if (
      arg.type === 'enum' &&
      given !== undefined &&
      !(arg.options ?? []).includes(String(given))
    ) {
      throw usageError(
        `--${name} must be one of ${(arg.options ?? []).join(', ')}, not "${String(given)}"`,
      )
    }
  }
  if (waiting.length > 0) throw usageError(`"${waiting.join(' ')}" is one argument too many`)
  return { args, lists }
}

function split(value: string): string[] {
  return value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

function parse(
  rawArgs: readonly string[],
  declared: ArgsDef,
): { values: Record<string, (string | boolean)[] | undefined>; positionals: string[] } {
  const options: Record<string, { type: 'boolean' | 'string'; multiple: true }> = {}
  for (const [name, arg] of Object.entries(declared)) {
    if (arg.type !== 'positional')
      options[name] = { type: arg.type === 'boolean' ? 'boolean' : 'string', multiple: true }
  }
  try {
    const { values, positionals } = parseArgs({
      args: negativeJoined(rawArgs, options),
      options,
      allowPositionals: true,
      allowNegative: true,
      strict: true,
    })
    return { values: values as Record<string, (string | boolean)[] | undefined>, positionals }
  } catch (error) {
    throw explained(error, Object.keys(options))
  }
}

/** A negative number behind an option is its value, for the command to judge: `--limit -1` is `--limit=-1`. */
function negativeJoined(
  rawArgs: readonly string[],
  options: Readonly<Record<string, { readonly type: 'boolean' | 'string' }>>,
): string[] {
  const joined: string[] = []
  let isOver = false
  for (const word of rawArgs) {
    const last = isOver ? undefined : joined.at(-1)
    const takes = last?.startsWith('--') === true && options[last.slice(2)]?.type === 'string'
    if (takes && /^-\d/.test(word)) joined.splice(-1, 1, `${last}=${word}`)
    else joined.push(word)
    isOver ||= word === '--'
  }
  return joined
}

/** Node's message names the option; the nearest known one is added. */
function explained(error: unknown, known: readonly string[]): HookledgerError {
  const message = error instanceof Error ? error.message : ''
  const ambiguous = /^Option '--?([^' ]+).*' argument is ambiguous/.exec(message)?.[1]
  if (ambiguous !== undefined)
    return usageError(
      `--${ambiguous} has no value: one that begins with a dash is written --${ambiguous}=-…`,
    )
  const unknown = /^Unknown option '--?([^']+)'/.exec(message)?.[1]
  if (unknown === undefined)
    return usageError((message.split(/\.\s|\n/)[0] ?? 'wrong arguments').trim())
  const near = nearest(unknown.replace(/^no-/, ''), known)
  return usageError(
    `unknown option --${unknown}${near === null ? '' : `, did you mean --${near}?`}`,
  )
}
