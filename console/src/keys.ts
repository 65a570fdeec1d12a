/** What a key means on the page. Keys typed into a field, or with a modifier, are never shortcuts. */

/** What the page can be told by keyboard. */
export type Shortcut =
  | { readonly do: 'search' | 'refresh' | 'theme' | 'help' | 'next' | 'previous' }
  | { readonly do: 'go'; readonly to: string }

/** A key press, as far as it matters. */
export interface KeyPress {
  readonly key: string
  readonly modified: boolean
  /** It was typed into a field, or a dialog is open. */
  readonly typing: boolean
}

/** Where `g` and a second letter lead: page names. */
export const goKeys: Readonly<Record<string, string>> = Object.freeze({
  o: 'overview',
  i: 'events',
  r: 'orders',
  u: 'outbox',
  f: 'findings',
  c: 'reconciliation',
  l: 'ledger',
  a: 'audit',
  b: 'bulk',
})

const single: Readonly<Record<string, Exclude<Shortcut, { do: 'go' }>['do']>> = {
  '/': 'search',
  r: 'refresh',
  t: 'theme',
  '?': 'help',
  j: 'next',
  k: 'previous',
}

/** The meaning of a key, given the one before it (within a second); null: it is not for the page. */
export function shortcutOf(press: KeyPress, before: string | null): Shortcut | null {
  if (press.modified || press.typing) return null
  if (before === 'g') {
    const to = goKeys[press.key]
    return to === undefined ? null : { do: 'go', to }
  }
  const act = single[press.key]
  return act === undefined ? null : { do: act }
}
