/**
 * `Retry-After` in every form that HTTP has: seconds, and the three forms of a date, counted from the
 * answer's own `Date` where it has one, so that the two clocks need not agree. Always capped.
 */

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

/** The headers that say when to come back, as received. */
export interface RetryHeaders {
  readonly retryAfter: string | undefined
  readonly date: string | undefined
}

/**
 * Milliseconds to wait, from 0 (already past) to `capMs`; undefined where the answer does not say, or
 * says something that is no time. `nowMs` is this clock, for answers without a date.
 */
export function retryAfterMs(
  headers: RetryHeaders,
  nowMs: number,
  capMs: number,
): number | undefined {
  const text = headers.retryAfter?.trim()
  if (text === undefined || text === '') return undefined
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, capMs)
  const at = httpDate(text, nowMs)
  if (at === undefined) return undefined
  const from = headers.date === undefined ? undefined : httpDate(headers.date.trim(), nowMs)
  return Math.min(Math.max(0, at - (from ?? nowMs)), capMs)
}

/**
 * Milliseconds since 1970 of an HTTP date: IMF-fixdate, RFC 850 (two digits of the year, at most 50
 * years ahead of `nowMs`) or asctime; undefined for anything else, and for a day that does not exist.
 */
export function httpDate(text: string, nowMs: number): number | undefined {
  const imf =
    /^(?:mon|tue|wed|thu|fri|sat|sun), (\d\d) ([a-z]{3}) (\d{4}) (\d\d):(\d\d):(\d\d) gmt$/i.exec(
      text,
    )
  if (imf) return dateOf(imf[3], imf[2], imf[1], imf.slice(4))
  const rfc850 =
    /^(?:mon|tues|wednes|thurs|fri|satur|sun)day, (\d\d)-([a-z]{3})-(\d\d) (\d\d):(\d\d):(\d\d) gmt$/i.exec(
      text,
    )
  if (rfc850)
    return dateOf(fullYear(Number(rfc850[3]), nowMs), rfc850[2], rfc850[1], rfc850.slice(4))
  const asctime =
    /^(?:mon|tue|wed|thu|fri|sat|sun) ([a-z]{3}) ([ \d]\d) (\d\d):(\d\d):(\d\d) (\d{4})$/i.exec(
      text,
    )
  if (asctime) return dateOf(asctime[6], asctime[1], asctime[2], asctime.slice(3, 6))
  return undefined
}

/** Two digits that would lie more than 50 years ahead mean the last year that ended so. */
function fullYear(twoDigits: number, nowMs: number): number {
  const thisYear = new Date(nowMs).getUTCFullYear()
  const year = thisYear - (thisYear % 100) + twoDigits
  return year > thisYear + 50 ? year - 100 : year
}

function dateOf(
  year: string | number | undefined,
  monthName: string | undefined,
  day: string | undefined,
  time: readonly (string | undefined)[],
): number | undefined {
  const month = months.indexOf((monthName ?? '').toLowerCase())
  const [hour = 0, minute = 0, second = 0] = time.map(Number)
  if (month === -1 || hour > 23 || minute > 59 || second > 60) return undefined
  const at = Date.UTC(Number(year), month, Number(day), hour, minute, second)
  const date = new Date(at - (second === 60 ? 1000 : 0))
  return date.getUTCMonth() === month && date.getUTCDate() === Number(day) ? at : undefined
}
