/** A named field of a form. */
import type { ReactNode } from 'react'

/** The field: a line of text, or what `type` says. */
export function Field({
  label,
  value,
  set,
  type = 'text',
  hint,
}: {
  label: string
  value: string
  set(value: string): void
  type?: string
  /** Shown while it is empty. */
  hint?: string
}): ReactNode {
  return (
    <label className="field">
      <span>{label}</span>
      <input
        type={type}
        value={value}
        placeholder={hint}
        maxLength={512}
        autoComplete="off"
        onChange={(event) => set(event.target.value)}
      />
    </label>
  )
}
