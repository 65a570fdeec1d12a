/**
 * Where words go: results to stdout, narration to stderr, one JSON object (or one line a row) with
 * `--json`. Text from outside is escaped before a terminal sees it; colors only where one is.
 */
import { styleText } from 'node:util'
import { toJson } from '../core/json.ts'
import { printableData } from '../observe/printable.ts'

/** What output needs of a stream. */
export interface OutputStream {
  write(text: string): unknown
  readonly isTTY?: boolean
}

/** How to write. */
export interface OutputOptions {
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly json: boolean
  readonly quiet: boolean
  readonly color: boolean
}

/** Colors by what they mean. */
export interface Style {
  good(text: string): string
  bad(text: string): string
  warning(text: string): string
  strong(text: string): string
  faint(text: string): string
}

/** Milliseconds between two lines of progress where no terminal can rewrite one. */
const progressEveryMs = 3000

/** The output of one command. */
export class Output {
  readonly json: boolean
  /** Colors of stdout. */
  readonly style: Style
  readonly #options: OutputOptions
  readonly #narration: Style
  #progressShown = false
  #progressAt = performance.now()

  constructor(options: OutputOptions) {
    this.#options = options
    this.json = options.json
    this.style = styleOf(options.color && options.stdout.isTTY === true)
    this.#narration = styleOf(options.color && options.stderr.isTTY === true)
  }

  /** The result: data as JSON, or as `render` makes text of it (its strings are safe to show). */
  result<T>(data: T, render: (safe: T, style: Style) => string): void {
    this.#clearProgress()
    if (this.json) this.#options.stdout.write(`${toJson(data)}\n`)
    else this.#lines(this.#options.stdout, render(printableData(data), this.style))
  }

  /** A list: one JSON line a row, or the text that `render` makes of all of them. */
  rows<T>(rows: readonly T[], render: (safe: readonly T[], style: Style) => string): void {
    this.#clearProgress()
    if (this.json) for (const row of rows) this.#options.stdout.write(`${toJson(row)}\n`)
    else this.#lines(this.#options.stdout, render(printableData(rows), this.style))
  }

  /** Text that is the same for people and programs (a graph, SQL). */
  text(text: string): void {
    this.#clearProgress()
    this.#lines(this.#options.stdout, text)
  }

  /** What goes on, for a person; silent with `--quiet`. */
  note(text: string): void {
    if (this.#options.quiet) return
    this.#clearProgress()
    this.#lines(this.#options.stderr, text)
  }

  /** What a person must know, also with `--quiet`. */
  warn(text: string): void {
    this.#clearProgress()
    this.#lines(this.#options.stderr, `${this.#narration.warning('warning:')} ${text}`)
  }

  /** Why the command ends: one line. */
  error(text: string): void {
    this.#clearProgress()
    this.#lines(this.#options.stderr, `${this.#narration.bad('hookledger:')} ${text}`)
  }

  /** How far it is: one line that rewrites itself on a terminal, a new one every few seconds elsewhere. */
  progress(text: string): void {
    const { stderr, quiet } = this.#options
    if (quiet) return
    if (stderr.isTTY === true) {
      stderr.write(`\r\u001b[2K${text}`)
      this.#progressShown = true
      return
    }
    if (performance.now() - this.#progressAt < progressEveryMs) return
    this.#progressAt = performance.now()
    stderr.write(`${text}\n`)
  }

  #clearProgress(): void {
    if (!this.#progressShown) return
    this.#progressShown = false
    this.#options.stderr.write('\r\u001b[2K')
  }

  #lines(stream: OutputStream, text: string): void {
    if (text !== '') stream.write(text.endsWith('\n') ? text : `${text}\n`)
  }
}

function styleOf(color: boolean): Style {
  type Format = Parameters<typeof styleText>[0]
  const paint =
    (format: Format) =>
    (text: string): string =>
      color ? styleText(format, text, { validateStream: false }) : text
  return {
    good: paint('green'),
    bad: paint('red'),
    warning: paint('yellow'),
    strong: paint('bold'),
    faint: paint('dim'),
  }
}
