import { describe, expect, it } from 'vitest'
import { IdSet } from '../../src/reconciliation/compare-context.ts'
import { SeenWindow } from '../../src/reconciliation/window-seen.ts'
import type { ProviderRecord } from '../../src/workflow/records.ts'

const record = (id: string, account = 'acct_1'): ProviderRecord => ({
  kind: 'payment',
  id,
  account,
  createdAt: new Date(0),
  object: {},
})

describe('IdSet', () => {
  it('has what was added, of its account and of no other, however much it grows', () => {
    const set = new IdSet()
    for (let at = 0; at < 5000; at++) set.add('acct_1', `p${at}`)
    for (let at = 0; at < 5000; at++) set.add('acct_1', `p${at}`)
    const has = Array.from({ length: 6000 }, (_, at) => set.has('acct_1', `p${at}`))
    expect(has.filter((each) => each)).toHaveLength(5000)
    expect(has.slice(5000).includes(true)).toBe(false)
    expect(set.has('acct_2', 'p1')).toBe(false)
  })
})

describe('SeenWindow', () => {
  it('knows which payments were confirmed, by account', () => {
    const seen = new SeenWindow()
    seen.confirm('acct_1', 'p1')
    expect(seen.confirms('acct_1', 'p1')).toBe(true)
    expect(seen.confirms('acct_2', 'p1')).toBe(false)
  })

  it('keeps a suspect once, whole while there are few, and by account', () => {
    const seen = new SeenWindow()
    for (let at = 0; at < 600; at++) seen.suspect(record(`p${at}`))
    seen.suspect(record('p1'))
    seen.suspect(record('p1', 'acct_2'))
    expect(seen.suspects).toBe(601)
    expect([...seen.accounts()].sort()).toEqual(['acct_1', 'acct_2'])
    const suspects = seen.suspectsOf('acct_1')
    expect(suspects.filter((each) => each.record !== null).length).toBeLessThanOrEqual(500)
    expect(suspects.at(-1)).toEqual({
      reference: { kind: 'payment', id: 'p599', account: 'acct_1' },
      record: null,
    })
  })
})
