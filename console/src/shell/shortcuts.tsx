/** The keyboard: what keys do on every page, and the page that tells it. */
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import type { ReactNode } from 'react'
import { announce } from '../components/announcer.tsx'
import { Dialog } from '../components/confirm-dialog.tsx'
import { stepThroughRows } from '../components/data-table.tsx'
import { shortcutOf } from '../keys.ts'
import { linkTo, pagePaths, type PageName } from '../links.ts'
import { go } from '../location.ts'
import { nextTheme } from '../theme.ts'
import { searchFieldId } from './search-box.tsx'

/** Listens to the keyboard while it is on the page; shows the help. */
export function Shortcuts(): ReactNode {
  const queries = useQueryClient()
  const [help, setHelp] = useState(false)
  const before = useRef<{ key: string; at: number } | null>(null)
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const last = before.current
      before.current = { key: event.key, at: event.timeStamp }
      const shortcut = shortcutOf(
        {
          key: event.key,
          modified: event.ctrlKey || event.metaKey || event.altKey,
          typing: isTyping(event.target),
        },
        last !== null && event.timeStamp - last.at < 1000 ? last.key : null,
      )
      if (shortcut === null) return
      event.preventDefault()
      switch (shortcut.do) {
        case 'search':
          return document.getElementById(searchFieldId)?.focus()
        case 'refresh':
          announce('Reading again')
          return void queries.invalidateQueries()
        case 'theme':
          return nextTheme()
        case 'help':
          return setHelp(true)
        case 'next':
          return stepThroughRows(1)
        case 'previous':
          return stepThroughRows(-1)
        case 'go':
          if (shortcut.to in pagePaths) go(linkTo(shortcut.to as PageName))
      }
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [queries])
  return help ? <Help close={() => setHelp(false)} /> : null
}

const told: readonly (readonly [keys: string, what: string])[] = [
  ['/', 'Search'],
  ['r', 'Read again now'],
  ['t', 'Light, dark, as the system'],
  ['j k', 'Next and previous row'],
  ['Enter', 'Open the row'],
  ['g o', 'Overview'],
  ['g i', 'Inbox'],
  ['g r', 'Orders'],
  ['g u', 'Outbox'],
  ['g f', 'Findings'],
  ['g c', 'Reconciliation'],
  ['g l', 'Ledger'],
  ['g b', 'Bulk acts'],
  ['g a', 'Audit log'],
  ['?', 'This list'],
]

function Help({ close }: { close(): void }): ReactNode {
  return (
    <Dialog title="Keyboard" close={close}>
      <dl className="keys">
        {told.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <div className="dialog-buttons">
        <button type="button" className="button primary" autoFocus onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  )
}

function isTyping(target: EventTarget | null): boolean {
  if (document.querySelector('dialog[open]') !== null) return true
  return (
    target instanceof Element &&
    target.closest('input, textarea, select, [contenteditable]') !== null
  )
}
