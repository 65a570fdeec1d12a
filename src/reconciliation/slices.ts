/**
 * Which window a pass goes through, and how it is cut. Pure. A window reaches back over what was gone
 * through already, since lists show some records late, and ends a lag before now for the same reason.
 */
import type { ReconcileSettings } from './settings.ts'

/** A span of time at the provider, `[from, to)`. */
export interface Window {
  readonly from: Date
  readonly to: Date
}

/** Where a walk through a window is: the slice in work and its cursor. */
export interface Position extends Window {
  readonly sliceFrom: Date
  readonly sliceTo: Date
  /** What the page before gave as its next; null at the start of the slice. */
  readonly cursor: string | null
}

/** What a window is planned from. */
export interface WindowRequest {
  readonly through: Date
  readonly installedAt: Date
  readonly now: Date
  readonly deep: boolean
  readonly settings: Pick<ReconcileSettings, 'lagMs' | 'overlapMs' | 'deepMs'>
}

/** The window of a scheduled, deep or manual pass; null while everything is too recent. */
export function planWindow({
  through,
  installedAt,
  now,
  deep,
  settings,
}: WindowRequest): Window | null {
  const { lagMs, overlapMs, deepMs } = settings
  const to = now.getTime() - lagMs
  const back = through.getTime() - overlapMs
  // a deep pass never begins later than a plain one would: that would leave a gap
  const from = deep ? Math.min(back, now.getTime() - deepMs) : back
  const clamped = Math.max(from, installedAt.getTime())
  const window = { from: wholeSecond(clamped), to: wholeSecond(to) }
  return window.from < window.to ? window : null
}

/** Providers tell times by the second: a bound inside of one would cut records of it off. */
function wholeSecond(ms: number): Date {
  return new Date(Math.floor(ms / 1000) * 1000)
}

/** Whether a window goes as far back as a deep pass does. */
export function isDeep(
  { from, to }: Window,
  installedAt: Date,
  { lagMs, deepMs }: Pick<ReconcileSettings, 'lagMs' | 'deepMs'>,
): boolean {
  return from <= installedAt || to.getTime() + lagMs - from.getTime() >= deepMs
}

/** A slice may become so many times longer than configured where next to nothing is in it. */
const longest = 168

/** The first position of a window. */
export function firstPosition(window: Window, sliceMs: number): Position {
  return slice(window, window.from, sliceMs)
}

/**
 * The position after a page; null at the end of the window.
 *
 * @param pages how many pages the slice had, this one included: one that had a single page is followed by
 * one of twice its length, so that an empty week does not take a call an hour
 */
export function nextPosition(
  at: Position,
  next: string | null,
  pages: number,
  sliceMs: number,
): Position | null {
  if (next !== null) return { ...at, cursor: next }
  if (at.sliceTo >= at.to) return null
  const lengthMs = at.sliceTo.getTime() - at.sliceFrom.getTime()
  const longerMs = pages <= 1 ? Math.min(lengthMs * 2, sliceMs * longest) : sliceMs
  return slice(at, at.sliceTo, Math.max(sliceMs, longerMs))
}

/** A window that goes on, up to what is old enough by now. One that had come to its end begins a slice there. */
export function extended(at: Position, to: Date, sliceMs: number): Position {
  if (to <= at.to) return at
  const longer = { ...at, to }
  if (at.sliceFrom < at.sliceTo) return longer
  return slice(longer, at.sliceTo, sliceMs)
}

function slice({ from, to }: Window, sliceFrom: Date, lengthMs: number): Position {
  const end = Math.min(sliceFrom.getTime() + lengthMs, to.getTime())
  return { from, to, sliceFrom, sliceTo: new Date(end), cursor: null }
}

/**
 * What of a window is left within a provider's reach, and what was never looked at and lies beyond it.
 *
 * @param unseenFrom everything before it was gone through while it could be
 */
export function withinReach(
  window: Window,
  unseenFrom: Date,
  reachMs: number | null,
  now: Date,
): { readonly beyond: Window | null; readonly rest: Window | null } {
  const edge = reachMs === null ? window.from : new Date(now.getTime() - reachMs)
  if (edge <= window.from) return { beyond: null, rest: window }
  const cut = edge < window.to ? edge : window.to
  return {
    beyond: unseenFrom < cut ? { from: unseenFrom, to: cut } : null,
    rest: cut < window.to ? { from: cut, to: window.to } : null,
  }
}
