import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { errorCodes } from '../../src/core/errors.ts'
import { headings, page, root, section } from './pages.ts'

const { text } = page('docs/reference/errors.md')
const documented = headings(text).filter((each) => each.title.startsWith('HKL_'))

/** All source but the catalog itself, in which a code that is used stands somewhere. */
const code = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && name !== join('core', 'errors.ts'))
  .map((name) =>
    readFileSync(join(root, 'src', name), 'utf8').replace(/^\s*(?:\/?\*|\/\/).*$/gm, ''),
  )
  .join('\n')

/** Whether something raises or tells a code: a mere list of codes does not. */
function isRaised(name: string): boolean {
  return new RegExp(`(?:HookledgerError\\(\\s*|code: |return |\\()['"\`]?${name}\\b`).test(code)
}

describe('docs/reference/errors.md', () => {
  it.each(Object.keys(errorCodes))('calls %s reserved only while nothing raises it', (name) => {
    expect(/^Reserved/m.test(section(text, name))).toBe(!isRaised(name))
  })

  it('has an anchor for every code of the catalogue, and no other', () => {
    expect(documented.map((each) => each.title).sort()).toEqual(Object.keys(errorCodes).sort())
    for (const { title, anchor } of documented) expect(anchor).toBe(title.toLowerCase())
  })

  it.each(Object.entries(errorCodes))('says whether %s can succeed later', (code, retryable) => {
    const said = /^Retryable: (yes|no)\./m.exec(section(text, code))?.[1]
    expect(said).toBe(retryable ? 'yes' : 'no')
  })

  it.each(Object.keys(errorCodes))('says of %s what to do', (code) => {
    expect(section(text, code)).toMatch(/^\*\*Do:\*\* \S/m)
  })
})
