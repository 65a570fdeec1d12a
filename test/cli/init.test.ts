import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkoutSessionCompleted, everyOrder, play, refundCreated } from 'hookledger/testing'
import type { Workflow } from 'hookledger'
import { loadConfig } from '../../src/cli/config-file.ts'
import { partsOf } from '../../src/hookledger.ts'
import { run } from './memory-world.ts'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(import.meta.dirname, 'init-'))
  process.env['STRIPE_WEBHOOK_SECRET'] = 'whsec_0123456789abcdef'
})

afterEach(() => {
  rmSync(directory, { recursive: true })
  delete process.env['STRIPE_WEBHOOK_SECRET']
})

async function written(): Promise<Workflow> {
  await run(['init'], { cwd: directory })
  const { hookledger } = await loadConfig(join(directory, 'hookledger.config.ts'), directory)
  const [workflow] = partsOf(hookledger).config.workflows
  if (workflow === undefined) throw new Error('init wrote no workflow')
  return workflow
}

describe('hookledger init', () => {
  it('writes a configuration and a workflow, and says what to do next', async () => {
    const { code, stdout } = await run(['init'], { cwd: directory })
    expect(code).toBe(0)
    expect(stdout).toContain('wrote hookledger.config.ts')
    expect(stdout).toContain('wrote workflows/purchase.ts')
    expect(stdout).toContain('hookledger dev')
    const json = await run(['init', '--json'], { cwd: directory })
    expect(json.code).toBe(2)
  })

  it('never overwrites', async () => {
    await run(['init'], { cwd: directory })
    const workflow = join(directory, 'workflows/purchase.ts')
    writeFileSync(workflow, 'mine')
    const again = await run(['init'], { cwd: directory })
    expect([again.code, again.stdout]).toEqual([2, ''])
    expect(again.stderr).toContain('hookledger.config.ts is here already: nothing was written')
    rmSync(join(directory, 'hookledger.config.ts'))
    expect(JSON.parse((await run(['init', '--json'], { cwd: directory })).stdout)).toEqual({
      written: ['hookledger.config.ts'],
      kept: ['workflows/purchase.ts'],
    })
    expect(readFileSync(workflow, 'utf8')).toBe('mine')
  })

  it('writes TypeScript that compiles as strictly as this package', async () => {
    await run(['init'], { cwd: directory })
    const config = ts.readConfigFile(join(import.meta.dirname, '../../tsconfig.json'), (path) =>
      readFileSync(path, 'utf8'),
    ) as { config: { compilerOptions: object } }
    const { options } = ts.parseJsonConfigFileContent(
      { compilerOptions: config.config.compilerOptions, files: [] },
      ts.sys,
      join(import.meta.dirname, '../..'),
    )
    const program = ts.createProgram([join(directory, 'hookledger.config.ts')], options)
    const problems = program
      .getSourceFiles()
      .filter((file) => file.fileName.startsWith(directory))
      .flatMap((file) => [
        ...program.getSyntacticDiagnostics(file),
        ...program.getSemanticDiagnostics(file),
      ])
    expect(
      problems.map((problem) => ts.flattenDiagnosticMessageText(problem.messageText, '\n')),
    ).toEqual([])
  }, 60_000)

  it('writes a workflow that grants once and takes back what is refunded, in whatever order', async () => {
    const workflow = await written()
    const paid = checkoutSessionCompleted({ order: '1001', email: 'Ada@example.com' })
    const part = refundCreated({ order: '1001', amount: 900, id: 're_1' })
    const rest = refundCreated({ order: '1001', amount: 4000, id: 're_2' })
    const shop = play([workflow])
    shop.deliver([paid, paid])
    expect(shop.entitlements('email:ada@example.com')).toHaveLength(1)
    shop.deliver(part)
    expect(shop.order('1001').state).toBe('paid')
    shop.deliver([rest, paid])
    expect(shop.order('1001').state).toBe('refunded')
    expect(shop.entitlements('email:ada@example.com')).toHaveLength(0)
    expect(everyOrder([paid, part, rest], workflow)).toEqual({ orders: 6, sampled: false })
  })
})
