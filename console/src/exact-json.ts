/**
 * JSON without loss: a number that a double cannot hold exactly (a big key, an amount past 2^53, 1.10) is kept
 * as the digits that were sent. Everything else is what JSON.parse gives.
 */

/** A number as it stood in the text, where a JavaScript number would have changed it. */
export class Numeral {
  /** The digits as sent: `9007199254740993`. */
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  toString(): string {
    return this.text
  }

  toJSON(): string {
    return this.text
  }
}

/** What an exact reading gives. */
export type ExactJson =
  | null
  | boolean
  | number
  | string
  | Numeral
  | readonly ExactJson[]
  | { readonly [key: string]: ExactJson }

const token =
  /[ \t\n\r]*(?:([{}[\]:,])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null))[ \t\n\r]*/y

/**
 * Reads JSON with every numeral kept exact.
 *
 * @throws SyntaxError where the text is no JSON or nests deeper than 200.
 */
export function parseExact(text: string): ExactJson {
  const reader = new Reader(text)
  const value = reader.value(0)
  reader.end()
  return value
}

/**
 * Reads an API answer: with JSON.parse where the text has no numeral that could be changed, else exactly.
 */
export function parseAnswer(text: string): unknown {
  return /\d{16}|\d\.\d*0(?=[\s,\]}]|$)/.test(text)
    ? parseExact(text)
    : (JSON.parse(text) as unknown)
}

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  value(depth: number): ExactJson {
    if (depth > 200) throw new SyntaxError('JSON that nests deeper than 200')
    const [mark, string, numeral, word] = this.#next()
    if (string !== undefined) return JSON.parse(string) as string
    if (numeral !== undefined) return exactly(numeral)
    if (word !== undefined) return word === 'null' ? null : word === 'true'
    if (mark === '[') return this.#list(depth)
    if (mark === '{') return this.#fields(depth)
    throw this.#broken()
  }

  end(): void {
    if (this.#at < this.#text.length) throw this.#broken()
  }

  #list(depth: number): ExactJson[] {
    const items: ExactJson[] = []
    if (this.#skip(']')) return items
    for (;;) {
      items.push(this.value(depth + 1))
      const [mark] = this.#next()
      if (mark === ']') return items
      if (mark !== ',') throw this.#broken()
    }
  }

  #fields(depth: number): { readonly [key: string]: ExactJson } {
    const fields: [string, ExactJson][] = []
    if (this.#skip('}')) return {}
    for (;;) {
      const [, key] = this.#next()
      if (key === undefined || this.#next()[0] !== ':') throw this.#broken()
      fields.push([JSON.parse(key) as string, this.value(depth + 1)])
      const [mark] = this.#next()
      // fromEntries defines: a key named __proto__ is a field like every other one
      if (mark === '}') return Object.fromEntries(fields)
      if (mark !== ',') throw this.#broken()
    }
  }

  #skip(mark: string): boolean {
    const before = this.#at
    if (this.#next()[0] === mark) return true
    this.#at = before
    return false
  }

  #next(): readonly (string | undefined)[] {
    token.lastIndex = this.#at
    const match = token.exec(this.#text)
    if (match === null) throw this.#broken()
    this.#at = token.lastIndex
    return match.slice(1)
  }

  #broken(): SyntaxError {
    return new SyntaxError(`no JSON at character ${this.#at}`)
  }
}

function exactly(numeral: string): number | Numeral {
  const value = Number(numeral)
  return String(value) === numeral ? value : new Numeral(numeral)
}

/** Writes it again, indented, with every numeral as it was. */
export function writeExact(value: unknown, pad = ''): string {
  if (value instanceof Numeral) return value.text
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const inside = `${pad}  `
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]'
    const items = value.map((item) => `${inside}${writeExact(item, inside)}`)
    return `[\n${items.join(',\n')}\n${pad}]`
  }
  const fields = Object.entries(value).map(
    ([key, item]) => `${inside}${JSON.stringify(key)}: ${writeExact(item, inside)}`,
  )
  return fields.length === 0 ? '{}' : `{\n${fields.join(',\n')}\n${pad}}`
}
