/** Copies a text, and says so. */
import { useEffect, useState } from 'react'
import type { ReactNode } from 'react'
import { visibleText } from '../visible-text.ts'
import { Icon } from './icons.tsx'
import { announce } from './announcer.tsx'

/** Copies `text`; `label` names it for who cannot see it: `order id`. */
export function CopyButton({ text, label }: { text: string; label: string }): ReactNode {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), 1500)
    return () => clearTimeout(timer)
  }, [copied])
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
      announce(`${label} copied`)
    } catch {
      announce('The browser does not let this page copy: mark the text and copy it by hand')
    }
  }
  return (
    <button
      type="button"
      className="copy"
      aria-label={`Copy ${label}`}
      title={`Copy ${label}`}
      data-done={copied || undefined}
      onClick={() => void copy()}
    >
      <Icon name={copied ? 'check' : 'copy'} />
    </button>
  )
}

/** An id, exact, in a face whose letters cannot be mistaken, with a button that copies it. */
export function Id({
  of,
  label,
  copy = true,
  children,
}: {
  of: string
  label: string
  /** Not in lists, where it would be in the way. */
  copy?: boolean
  /** A link in the place of the plain text. */
  children?: ReactNode
}): ReactNode {
  return (
    <span className="id">
      {children ?? <span className="id-text">{visibleText(of)}</span>}
      {copy && <CopyButton text={of} label={label} />}
    </span>
  )
}
