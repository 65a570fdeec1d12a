/** `hookledger drill` in a process of its own, as a person runs it. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { DrillReport } from '../../src/drill/drill-report.ts'

/** What a drill printed. */
export interface SpawnedDrill {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The small shop of the tests. */
export const walletConfig: string = fileURLToPath(new URL('wallet.config.ts', import.meta.url))

/** Runs a drill to its end. */
export function runDrillCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<SpawnedDrill> {
  const child = spawn(process.execPath, ['scripts/hookledger.mjs', 'drill', ...args], {
    cwd: root,
    env: { ...process.env, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (bytes: Buffer) => (stdout += bytes.toString('utf8')))
  child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString('utf8')))
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })))
}

/** A drill of the small shop with one thing wrong, as data. */
export async function drillWallet(
  wrong: string,
  args: readonly string[],
): Promise<{ readonly code: number | null; readonly report: DrillReport }> {
  const { code, stdout, stderr } = await runDrillCommand(
    ['--config', walletConfig, '--json', ...args],
    { WALLET_FAULT: wrong },
  )
  if (stdout === '') throw new Error(`the drill printed nothing: ${stderr.slice(-2000)}`)
  return { code, report: JSON.parse(stdout) as DrillReport }
}
