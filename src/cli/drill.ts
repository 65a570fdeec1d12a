/**
 * `hookledger drill`: proves the configuration's own workflows on a scratch database, with processes that are killed at
 * every named step. Exit 0 when everything that ran held and every promise had a case; 3 when not.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { CommandDef } from 'citty'
import { runDrill } from '../drill/drill.ts'
import { drillConfigOf } from '../drill/drill-config.ts'
import { caseKinds, type CaseKind } from '../drill/drill-case.ts'
import { destinationUrl } from '../drill/drilled-options.ts'
import type { DrillReport } from '../drill/drill-report.ts'
import type { DrillWorld } from '../drill/messages.ts'
import { drillHtml } from '../drill/report/drill-html.ts'
import { drillJunit } from '../drill/report/drill-junit.ts'
import { nearest } from '../core/nearest.ts'
import { partsOf } from '../hookledger.ts'
import { migrate } from '../postgres/migrate.ts'
import { createDatabase, createPool } from '../postgres/pool.ts'
import { command, usageError, type CommandWorld } from './command.ts'
import { findConfigFile, loadConfig, type LoadedConfig } from './config-file.ts'
import { worldVariable } from './drill-child.ts'
import { drillText } from './drill-text.ts'
import type { ExitCode } from './exit-codes.ts'

const kinds = ['pure', ...Object.keys(caseKinds).filter((kind) => kind !== 'plain')]

/** The command. */
export const drillCommand: CommandDef = command(
  {
    name: 'drill',
    description:
      'Crash drills of your own workflows on a scratch database: every promise, or exit 3',
  },
  {
    budget: {
      type: 'string',
      description: 'So long at most (45s, 10m); everything without it',
      valueHint: 'TIME',
    },
    seed: { type: 'string', description: 'Of orders and samples (1)', valueHint: 'N' },
    case: {
      type: 'string',
      description: 'Plays one case again (or several, with commas), by its name',
      valueHint: 'NAME',
    },
    only: {
      type: 'string',
      description: `Only these kinds: ${kinds.join(', ')}`,
      valueHint: 'KINDS',
    },
    setup: { type: 'string', description: "SQL that makes the app's tables", valueHint: 'FILE' },
    'database-url': {
      type: 'string',
      description: 'An EMPTY database, in place of an embedded one; it is emptied again and again',
      valueHint: 'URL',
    },
    junit: { type: 'string', description: 'Writes a JUnit report', valueHint: 'FILE' },
    html: { type: 'string', description: 'Writes one self-contained page', valueHint: 'FILE' },
  },
  async ({ args, list, out, world }) => {
    const budgetMs = args.budget === undefined ? null : milliseconds(args.budget)
    const seed = args.seed === undefined ? 1 : wholeNumber(args.seed)
    const only = args.only === undefined ? null : kindsOf(list('only'))
    const file = findConfigFile(world.cwd, args.config)
    const setupSql =
      args.setup === undefined ? null : readSetup(resolve(world.cwd, args.setup), args.setup)
    shield()
    const loaded = await loadConfig(file, world.cwd)
    const drill = drillConfigOf(loaded.drill)
    const { config } = partsOf(loaded.hookledger)
    const interruption = new AbortController()
    const interrupt = (): void => interruption.abort()
    process.once('SIGINT', interrupt)
    try {
      const report = await runDrill({
        config,
        budgetMs,
        seed,
        only,
        named: args.case === undefined ? null : list('case'),
        databaseUrl: args['database-url'],
        prepare: (url) => prepare(url, config.schemaName, loaded, drill.setup, setupSql),
        program: (drilled) => ({
          module: process.argv[1] ?? '',
          args: ['internal-drill', '--config', file],
          env: childEnvironment(world, drilled),
          cwd: world.cwd,
        }),
        replay: (name) =>
          `${world.program} drill --config ${args.config ?? file} --seed ${seed} ${name === null ? '--only pure' : `--case ${name}`}`,
        progress: (text) => out.progress(text),
        note: (text) => out.note(text),
        signal: interruption.signal,
      })
      write(args.junit, world, () => drillJunit(report))
      write(args.html, world, () => drillHtml(report))
      out.result(report, (safe, style) => drillText(safe, style))
      return interruption.signal.aborted ? 130 : exitCode(report)
    } finally {
      process.off('SIGINT', interrupt)
    }
  },
)

function exitCode({ go }: DrillReport): ExitCode {
  return go ? 0 : 3
}

function milliseconds(text: string): number {
  const match = /^(\d{1,6})(ms|s|m|h)?$/.exec(text)
  const unit = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[match?.[2] ?? 's'] ?? 1000
  const value = Number(match?.[1] ?? 'none') * unit
  if (!Number.isFinite(value) || value === 0)
    throw usageError(`--budget must be a time such as 45s or 10m, not "${text}"`)
  return value
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw usageError(`--seed must be a whole number, not "${text}"`)
  return Number(text)
}

function kindsOf(names: readonly string[]): readonly (CaseKind | 'pure')[] {
  for (const name of names) {
    if (kinds.includes(name)) continue
    const near = nearest(name, kinds)
    throw usageError(
      `--only: unknown kind "${name}"${near === null ? '' : `, did you mean ${near}?`}; known are ${kinds.join(', ')}`,
    )
  }
  return names as readonly (CaseKind | 'pure')[]
}

function readSetup(path: string, given: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw usageError(`--setup: ${given} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

/** Nothing that the configuration makes in this process may lead anywhere: only children connect, to the drill's own. */
function shield(): void {
  process.env['DATABASE_URL'] = 'postgresql://127.0.0.1:1/drill'
  process.env['STRIPE_WEBHOOK_SECRET'] ||= 'whsec_drill_only_0123456789abcdef'
}

function childEnvironment(world: CommandWorld, drilled: DrillWorld): NodeJS.ProcessEnv {
  return {
    ...process.env,
    HOOKLEDGER_FAULT_PLAN: '',
    DATABASE_URL: drilled.databaseUrl,
    STRIPE_API_BASE: drilled.providerUrl,
    STRIPE_WEBHOOK_SECRET: drilled.stripeSecret,
    SHOP_EMAIL_URL: destinationUrl(drilled, 'email'),
    [worldVariable]: JSON.stringify(drilled),
    ...(world.environment.noColor && { NO_COLOR: '1' }),
  }
}

async function prepare(
  url: string,
  schemaName: string,
  loaded: LoadedConfig,
  own: LoadedConfig['setup'],
  setupSql: string | null,
): Promise<void> {
  const pool = createPool({
    connectionString: url,
    max: 2,
    applicationName: 'hookledger-drill',
    statementTimeoutMs: 60_000,
  })
  try {
    const db = createDatabase(pool, schemaName)
    await migrate(db, { environment: 'test', partitionsAheadDays: 3 })
    const query = (text: string): Promise<unknown> => db.query({ text })
    await (own ?? loaded.setup)?.({ query })
    if (setupSql !== null) await pool.query(setupSql)
  } finally {
    await pool.end()
  }
}

function write(file: string | undefined, world: CommandWorld, text: () => string): void {
  if (file === undefined) return
  try {
    writeFileSync(resolve(world.cwd, file), text())
  } catch (error) {
    throw usageError(`${file} cannot be written (${(error as NodeJS.ErrnoException).code})`)
  }
}
