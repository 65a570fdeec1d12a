import { describe, expect, it } from 'vitest'
import { errorCodes } from '../../src/core/errors.ts'
import { headings, page, section } from './pages.ts'

const { text } = page('docs/reference/errors.md')
const documented = headings(text).filter((each) => each.title.startsWith('HKL_'))

describe('docs/reference/errors.md', () => {
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
