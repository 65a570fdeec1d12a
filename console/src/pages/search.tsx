/** What an id or a name leads to. The only thing of that very name is gone to at once. */
import { useEffect, type ReactNode } from 'react'
import { Link } from 'wouter'
import { EmptyState } from '../components/empty-state.tsx'
import { Loading, Page } from '../components/page.tsx'
import { ProblemBanner } from '../components/problem.tsx'
import { Tag } from '../components/state-badge.tsx'
import { linkOf } from '../links.ts'
import { go, useUrlQuery } from '../location.ts'
import { useGet } from '../use-api.ts'
import { visibleText } from '../visible-text.ts'
import { wordsOf } from '../words.ts'

/** The page. */
export function SearchPage(): ReactNode {
  const { values } = useUrlQuery()
  const asked = (values['q'] ?? '').trim()
  const found = useGet(
    'GET /search',
    { query: { q: asked } },
    { enabled: asked !== '', refresh: false },
  )
  const items = found.data?.items ?? []
  const exact = items.filter(({ id, title }) => id === asked || title === asked)
  const [only] = items.length === 1 ? items : exact.length === 1 ? exact : []
  const to = only === undefined ? null : linkOf(only.kind, only.id)
  useEffect(() => {
    if (to !== null && !found.isPlaceholderData) go(to, { replace: true })
  }, [to, found.isPlaceholderData])
  return (
    <Page
      title="Search"
      heading={asked === '' ? 'Search' : <>What “{visibleText(asked)}” leads to</>}
    >
      <ProblemBanner problem={found.error} again={() => void found.refetch()} />
      {asked === '' ? (
        <HowToSearch />
      ) : found.data === undefined ? (
        found.error === null && <Loading />
      ) : items.length === 0 ? (
        <EmptyState title="Nothing here goes by that name">
          Ids are exact: whole, with their capitals. A payment, charge, session or subscription is
          found by the id that the provider gave it, once an event has told which order it belongs
          to.
        </EmptyState>
      ) : (
        <ul className="hits">
          {items.map((hit) => (
            <Hit key={`${hit.kind} ${hit.id}`} {...hit} />
          ))}
        </ul>
      )}
    </Page>
  )
}

function Hit({
  kind,
  id,
  title,
  where,
}: {
  kind: string
  id: string
  title: string
  where: string
}): ReactNode {
  const to = linkOf(kind, id)
  const text = <span className="hit-title">{visibleText(title)}</span>
  return (
    <li className="hit">
      <Tag>{wordsOf(kind)}</Tag>
      {to === null ? (
        text
      ) : (
        <Link to={to} className="row-link">
          {text}
        </Link>
      )}
      <span className="muted">{visibleText(where)}</span>
    </li>
  )
}

function HowToSearch(): ReactNode {
  return (
    <EmptyState title="Type an id of any kind">
      An order, a customer or their email, an event, a payment intent or charge, an operation, a
      finding. Press <kbd>/</kbd> from anywhere to come back to the box.
    </EmptyState>
  )
}
