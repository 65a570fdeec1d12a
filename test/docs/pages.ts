/** Reads the documents for the tests that hold them to the code: headings, tables, fenced blocks. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/** The repository's root. */
export const root: string = join(import.meta.dirname, '..', '..')

/** A document, by its path from the root. */
export interface Page {
  readonly path: string
  readonly text: string
}

/** A heading with the anchor that a link to it uses. */
export interface Heading {
  readonly level: number
  readonly title: string
  readonly anchor: string
}

/** A fenced block. `file` is set by a comment before it: `<!-- file: app.ts -->`. */
export interface Block {
  readonly page: string
  readonly line: number
  readonly language: string
  readonly file: string | null
  /** Whether the block says that it is run, not only compiled: `<!-- file: app.ts, run -->`. */
  readonly run: boolean
  readonly text: string
}

/** One document. */
export function page(path: string): Page {
  return { path, text: readFileSync(join(root, path), 'utf8') }
}

/** Every document: those in the root, and everything under docs/. */
export function pages(): Page[] {
  const top = readdirSync(root).filter((name) => name.endsWith('.md'))
  const below = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => relative(root, join(root, 'docs', name)))
  return [...top, ...below].sort().map(page)
}

/** The text without its fenced blocks. */
export function prose(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, '')
}

/** The headings of a document. */
export function headings(text: string): Heading[] {
  return [...prose(text).matchAll(/^(#{1,6}) +(.+?) *$/gm)].map(([, marks = '', title = '']) => ({
    level: marks.length,
    title: plain(title),
    anchor: anchorOf(title),
  }))
}

/** A heading's anchor as GitHub makes it. */
export function anchorOf(title: string): string {
  return plain(title)
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')
}

/** The text from a heading to the next one of its level or above. */
export function section(text: string, title: string): string {
  const lines = text.split('\n')
  const start = lines.findIndex(
    (line) => /^#+ /.test(line) && plain(line.replace(/^#+ /, '')) === title,
  )
  if (start === -1) throw new Error(`there is no heading "${title}"`)
  const level = /^#+/.exec(lines[start] ?? '')?.[0].length ?? 1
  const end = lines.findIndex(
    (line, index) => index > start && (/^(#+) /.exec(line)?.[1]?.length ?? 7) <= level,
  )
  return lines.slice(start + 1, end === -1 ? undefined : end).join('\n')
}

/** The rows of every table in a text, without heads: cells as plain text. */
export function tableRows(text: string): string[][] {
  const rows: string[][] = []
  const lines = prose(text).split('\n')
  lines.forEach((line, index) => {
    if (!line.startsWith('|') || /^\|[\s:|-]+\|$/.test(line)) return
    if (/^\|[\s:|-]+\|$/.test(lines[index + 1] ?? '')) return
    rows.push(
      line
        .replaceAll('\\|', '\u0000')
        .split('|')
        .slice(1, -1)
        .map((cell) => plain(cell.replaceAll('\u0000', '|').trim())),
    )
  })
  return rows
}

/** The fenced blocks of a document. */
export function blocks({ path, text }: Page): Block[] {
  const found: Block[] = []
  const fence = /(?:^<!-- file: ([\w./-]+)(, run)? -->\n\n?)?^```(\w*)\n([\s\S]*?)^```$/gm
  for (const match of text.matchAll(fence)) {
    const [, file = null, run, language = '', body = ''] = match
    const line = text.slice(0, match.index).split('\n').length
    found.push({ page: path, line, language, file, run: run !== undefined, text: body })
  }
  return found
}

/** Text without the marks of code, emphasis and links. */
function plain(text: string): string {
  return text
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*]/g, '')
    .trim()
}
