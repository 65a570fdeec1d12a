/** An address that leads nowhere. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { EmptyState } from '../components/empty-state.tsx'
import { Page } from '../components/page.tsx'
import { linkTo } from '../links.ts'

/** Tells it, and where to look. */
export function NotFoundPage(): ReactNode {
  return (
    <Page title="No such page">
      <EmptyState title="Nothing stands at this address">
        Search for an id above, or go to the <Link to={linkTo('overview')}>overview</Link>.
      </EmptyState>
    </Page>
  )
}
