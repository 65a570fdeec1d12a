/**
 * The example projects as their users run them: the package is built, each project has it in its node_modules, and its
 * own `npm test` runs.
 */
import { execFile } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'

const root = join(import.meta.dirname, '../..')
const examples = join(root, 'examples/testing')
const run = promisify(execFile)

let directory: string

/** The package's own code as its build compiles it, file by file: types are another test's matter. */
function compile(into: string): void {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (file) =>
    readFileSync(file, 'utf8'),
  ) as { config: { compilerOptions: object } }
  const given = ts.convertCompilerOptionsFromJson(
    {
      ...config.compilerOptions,
      module: 'esnext',
      moduleResolution: 'bundler',
      rewriteRelativeImportExtensions: true,
      noEmit: false,
    },
    root,
  )
  const source = join(root, 'src')
  for (const name of readdirSync(source, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue
    const fileName = join(source, name)
    const text = readFileSync(fileName, 'utf8')
    const compiled = ts.transpileModule(text, { fileName, compilerOptions: given.options })
    const target = join(into, name.replace(/\.ts$/, '.js'))
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, compiled.outputText)
  }
}

/** The projects, and a node_modules of theirs with the package as it would be published. */
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'hookledger-testing-'))
  cpSync(examples, directory, { recursive: true })
  const modules = join(directory, 'node_modules')
  const installed = join(modules, 'hookledger')
  mkdirSync(installed, { recursive: true })
  for (const name of readdirSync(join(root, 'node_modules')))
    if (name !== 'hookledger') symlinkSync(join(root, 'node_modules', name), join(modules, name))
  cpSync(join(root, 'package.json'), join(installed, 'package.json'))
  compile(join(installed, 'dist'))
}, 60_000)
afterAll(() => rmSync(directory, { recursive: true, force: true }))

interface Ended {
  readonly code: number
  readonly output: string
}

/** Runs `npm test` of a project; answers how it ended. */
async function npmTest(project: string, url: string): Promise<Ended> {
  const env: NodeJS.ProcessEnv = {
    PATH: process.env['PATH'],
    HOME: directory,
    DATABASE_URL: url,
    NO_COLOR: '1',
  }
  const ended = { cwd: join(directory, project), env, timeout: 120_000 }
  try {
    const { stdout, stderr } = await run('npm', ['test', '--silent'], ended)
    return { code: 0, output: stdout + stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, output: stdout + stderr }
  }
}

const passed = {
  vitest: /Tests\s+5 passed \(5\)/,
  jest: /Tests:\s+5 passed, 5 total/,
  'node-test': /pass 5\b/,
}

describe.each(Object.entries(passed))('the example for %s', (project, tests) => {
  it('passes with the package that is published', { timeout: 150_000 }, async () => {
    const database = await createHookledgerDatabase()
    try {
      const { code, output } = await npmTest(project, database.url)
      expect(output).toMatch(tests)
      expect(code).toBe(0)
    } finally {
      await database.drop()
    }
  })

  it('has the same workflow, shop and provider as the others', () => {
    for (const file of ['sale.ts', 'shop.ts', 'provider.ts'])
      expect(readFileSync(join(examples, project, file), 'utf8')).toBe(
        readFileSync(join(examples, 'vitest', file), 'utf8'),
      )
  })
})

it(
  'a fault in the workflow fails the example: its tests are not decoration',
  { timeout: 150_000 },
  async () => {
    const file = join(directory, 'node-test/sale.ts')
    const text = readFileSync(file, 'utf8')
    const broken = text.replace("to: 'refunded'", "to: 'paid'")
    expect(broken).not.toBe(text)
    writeFileSync(file, broken)
    const { code, output } = await npmTest('node-test', 'postgresql://127.0.0.1:1/none')
    writeFileSync(file, text)
    expect(code).not.toBe(0)
    expect(output).toContain('in every order of the events')
  },
)
