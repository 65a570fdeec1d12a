/**
 * Times that a person typed or a file holds: ISO 8601 and nothing looser. A day that no calendar has is refused,
 * since rolled over to the next month it would be another day than the one that was meant. Pure.
 */

/** What a time looks like, for messages. */
export const exampleTime = '2026-01-31 or 2026-01-31T12:00:00Z'

const shape =
  /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d\d):?(\d\d)))?$/

/**
 * The time: a date (its first moment in UTC) or a date-time with its offset, of the years 2000 to 9999 in UTC;
 * null for anything else. Kept to milliseconds.
 */
export function strictTime(text: string): Date | null {
  const found = shape.exec(text)
  if (found === null) return null
  const part = (index: number): number => Number(found[index] ?? 0)
  const [year, month, day] = [part(1), part(2), part(3)]
  const [hour, minute, second] = [part(4), part(5), part(6)]
  const [offsetHours, offsetMinutes] = [part(9), part(10)]
  if (hour > 23 || minute > 59 || second > 59 || offsetHours > 23 || offsetMinutes > 59) return null
  const ms = Number((found[7] ?? '').padEnd(3, '0').slice(0, 3))
  const local = new Date(Date.UTC(year, month - 1, day, hour, minute, second, ms))
  // a month or day out of range has become another one
  if (local.getUTCMonth() !== month - 1 || local.getUTCDate() !== day) return null
  const offsetMs = (offsetHours * 60 + offsetMinutes) * 60_000 * (found[8] === '-' ? -1 : 1)
  const time = new Date(local.getTime() - offsetMs)
  const utcYear = time.getUTCFullYear()
  return utcYear >= 2000 && utcYear <= 9999 ? time : null
}
