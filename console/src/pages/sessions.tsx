/** Who is signed in, and how to end it. */
import { useState } from 'react'
import type { ReactNode } from 'react'
import type { ItemOf } from '../api.ts'
import { Dialog } from '../components/confirm-dialog.tsx'
import { DataTable, type Column } from '../components/data-table.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import { Moment } from '../components/moment.tsx'
import { Loading, Page } from '../components/page.tsx'
import { ProblemBanner } from '../components/problem.tsx'
import { Tag } from '../components/state-badge.tsx'
import { useAct, useGet } from '../use-api.ts'
import { visibleText } from '../visible-text.ts'

type Session = ItemOf<'GET /sessions'>

/** The page. */
export function SessionsPage(): ReactNode {
  const read = useGet('GET /sessions', {})
  const [ending, setEnding] = useState<Session | null>(null)
  const columns: readonly Column<Session>[] = [
    { head: 'Who', wide: true, cell: (each) => visibleText(each.actor) },
    { head: 'Roles', cell: (each) => each.roles.map((role) => <Tag key={role}>{role}</Tag>) },
    { head: 'Last seen', align: 'end', cell: (each) => <Moment at={each.last_seen_at} /> },
    { head: 'Began', align: 'end', spare: true, cell: (each) => <Moment at={each.began_at} /> },
    { head: 'Ends', align: 'end', cell: (each) => <Moment at={each.expires_at} /> },
    {
      head: 'Act',
      cell: (each) => (
        <button type="button" className="button small" onClick={() => setEnding(each)}>
          End
        </button>
      ),
    },
  ]
  const rows = read.data?.items
  return (
    <Page title="Sessions" lead="Who is signed in to this console.">
      <ProblemBanner problem={read.error} again={() => void read.refetch()} />
      {rows === undefined ? (
        read.error === null && <Loading />
      ) : rows.length === 0 ? (
        <EmptyState title="There are no sessions here">
          Sessions are kept where people sign in by OpenID Connect. Where the app says who asks, or
          only this machine can, there are none to end.
        </EmptyState>
      ) : (
        <DataTable
          label="Sessions"
          columns={columns}
          rows={rows}
          keyOf={(each) => each.session_id}
        />
      )}
      {ending !== null && <EndDialog of={ending} close={() => setEnding(null)} />}
    </Page>
  )
}

function EndDialog({ of, close }: { of: Session; close(): void }): ReactNode {
  const end = useAct('POST /sessions/{session_id}/end')
  return (
    <Dialog title={`End the session of ${of.actor}`} close={close}>
      <p>Their next request is answered with the way in. What they did stays.</p>
      <ProblemBanner problem={end.error} />
      <div className="dialog-buttons">
        <button type="button" className="button" onClick={close}>
          Cancel
        </button>
        <button
          type="button"
          className="button danger"
          disabled={end.isPending}
          onClick={() =>
            void end.mutateAsync({ params: { session_id: of.session_id } }).then(close, () => {})
          }
        >
          End it
        </button>
      </div>
    </Dialog>
  )
}
