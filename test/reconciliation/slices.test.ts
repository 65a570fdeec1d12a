import { describe, expect, it } from 'vitest'
import {
  firstPosition,
  isDeep,
  nextPosition,
  planWindow,
  withinReach,
  type Position,
} from '../../src/reconciliation/slices.ts'

const minute = 60_000
const hour = 60 * minute
const at = (text: string): Date => new Date(`2026-03-01T${text}Z`)
const settings = { lagMs: 2 * minute, overlapMs: hour, deepMs: 72 * hour }
const installedAt = new Date('2026-01-01T00:00:00.250Z')

describe('planWindow', () => {
  it('reaches back over what was gone through and ends a lag before now', () => {
    const window = planWindow({
      through: at('10:00:00'),
      installedAt,
      now: at('10:30:00'),
      deep: false,
      settings,
    })
    expect(window).toEqual({ from: at('09:00:00'), to: at('10:28:00') })
  })

  it('never begins before the installation, and takes in the second that it happened in', () => {
    const window = planWindow({
      through: installedAt,
      installedAt,
      now: new Date('2026-01-01T01:00:00Z'),
      deep: true,
      settings,
    })
    expect(window?.from).toEqual(new Date('2026-01-01T00:00:00Z'))
  })

  it('is none while everything is too recent', () => {
    const now = new Date(installedAt.getTime() + minute)
    expect(planWindow({ through: installedAt, installedAt, now, deep: false, settings })).toBeNull()
  })

  it('begins a deep pass further back, but never later than a plain one would', () => {
    const now = at('10:30:00')
    const plan = (through: Date): Date | undefined =>
      planWindow({ through, installedAt, now, deep: true, settings })?.from
    expect(plan(at('10:00:00'))).toEqual(new Date(now.getTime() - 72 * hour))
    const weekAgo = new Date(now.getTime() - 168 * hour)
    expect(plan(weekAgo)).toEqual(new Date(weekAgo.getTime() - hour))
  })
})

describe('nextPosition', () => {
  const window = { from: at('00:00:00'), to: at('20:00:00') }

  function slicesOf(pagesOf: (slice: Position) => number): Position[] {
    const slices: Position[] = []
    for (let position: Position | null = firstPosition(window, hour); position !== null;) {
      slices.push(position)
      position = nextPosition(position, null, pagesOf(position), hour)
    }
    return slices
  }

  it('keeps the slice while there is a next page', () => {
    const first = firstPosition(window, hour)
    expect(nextPosition(first, 'after-3', 1, hour)).toEqual({ ...first, cursor: 'after-3' })
  })

  it.each([
    ['full slices', () => 3],
    ['empty ones', () => 1],
    ['a mixture', (slice: Position) => (slice.sliceFrom.getTime() % 7 === 0 ? 1 : 4)],
  ])('covers the window without a gap or an overlap, of %s', (_, pagesOf) => {
    const slices = slicesOf(pagesOf)
    expect(slices[0]?.sliceFrom).toEqual(window.from)
    expect(slices.at(-1)?.sliceTo).toEqual(window.to)
    slices.slice(1).forEach((slice, index) => {
      expect(slice.sliceFrom).toEqual(slices[index]?.sliceTo)
      expect(slice.cursor).toBeNull()
    })
  })

  it('takes longer slices where next to nothing is, and the configured ones where much is', () => {
    expect(slicesOf(() => 1).length).toBeLessThan(7)
    expect(slicesOf(() => 2)).toHaveLength(20)
  })
})

describe('withinReach', () => {
  const now = at('12:00:00')
  const window = { from: at('06:00:00'), to: at('11:00:00') }

  it('leaves a window alone that the provider still keeps', () => {
    expect(withinReach(window, window.from, 24 * hour, now)).toEqual({ beyond: null, rest: window })
    expect(withinReach(window, window.from, null, now)).toEqual({ beyond: null, rest: window })
  })

  it('says what was never looked at and is gone, and keeps the rest', () => {
    expect(withinReach(window, at('07:00:00'), 4 * hour, now)).toEqual({
      beyond: { from: at('07:00:00'), to: at('08:00:00') },
      rest: { from: at('08:00:00'), to: at('11:00:00') },
    })
  })

  it('is silent about what was looked at while it could be', () => {
    expect(withinReach(window, at('09:00:00'), 4 * hour, now).beyond).toBeNull()
  })

  it('has no rest when everything is gone', () => {
    expect(withinReach(window, window.from, minute, now)).toEqual({ beyond: window, rest: null })
  })
})

describe('isDeep', () => {
  it('is a window that goes as far back as a deep pass, or to the installation', () => {
    const to = at('10:00:00')
    const back = (ms: number): boolean =>
      isDeep({ from: new Date(to.getTime() - ms), to }, installedAt, settings)
    expect(back(hour)).toBe(false)
    expect(back(72 * hour)).toBe(true)
    expect(isDeep({ from: installedAt, to: at('00:00:01') }, installedAt, settings)).toBe(true)
  })
})
