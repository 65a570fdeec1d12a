/** Moments and durations in words: short, exact where it matters, always with the unit. */

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** A duration in its two largest units: `3 h 12 min`, `45 s`, `12 d`. Milliseconds in. */
export function durationText(ms: number): string {
  const size = Math.abs(ms)
  if (size < second) return `${Math.round(size)} ms`
  if (size < minute) return `${Math.floor(size / second)} s`
  if (size < hour) return two(size, minute, 'min', second, 's')
  if (size < day) return two(size, hour, 'h', minute, 'min')
  if (size < 10 * day) return two(size, day, 'd', hour, 'h')
  return `${Math.floor(size / day)} d`
}

function two(size: number, unit: number, name: string, under: number, underName: string): string {
  const whole = Math.floor(size / unit)
  const rest = Math.floor((size - whole * unit) / under)
  return rest === 0 ? `${whole} ${name}` : `${whole} ${name} ${rest} ${underName}`
}

/** How long ago or until: `4 min ago`, `in 2 h`, `now`. One unit only: it stands in lists. */
export function agoText(at: number, now: number): string {
  const passed = now - at
  const size = Math.abs(passed)
  if (size < 5 * second) return 'now'
  const text =
    size < minute
      ? `${Math.floor(size / second)} s`
      : size < hour
        ? `${Math.floor(size / minute)} min`
        : size < 2 * day
          ? `${Math.floor(size / hour)} h`
          : `${Math.floor(size / day)} d`
  return passed > 0 ? `${text} ago` : `in ${text}`
}

/** A moment on the reader's clock, to the second: `2026-12-01 06:10:24`. */
export function clockText(at: Date): string {
  return `${dateText(at)} ${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`
}

/** The day on the reader's calendar: `2026-12-01`. */
export function dateText(at: Date): string {
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`
}

/** What `<input type="datetime-local">` shows for an ISO moment; empty where there is none. */
export function localInputText(iso: string): string {
  const at = new Date(iso)
  if (Number.isNaN(at.getTime())) return ''
  return `${dateText(at)}T${pad(at.getHours())}:${pad(at.getMinutes())}`
}

function pad(value: number): string {
  return String(value).padStart(2, '0')
}
