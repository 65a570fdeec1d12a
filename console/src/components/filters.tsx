/** Filters of a list. What they hold is in the address: it can be sent to somebody, and the back button undoes it. */
import { useEffect, useId, useState } from 'react'
import type { ReactNode } from 'react'
import { useUrlQuery } from '../location.ts'
import { localInputText } from '../moments.ts'
import { wordsOf } from '../words.ts'

/** A filter; its name is the query key of the route. */
export type Filter =
  | { readonly kind: 'text'; readonly name: string; readonly label: string; readonly hint?: string }
  | {
      readonly kind: 'choice'
      readonly name: string
      readonly label: string
      readonly choices: readonly (string | { readonly value: string; readonly text: string })[]
    }
  | { readonly kind: 'time'; readonly name: string; readonly label: string }
  | { readonly kind: 'flag'; readonly name: string; readonly label: string }

/** What the filters of a list hold at present, for its request; empty ones are left out. */
export function useFilterValues(filters: readonly Filter[]): Readonly<Record<string, string>> {
  const { values } = useUrlQuery()
  return Object.fromEntries(
    filters.flatMap(({ name }): [string, string][] => {
      const value = values[name]
      return value === undefined || value === '' ? [] : [[name, value]]
    }),
  )
}

/** The bar above a list. */
export function FilterBar({
  filters,
  children,
}: {
  filters: readonly Filter[]
  /** What stands at its end: an export. */
  children?: ReactNode
}): ReactNode {
  const held = useFilterValues(filters)
  const { set } = useUrlQuery()
  const [open, setOpen] = useState(false)
  const count = Object.keys(held).length
  const clear = (): void => set(Object.fromEntries(filters.map(({ name }) => [name, null])))
  return (
    <form
      className="filters"
      role="search"
      aria-label="Filters"
      data-open={open || undefined}
      onSubmit={(event) => event.preventDefault()}
    >
      <button
        type="button"
        className="button plain small filters-toggle"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        Filters{count > 0 && ` (${count})`}
      </button>
      {filters.map((filter) => (
        <FilterField key={filter.name} filter={filter} value={held[filter.name] ?? ''} />
      ))}
      {count > 0 && (
        <button type="button" className="button plain small" onClick={clear}>
          Clear
        </button>
      )}
      {children !== undefined && <div className="filters-end">{children}</div>}
    </form>
  )
}

function FilterField({ filter, value }: { filter: Filter; value: string }): ReactNode {
  const id = useId()
  const { set } = useUrlQuery()
  const change = (next: string): void => set({ [filter.name]: next })
  const head = (
    <label htmlFor={id} className="filter-label">
      {filter.label}
    </label>
  )
  switch (filter.kind) {
    case 'text':
      return (
        <div className="filter" data-held={value !== '' || undefined}>
          {head}
          <TextField id={id} value={value} hint={filter.hint} name={filter.name} />
        </div>
      )
    case 'choice':
      return (
        <div className="filter" data-held={value !== '' || undefined}>
          {head}
          <select id={id} value={value} onChange={(event) => change(event.target.value)}>
            <option value="">any</option>
            {filter.choices.map((choice) => (
              <option key={valueOf(choice)} value={valueOf(choice)}>
                {typeof choice === 'string' ? wordsOf(choice) : choice.text}
              </option>
            ))}
          </select>
        </div>
      )
    case 'time':
      return (
        <div className="filter" data-held={value !== '' || undefined}>
          {head}
          <input
            id={id}
            type="datetime-local"
            value={localInputText(value)}
            onChange={(event) => change(isoOf(event.target.value))}
          />
        </div>
      )
    case 'flag':
      return (
        <label className="filter flag" data-held={value !== '' || undefined}>
          <input
            type="checkbox"
            checked={value === 'true'}
            onChange={(event) => change(event.target.checked ? 'true' : '')}
          />
          {filter.label}
        </label>
      )
  }
}

/** Takes effect a moment after the last letter, or with Enter. */
function TextField(props: {
  id: string
  name: string
  value: string
  hint: string | undefined
}): ReactNode {
  const { id, name, value, hint } = props
  const [text, setText] = useState(value)
  const { set } = useUrlQuery()
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text.trim() === value) return
    const timer = setTimeout(() => set({ [name]: text.trim() }, { replace: true }), 350)
    return () => clearTimeout(timer)
  }, [text, value, name, set])
  return (
    <input
      id={id}
      type="text"
      value={text}
      placeholder={hint}
      autoComplete="off"
      spellCheck={false}
      maxLength={512}
      onChange={(event) => setText(event.target.value)}
      onKeyDown={(event) => {
        if (event.key === 'Enter') set({ [name]: text.trim() })
        if (event.key === 'Escape') setText('')
      }}
    />
  )
}

function valueOf(choice: string | { readonly value: string }): string {
  return typeof choice === 'string' ? choice : choice.value
}

function isoOf(local: string): string {
  const at = new Date(local)
  return local === '' || Number.isNaN(at.getTime()) ? '' : at.toISOString()
}
