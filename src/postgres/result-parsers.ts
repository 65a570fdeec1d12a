/**
 * How values come back, whatever parsers an app has set for its own queries: those are global to the
 * driver, and a bigint that turns into a rounded number, or a time that stays text, would be wrong
 * here. Integers of 64 bits, numerics and dates are text; times are Dates; JSON is parsed.
 */
import type pg from 'pg'

type Parser = (text: string) => unknown

const parsers = new Map<number, Parser>([
  [16, (text) => text === 't'], // boolean
  [17, bytes], // bytea
  [21, Number], // smallint
  [23, Number], // integer
  [26, Number], // oid
  [700, Number], // real
  [701, Number], // double precision
  [114, JSON.parse], // json
  [3802, JSON.parse], // jsonb
  [1114, (text) => time(`${text}+00`)], // timestamp
  [1184, time], // timestamptz
  [1000, elements((text) => text === 't')], // boolean[]
  [1005, elements(Number)], // smallint[]
  [1007, elements(Number)], // integer[]
  [1009, elements(String)], // text[]
  [1015, elements(String)], // varchar[]
  [1016, elements(String)], // bigint[]
  [2951, elements(String)], // uuid[]
])

/** The parsers in the form in which the driver takes them with a query. */
export const resultParsers: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number) =>
    parsers.get(oid) ?? String) as pg.CustomTypesConfig['getTypeParser'],
}

/** `2026-11-30 15:04:05.123456+00`, in whatever zone the session is; zones of old had seconds too. */
function time(text: string): Date {
  // rows that were written together have the same times: each is read once
  let ms = recentTimes.get(text)
  if (ms === undefined) {
    if (recentTimes.size >= 64) recentTimes.clear()
    ms = readTime(text)
    recentTimes.set(text, ms)
  }
  return new Date(ms)
}

const recentTimes = new Map<string, number>()

function readTime(text: string): number {
  const found =
    /^(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d{1,3})?\d*([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?$/.exec(
      text,
    )
  if (found === null) return new Date(text).getTime()
  const [, day, clock, fraction = '', sign, hours, minutes = '0', seconds = '0'] = found
  const offset =
    (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * (sign === '-' ? -1000 : 1000)
  return Date.parse(`${day}T${clock}${fraction}Z`) - offset
}

/** Both forms of bytea_output. */
function bytes(text: string): Buffer {
  if (text.startsWith('\\x')) return Buffer.from(text.slice(2), 'hex')
  return Buffer.from(
    text.replace(/\\(\\|\d{3})/g, (_, code: string) =>
      code === '\\' ? '\\' : String.fromCharCode(Number.parseInt(code, 8)),
    ),
    'latin1',
  )
}

/** An array of one dimension, such as `{1,"a b",NULL}`. */
function elements(parse: Parser): Parser {
  return (text) => {
    const found: unknown[] = []
    const element = /(?:"((?:[^"\\]|\\.)*)"|([^,{}]+))(?=[,}])/gs
    for (const [, quoted, bare] of text.matchAll(element)) {
      if (quoted !== undefined) found.push(parse(quoted.replace(/\\(.)/gs, '$1')))
      else found.push(bare === 'NULL' || bare === undefined ? null : parse(bare))
    }
    return found
  }
}
