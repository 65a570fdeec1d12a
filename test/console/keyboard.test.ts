import { describe, expect, it } from 'vitest'
import { goKeys, shortcutOf } from '../../console/src/keys.ts'
import { pagePaths } from '../../console/src/links.ts'
import {
  refreshChoices,
  refreshOf,
  refreshText,
  refreshWait,
} from '../../console/src/refresh-times.ts'

const press = (key: string, more: { modified?: boolean; typing?: boolean } = {}) => ({
  key,
  modified: false,
  typing: false,
  ...more,
})

describe('shortcutOf', () => {
  it('searches, refreshes, changes the theme and helps', () => {
    const done = ['/', 'r', 't', '?'].map((key) => shortcutOf(press(key), null)?.do)
    expect(done).toEqual(['search', 'refresh', 'theme', 'help'])
  })

  it('leaves keys alone that are typed into a field or belong to the browser', () => {
    expect(shortcutOf(press('r', { typing: true }), null)).toBeNull()
    expect(shortcutOf(press('r', { modified: true }), null)).toBeNull()
    expect(shortcutOf(press('x'), null)).toBeNull()
  })

  it('goes to a page that exists with g and a letter', () => {
    expect(shortcutOf(press('g'), null)).toBeNull()
    for (const [key, page] of Object.entries(goKeys)) {
      expect(shortcutOf(press(key), 'g')).toEqual({ do: 'go', to: page })
      expect(pagePaths).toHaveProperty(page)
    }
  })
})

describe('refreshWait', () => {
  it('never reads while paused', () => {
    expect(refreshWait(0, 0)).toBe(false)
    expect(refreshWait(0, 600_000)).toBe(false)
  })

  it('waits as was chosen while all is well, and in the first moments of an outage', () => {
    expect(refreshWait(5, 0)).toBe(5000)
    expect(refreshWait(5, -3000)).toBe(5000)
    expect(refreshWait(5, 8000)).toBe(5000)
  })

  it('waits longer the longer it fails, up to a minute', () => {
    expect([8000, 20_000, 60_000, 3_600_000].map((failed) => refreshWait(2, failed))).toEqual([
      4000, 10_000, 30_000, 60_000,
    ])
  })
})

describe('refreshOf', () => {
  it('takes a choice that exists, and five seconds for anything else', () => {
    expect(refreshOf('15')).toBe(15)
    expect(refreshOf('0')).toBe(0)
    expect([refreshOf(null), refreshOf(''), refreshOf('1'), refreshOf('x')]).toEqual([5, 5, 5, 5])
    expect(refreshChoices.map(refreshText).at(-1)).toBe('Paused')
  })
})
