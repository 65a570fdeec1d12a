import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findConfigFile, loadConfig } from '../../src/cli/config-file.ts'
import { partsOf } from '../../src/hookledger.ts'

let directory: string

beforeEach(() => {
  // inside the checkout, so that 'hookledger' is the code under test
  directory = mkdtempSync(join(import.meta.dirname, 'config-'))
})

afterEach(() => rmSync(directory, { recursive: true }))

function write(name: string, content: string): string {
  const file = join(directory, name)
  writeFileSync(file, content)
  return file
}

const source = `import { createHookledger, stripe } from 'hookledger'
const sources = { stripe: stripe({ signingSecrets: ['whsec_0123456789abcdef'] }) }
`

describe('findConfigFile', () => {
  it('finds the configuration from the working directory upward', () => {
    const file = write('hookledger.config.mjs', '')
    const below = join(directory, 'a', 'b')
    mkdirSync(below, { recursive: true })
    expect(findConfigFile(below, undefined)).toBe(file)
    expect(findConfigFile(directory, undefined)).toBe(file)
  })

  it('prefers TypeScript, and takes the file that is named', () => {
    write('hookledger.config.mjs', '')
    const other = write('other.mjs', '')
    const typescript = write('hookledger.config.ts', '')
    expect(findConfigFile(directory, undefined)).toBe(typescript)
    expect(findConfigFile(directory, 'other.mjs')).toBe(other)
  })

  it('says what to do when there is none', () => {
    expect(() => findConfigFile('/', undefined)).toThrow(
      expect.objectContaining({
        code: 'HKL_CONFIG_NOT_FOUND',
        message: expect.stringContaining('hookledger init') as string,
      }),
    )
    expect(() => findConfigFile(directory, 'none.ts')).toThrow(
      expect.objectContaining({
        code: 'HKL_CONFIG_NOT_FOUND',
        message: '--config: there is no file none.ts',
      }),
    )
    expect(() => findConfigFile(directory, '.')).toThrow(/no file/)
  })
})

describe('loadConfig', () => {
  it.each([
    ['a named export', 'export const hookledger = createHookledger({ sources })'],
    ['the default export', 'export default createHookledger({ sources })'],
  ])('takes the object from %s', async (_, line) => {
    const { hookledger, routes, setup } = await loadConfig(
      write('hookledger.config.ts', `${source}${line}\n`),
      directory,
    )
    expect([...partsOf(hookledger).config.sources.keys()]).toEqual(['stripe'])
    expect([routes, setup]).toEqual([undefined, undefined])
  })

  it("takes the app's own routes and setup along", async () => {
    const file = write(
      'hookledger.config.ts',
      `${source}export default createHookledger({ sources })\nexport const routes = () => () => false\nexport const setup = async () => {}\n`,
    )
    const loaded = await loadConfig(file, directory)
    expect([typeof loaded.routes, typeof loaded.setup]).toEqual(['function', 'function'])
  })

  it.each([
    [
      'exports nothing',
      'export const other = 1',
      'HKL_CONFIG_INVALID',
      /must export what createHookledger returns/,
    ],
    [
      'exports something else',
      'export default { sources: {} }',
      'HKL_CONFIG_INVALID',
      /createHookledger/,
    ],
    [
      'has an unknown option',
      `${source}export default createHookledger({ sources, workflow: [] })`,
      'HKL_CONFIG_UNKNOWN_NAME',
      /workflow/,
    ],
    ['throws', `throw new Error('no\\n  such thing')`, 'HKL_CONFIG_INVALID', /no such thing/],
    ['is no JavaScript', 'export default = 3', 'HKL_CONFIG_INVALID', /./],
  ])('refuses one that %s in one line with its name', async (_, content, code, message) => {
    const failure = await loadConfig(write('hookledger.config.ts', content), directory).then(
      () => null,
      (error: Error) => error,
    )
    expect(failure).toMatchObject({ code })
    expect(failure?.message).toMatch(message)
    expect(failure?.message).toMatch(/^hookledger\.config\.ts: [^\n]+$/)
  })
})
