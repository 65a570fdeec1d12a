/** What is said without moving the focus: to a screen reader, and as a passing note in the corner. */
import { useEffect, useSyncExternalStore } from 'react'
import type { ReactNode } from 'react'

interface Note {
  readonly id: number
  readonly text: string
  readonly shown: boolean
}

let note: Note = { id: 0, text: '', shown: false }
const listeners = new Set<() => void>()

/** Says something to a screen reader only: `12 events`, `copied`. */
export function announce(text: string): void {
  change({ id: note.id + 1, text, shown: false })
}

/** Says what was done, for all to see, for five seconds. */
export function notify(text: string): void {
  change({ id: note.id + 1, text, shown: true })
}

/** The place where it is said; stands once in the page. */
export function Announcer(): ReactNode {
  const { id, text, shown } = useSyncExternalStore(subscribe, () => note)
  useEffect(() => {
    if (!shown) return
    const timer = setTimeout(() => {
      if (note.id === id) change({ ...note, shown: false })
    }, 5000)
    return () => clearTimeout(timer)
  }, [id, shown])
  return (
    <div className={shown ? 'note shown' : 'note'} role="status" aria-live="polite">
      {text}
    </div>
  )
}

function change(next: Note): void {
  note = next
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
