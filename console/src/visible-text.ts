/**
 * Text of strangers, shown so that it cannot pretend to be other text: characters that control, reorder or
 * hide (bidi overrides, zero-width ones, NUL) are written as their escapes.
 */

const hidden =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g

/** The text with what cannot be seen made visible: `\u202e`. Tabs and line feeds stay. */
export function visibleText(text: string): string {
  return text.replace(hidden, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** One line of it, cut after so many characters, with an ellipsis where something is missing. */
export function lineOf(text: string, length: number): string {
  const line = visibleText(text).replace(/\s+/g, ' ').trim()
  return line.length <= length ? line : `${line.slice(0, length - 1)}…`
}
