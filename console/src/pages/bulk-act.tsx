/** One bulk act: what it touches, how far it is, what failed and why; start it, approve it, stop it. */
import { useState } from 'react'
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Answer, ItemOf } from '../api.ts'
import { ConfirmDialog } from '../components/confirm-dialog.tsx'
import type { Column } from '../components/data-table.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import { JsonView } from '../components/json-view.tsx'
import { ListView } from '../components/list-view.tsx'
import { Moment } from '../components/moment.tsx'
import { Facts, Loading, Page, Section } from '../components/page.tsx'
import { ProblemBanner } from '../components/problem.tsx'
import { StateBadge } from '../components/state-badge.tsx'
import { countOf, groupedText } from '../figures.ts'
import { linkOf } from '../links.ts'
import type { PageProps } from '../routes.tsx'
import { useMay, useSession } from '../session.tsx'
import { useAct, useGet } from '../use-api.ts'
import { visibleText } from '../visible-text.ts'
import { sentence, wordsOf } from '../words.ts'

type Bulk = Answer<'GET /bulk/{bulk_id}'>
type Item = ItemOf<'GET /bulk/{bulk_id}/items'>

const columns: readonly Column<Item>[] = [
  { head: '#', align: 'end', cell: (item) => item.number },
  { head: 'What', wide: true, cell: (item) => <Reference of={item} /> },
  { head: 'Was', spare: true, cell: (item) => wordsOf(item.was) },
  { head: 'Became', cell: (item) => <StateBadge quiet state={item.state} /> },
  {
    head: 'Said',
    wide: true,
    cell: ({ code, message }) =>
      code === null && message === null ? (
        <span className="none">—</span>
      ) : (
        <span className="wraps">
          {code !== null && <code>{code} </code>}
          {visibleText(message ?? '')}
        </span>
      ),
  },
  { head: 'When', align: 'end', cell: (item) => <Moment at={item.answered_at} /> },
]

function Reference({ of: { reference, title } }: { of: Item }): ReactNode {
  const to = reference === null ? null : linkOf(reference.kind, reference.id)
  return to === null ? <>{visibleText(title)}</> : <Link to={to}>{visibleText(title)}</Link>
}

/** The page. */
export function BulkActPage({ params }: PageProps): ReactNode {
  const id = params['bulk_id'] ?? ''
  const read = useGet('GET /bulk/{bulk_id}', { params: { bulk_id: id } }, { refresh: 2 })
  const bulk = read.data
  return (
    <Page
      title={
        bulk === undefined ? 'Bulk act' : `${sentence(bulk.act)} ${countOf(bulk.count, 'thing')}`
      }
      kind="Bulk act"
      {...(bulk && { facts: <StateBadge state={bulk.state} />, actions: <Buttons of={bulk} /> })}
    >
      <ProblemBanner problem={read.error} again={() => void read.refetch()} />
      {bulk === undefined ? (
        read.error === null && <Loading />
      ) : (
        <>
          <Progress of={bulk} />
          <div className="columns">
            <Section title="The plan">
              <Facts
                of={[
                  ['Planned by', visibleText(bulk.actor)],
                  ['Why', visibleText(bulk.reason)],
                  ['Planned', <Moment key="p" at={bulk.planned_at} show="both" />],
                  ['Started', <Moment key="s" at={bulk.started_at} show="both" />],
                  ['Ended', <Moment key="e" at={bulk.finished_at} show="both" />],
                  ['Second person', approvalText(bulk)],
                ]}
              />
            </Section>
            <Section title="On what">
              <JsonView
                value={{ filter: bulk.filter, details: bulk.details }}
                label="filter"
                open={3}
              />
            </Section>
          </div>
          <Section title="One by one" flush>
            <ListView
              route="GET /bulk/{bulk_id}/items"
              label="Items"
              params={{ bulk_id: id }}
              columns={columns}
              filters={[
                {
                  kind: 'choice',
                  name: 'state',
                  label: 'Became',
                  choices: ['pending', 'done', 'unchanged', 'failed'],
                },
              ]}
              keyOf={(item) => String(item.number)}
              empty={<EmptyState title="It touches nothing">Nothing fitted the filter.</EmptyState>}
            />
          </Section>
        </>
      )}
    </Page>
  )
}

