/** Examples drilled as their user would: `hookledger drill` as a process, on an empty database where it needs one. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { createTestDatabase } from './test-database.ts'

const root = join(import.meta.dirname, '../..')

interface Fault {
  readonly fault: string
  readonly promise: string
  readonly detail: string
  readonly replay: string | null
}

/** What a drill reports, as far as the tests read it. */
export interface Report {
  readonly go: boolean
  readonly faults: readonly Fault[]
  readonly cases: readonly { readonly exercised: boolean }[]
}

/** How a drill ended, and what it reported. */
export interface Drilled {
  readonly code: number
  readonly report: Report
}

/** A broken configuration, the fault that it must be caught with, its promise, and the kind of case that shows it. */
export const broken: readonly (readonly [
  name: string,
  fault: string,
  promise: string,
  only: string,
])[] = [
  ['sends-mail-inside-decide', 'sends_outside_outbox', 'P6', 'pure'],
  ['counts-in-memory', 'state_in_memory', 'P10', 'pure'],
  ['draws-lots-inside-decide', 'decide_not_pure', 'P10', 'pure'],
  ['effect-keyed-by-event', 'effect_keyed_by_event', 'P2', 'pure'],
  ['ignores-refunds', 'refund_ignored', 'P4', 'pure'],
  ['compares-timestamps', 'compares_timestamps', 'P10', 'pure'],
  ['adds-outside-an-effect', 'added_outside_effect', 'P2', 'twin'],
  ['own-connection-in-apply', 'apply_outside_transaction', 'P3', 'kill'],
  ['swallows-errors', 'confirmed_without_answer', 'P6', 'destination'],
  ['new-operation-id-on-retry', 'operation_id_changed', 'P6', 'destination'],
  ['acknowledges-before-commit', 'acknowledged_lost', 'P1', 'kill'],
  ['no-unique-index', 'unique_index_missing', 'P2', 'twin'],
  ['checkpoint-before-rows', 'checkpoint_ahead', 'P7', 'reconcile'],
]

/** Enough for the first cases of a kind on a busy machine. */
const budget = '25s'

/** Runs `hookledger drill` on a configuration. */
export async function drill(name: string, only: string): Promise<Drilled> {
  const config = join('examples/broken', `${name}.config.ts`)
  const args = ['drill', '--config', config, '--only', only, '--budget', budget, '--json']
  const database = only === 'pure' ? null : await createTestDatabase()
  if (database !== null) args.push('--database-url', database.url)
  const env = { ...process.env, HOOKLEDGER_FAULT_PLAN: '' }
  try {
    return await new Promise((resolve, reject) => {
      execFile(
        process.execPath,
        ['--import', 'tsx', 'src/cli/main.ts', ...args],
        { cwd: root, env, maxBuffer: 64 * 1024 * 1024 },
        (error, stdout, stderr) => {
          const code = error === null ? 0 : Number(error.code)
          try {
            resolve({ code, report: JSON.parse(stdout) as Report })
          } catch {
            reject(new Error(`drill ended with ${code}, without a report:\n${stderr}`))
          }
        },
      )
    })
  } finally {
    await database?.drop()
  }
}
