/**
 * The broken examples: each is drilled as its user would, and the drill ends with exit 3 and names what is broken. The
 * same shop with nothing broken passes the same cases, so that none of them is caught for what the shop is.
 */
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/test-database.ts'

const root = join(import.meta.dirname, '../..')
const directory = join(root, 'examples/broken')

interface Fault {
  readonly fault: string
  readonly promise: string
  readonly detail: string
  readonly replay: string | null
}

interface Report {
  readonly go: boolean
  readonly faults: readonly Fault[]
  readonly cases: readonly { readonly exercised: boolean }[]
}

interface Drilled {
  readonly code: number
  readonly report: Report
}

/** Broken configuration, the fault that it must be caught with, and the kind of case that shows it. */
const broken = [
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
] as const

/** Enough for the first cases of a kind on a busy machine. */
const budget = '25s'

/** Runs `hookledger drill` on a configuration. */
async function drill(name: string, only: string): Promise<Drilled> {
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

describe('a broken example', () => {
  it.each(broken)('%s is caught as %s', async (name, fault, promise, only) => {
    const { code, report } = await drill(name, only)
    const found = report.faults.find((each) => each.fault === fault)
    expect(report.faults.map((each) => each.fault)).toContain(fault)
    expect(found?.promise).toBe(promise)
    expect(found?.detail).not.toBe('')
    // what memory shows has no schedule of processes to play again
    if (only !== 'pure') expect(found?.replay).toContain(`examples/broken/${name}.config.ts`)
    expect(report.go).toBe(false)
    expect(code).toBe(3)
  })

  it('has a test, and there are at least twelve', () => {
    const files = readdirSync(directory)
      .filter((file) => file.endsWith('.config.ts') && file !== 'right.config.ts')
      .map((file) => file.replace('.config.ts', ''))
    expect(files.sort()).toEqual(broken.map(([name]) => name).sort())
    expect(files.length).toBeGreaterThanOrEqual(12)
  })
})

describe('the same shop with nothing broken', () => {
  const kinds = [...new Set(broken.map(([, , , only]) => only))]

  it.each(kinds)('passes what catches the others (%s)', async (only) => {
    const { code, report } = await drill('right', only)
    expect(report.faults).toEqual([])
    if (only !== 'pure') expect(report.cases.some(({ exercised }) => exercised)).toBe(true)
    expect(code).toBe(0)
  })
})
