/** Bytes of a payload as what a person can read: JSON where they are JSON, else text, else a hex dump. */
import { parseExact, type ExactJson } from './exact-json.ts'

/** How a payload is shown; `text` is exact where there is one. */
export type PayloadText =
  | { readonly kind: 'json'; readonly value: ExactJson; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'bytes'; readonly text: string }

/** Most bytes that a hex dump shows. */
const dumped = 4096

/** Reads base64. Bytes that are no UTF-8 are never guessed at. */
export function payloadText(base64: string): PayloadText {
  const bytes = Uint8Array.from(atob(base64), (each) => each.charCodeAt(0))
  let text: string
  try {
    // a byte order mark is a byte like every other one
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return { kind: 'bytes', text: hexDump(bytes) }
  }
  try {
    return { kind: 'json', value: parseExact(text), text }
  } catch {
    return { kind: 'text', text }
  }
}

function hexDump(bytes: Uint8Array): string {
  const lines: string[] = []
  for (let at = 0; at < Math.min(bytes.length, dumped); at += 16) {
    const row = [...bytes.subarray(at, Math.min(at + 16, dumped))]
    const hex = row.map((each) => each.toString(16).padStart(2, '0')).join(' ')
    const letters = row.map((each) => (each > 31 && each < 127 ? String.fromCharCode(each) : '.'))
    lines.push(`${at.toString(16).padStart(8, '0')}  ${hex.padEnd(47)}  ${letters.join('')}`)
  }
  if (bytes.length > dumped) lines.push(`… ${bytes.length - dumped} more bytes`)
  return lines.join('\n')
}
