/** Search by anything: an id of any kind leads there. `/` from anywhere puts the cursor in it. */
import { useEffect, useState } from 'react'
import type { FormEvent, ReactNode } from 'react'
import { Icon } from '../components/icons.tsx'
import { linkTo } from '../links.ts'
import { go, useUrlQuery } from '../location.ts'

/** The id of its field, for the shortcut. */
export const searchFieldId = 'search-field'

/** The box in the head of every page. */
export function SearchBox(): ReactNode {
  const { values } = useUrlQuery()
  const asked = values['q'] ?? ''
  const [text, setText] = useState(asked)
  useEffect(() => setText(asked), [asked])
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (text.trim() !== '') go(linkTo('search', {}, { q: text.trim() }))
  }
  return (
    <form role="search" className="search-box" aria-label="Search" onSubmit={submit}>
      <Icon name="search" />
      <input
        id={searchFieldId}
        type="search"
        aria-label="Order, customer, email, event, payment or operation"
        placeholder="Order, customer, event, payment…"
        value={text}
        maxLength={512}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') event.currentTarget.blur()
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </form>
  )
}
