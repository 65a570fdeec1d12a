/** Data of strangers: as text only, big numbers exact, nothing hidden, foldable. */
import { useState } from 'react'
import type { ReactNode } from 'react'
import { Numeral, writeExact } from '../exact-json.ts'
import { visibleText } from '../visible-text.ts'
import { CopyButton } from './copy-button.tsx'

const atOnce = 100

/** A tree of JSON. `label` names it for the copy button; `open`: how many levels are unfolded. */
export function JsonView({
  value,
  label,
  open = 2,
}: {
  value: unknown
  label: string
  open?: number
}): ReactNode {
  return (
    <div className="json">
      <CopyButton text={writeExact(value)} label={label} />
      <Node value={value} name={null} open={open} />
    </div>
  )
}

function Node({
  value,
  name,
  open,
}: {
  value: unknown
  name: string | null
  open: number
}): ReactNode {
  const key = name === null ? null : <span className="json-key">{visibleText(name)}: </span>
  if (typeof value !== 'object' || value === null || value instanceof Numeral) {
    return (
      <div className="json-line">
        {key}
        <Scalar value={value} />
      </div>
    )
  }
  const list = Array.isArray(value)
  const entries: [string, unknown][] = list
    ? value.map((item, index) => [String(index), item])
    : Object.entries(value)
  if (entries.length === 0) {
    return (
      <div className="json-line">
        {key}
        <span className="muted">{list ? '[]' : '{}'}</span>
      </div>
    )
  }
  return (
    <details className="json-node" open={open > 0}>
      <summary>
        {key}
        <span className="muted">{list ? `[ ${entries.length} ]` : `{ ${entries.length} }`}</span>
      </summary>
      <Entries entries={entries} open={open - 1} />
    </details>
  )
}

function Entries({ entries, open }: { entries: [string, unknown][]; open: number }): ReactNode {
  const [shown, setShown] = useState(atOnce)
  return (
    <div className="json-inside">
      {entries.slice(0, shown).map(([key, item]) => (
        <Node key={key} value={item} name={key} open={open} />
      ))}
      {entries.length > shown && (
        <button
          type="button"
          className="button plain small"
          onClick={() => setShown(shown + atOnce * 10)}
        >
          {entries.length - shown} more
        </button>
      )}
    </div>
  )
}

function Scalar({ value }: { value: unknown }): ReactNode {
  if (typeof value === 'string') {
    return <span className="json-string">{`"${visibleText(value)}"`}</span>
  }
  const kind = value instanceof Numeral || typeof value === 'number' ? 'json-number' : 'json-word'
  return <span className={kind}>{String(value)}</span>
}

/** Exact text in a frame that scrolls: a body, a command. Control characters are written as escapes. */
export function TextView({ text, label }: { text: string; label: string }): ReactNode {
  return (
    <div className="json">
      <CopyButton text={text} label={label} />
      <pre className="raw" tabIndex={0} aria-label={label}>
        {visibleText(text)}
      </pre>
    </div>
  )
}