function approvalText(bulk: Bulk): ReactNode {
  if (bulk.approved_by !== null) return `approved by ${visibleText(bulk.approved_by)}`
  return bulk.needs_approval ? 'must approve it' : 'not asked for'
}

function Progress({ of: bulk }: { of: Bulk }): ReactNode {
  const ended = bulk.count - bulk.pending
  return (
    <div className="bulk-progress">
      <progress max={Math.max(1, bulk.count)} value={ended} aria-label="Progress" />
      <p role="status">
        {groupedText(ended)} of {groupedText(bulk.count)}: {groupedText(bulk.done)} done,{' '}
        {groupedText(bulk.unchanged)} unchanged, {groupedText(bulk.failed)} failed
      </p>
    </div>
  )
}

type Choice = 'start' | 'approve' | 'reject' | 'cancel'

const words: Readonly<Record<Choice, { readonly verb: string; readonly says: string }>> = {
  start: { verb: 'Start', says: 'Each of them is done by itself, and recorded by itself.' },
  approve: { verb: 'Approve', says: 'It begins as soon as you have approved it.' },
  reject: { verb: 'Reject', says: 'Nothing was done, and nothing will be.' },
  cancel: { verb: 'Cancel', says: 'What was done stays done; the rest is left as it is.' },
}

function Buttons({ of: bulk }: { of: Bulk }): ReactNode {
  const [chosen, setChosen] = useState<Choice | null>(null)
  const session = useSession()
  const mayOperate = useMay('operate')
  const mayApprove = useMay('approve') && session.actor !== bulk.actor
  const offered: readonly Choice[] = [
    // whoever plans starts
    ...(mayOperate && bulk.state === 'planned' && session.actor === bulk.actor
      ? (['start'] as const)
      : []),
    ...(mayApprove && bulk.state === 'waiting_approval' ? (['approve', 'reject'] as const) : []),
    ...(mayOperate && ['planned', 'waiting_approval', 'running'].includes(bulk.state)
      ? (['cancel'] as const)
      : []),
  ]
  return (
    <>
      {offered.map((each) => (
        <button
          key={each}
          type="button"
          className={each === 'start' || each === 'approve' ? 'button primary' : 'button'}
          onClick={() => setChosen(each)}
        >
          {words[each].verb}
        </button>
      ))}
      {chosen !== null && <Confirm of={bulk} choice={chosen} close={() => setChosen(null)} />}
    </>
  )
}

function Confirm({
  of: bulk,
  choice,
  close,
}: {
  of: Bulk
  choice: Choice
  close(): void
}): ReactNode {
  const start = useAct('POST /bulk/{bulk_id}/start')
  const approve = useAct('POST /bulk/{bulk_id}/approve')
  const reject = useAct('POST /bulk/{bulk_id}/reject')
  const cancel = useAct('POST /bulk/{bulk_id}/cancel')
  const moves = choice === 'start' || choice === 'approve'
  const params = { bulk_id: bulk.bulk_id }
  return (
    <ConfirmDialog
      title={`${words[choice].verb}: ${bulk.act} ${countOf(bulk.count, 'thing')}`}
      verb={`${words[choice].verb} it`}
      dangerous={moves}
      {...(moves && { typed: bulk.confirm })}
      close={close}
      act={async ({ reason, confirm }) => {
        if (choice === 'start') await start.mutateAsync({ params, body: { reason, confirm } })
        else if (choice === 'approve')
          await approve.mutateAsync({ params, body: { reason, confirm } })
        else if (choice === 'reject') await reject.mutateAsync({ params, body: { reason } })
        else await cancel.mutateAsync({ params, body: { reason } })
      }}
    >
      <p>{words[choice].says}</p>
    </ConfirmDialog>
  )
}
