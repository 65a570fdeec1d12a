/** What can be done with a subject: make it one with another, say whose a customer is, or erase it. */
import { useEffect, useState, type ReactNode } from 'react'
import { Link } from 'wouter'
import type { Answer } from '../../api.ts'
import { Acts } from '../../components/acts.tsx'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { Field } from '../../components/field.tsx'
import { Loading } from '../../components/page.tsx'
import { ProblemBanner } from '../../components/problem.tsx'
import { linkTo } from '../../links.ts'
import { go } from '../../location.ts'
import { useMay } from '../../session.tsx'
import { useAct } from '../../use-api.ts'
import { visibleText } from '../../visible-text.ts'

interface DialogProps {
  readonly subject: string
  close(): void
}

/** The buttons that the reader may press, and what they open. */
export function SubjectActs({ subject }: { subject: string }): ReactNode {
  const mayOperate = useMay('operate')
  return (
    <>
      {mayOperate && (
        <Link className="button" to={linkTo('grant', {}, { subject })}>
          Grant
        </Link>
      )}
      <Acts
        of={[
          mayOperate && {
            name: 'Link a customer',
            open: (close) => <LinkDialog subject={subject} close={close} />,
          },
          mayOperate && {
            name: 'Merge',
            open: (close) => <MergeDialog subject={subject} close={close} />,
          },
          useMay('erase') && {
            name: 'Erase',
            open: (close) => <EraseDialog subject={subject} close={close} />,
          },
        ]}
      />
    </>
  )
}

function LinkDialog({ subject, close }: DialogProps): ReactNode {
  const link = useAct('POST /customers/link')
  const [source, setSource] = useState('stripe')
  const [customer, setCustomer] = useState('')
  return (
    <ConfirmDialog
      title="Say whose a customer is"
      verb="Link"
      typed={subject}
      ready={source.trim() !== '' && customer.trim() !== ''}
      close={close}
      act={async ({ reason, confirm }) => {
        const body = {
          source: source.trim(),
          customer: customer.trim(),
          subject,
          reason,
          confirm,
          replace: false,
        }
        const { outcome } = await link.mutateAsync({ body })
        return outcome === 'linked' ? 'Linked: what waits for it goes on' : 'It was linked already'
      }}
    >
      <Field label="Source, as the configuration names it" value={source} set={setSource} />
      <Field label="Customer at the provider" value={customer} set={setCustomer} />
    </ConfirmDialog>
  )
}

function MergeDialog({ subject, close }: DialogProps): ReactNode {
  const merge = useAct('POST /subjects/{subject}/merge')
  const [into, setInto] = useState('')
  return (
    <ConfirmDialog
      title="Make it another subject, for good"
      verb="Merge"
      typed={subject}
      dangerous
      ready={into.trim() !== '' && into.trim() !== subject}
      close={close}
      act={async ({ reason, confirm }) => {
        await merge.mutateAsync({
          params: { subject },
          body: { into: into.trim(), reason, confirm },
        })
        go(linkTo('subject', { subject: into.trim() }))
        return 'Merged'
      }}
    >
      <p>What both had is asked for under one name from then on.</p>
      <Field label="Into" value={into} set={setInto} />
    </ConfirmDialog>
  )
}

type Plan = Answer<'POST /subjects/{subject}/erase/plan'>

function EraseDialog({ subject, close }: DialogProps): ReactNode {
  const plan = useAct('POST /subjects/{subject}/erase/plan')
  const erase = useAct('POST /subjects/{subject}/erase')
  const [also, setAlso] = useState('')
  const [giveUp, setGiveUp] = useState(false)
  const texts = also.split(',').flatMap((each) => (each.trim() === '' ? [] : [each.trim()]))
  const { mutateAsync: ask, data } = plan
  useEffect(() => {
    // a refusal stands in the plan's own problem
    ask({ params: { subject }, body: { also: [] } }).catch(() => {})
  }, [ask, subject])
  const blocked = data?.unfinished.filter((each) => !(giveUp && each.can_give_up)) ?? []
  return (
    <ConfirmDialog
      title="Erase this subject, for good"
      verb="Erase"
      typed={subject}
      dangerous
      ready={data !== undefined && blocked.length === 0}
      close={close}
      act={async ({ reason, confirm }) => {
        const body = { reason, confirm, also: texts, give_up: giveUp }
        const { pseudonym } = await erase.mutateAsync({ params: { subject }, body })
        go(linkTo('subject', { subject: pseudonym ?? subject }))
        return 'Erased'
      }}
    >
      <ProblemBanner problem={plan.error} />
      {data === undefined ? plan.error === null && <Loading /> : <Erasure plan={data} />}
      <Field
        label="Also stands for the same person, by commas: an address"
        value={also}
        set={setAlso}
      />
      {data?.unfinished.some((each) => each.can_give_up) === true && (
        <label className="choice">
          <input
            type="checkbox"
            checked={giveUp}
            onChange={(event) => setGiveUp(event.target.checked)}
          />
          <span>Give up what waits or is dead</span>
        </label>
      )}
    </ConfirmDialog>
  )
}

function Erasure({ plan }: { plan: Plan }): ReactNode {
  const { orders, events, bodies, evidence, requests, active, unfinished, kept_ids: kept } = plan
  return (
    <>
      <p>
        {bodies} bodies, {evidence} answers and {requests} requests of {orders} orders and {events}{' '}
        events go. Ids, hashes and decisions stay, under a pseudonym.
      </p>
      {active.length > 0 && (
        <p>
          It may use {active.map(({ entitlement }) => visibleText(entitlement)).join(', ')} now:
          nobody asks for that any more.
        </p>
      )}
      {unfinished.length > 0 && (
        <p>
          First these have to end:{' '}
          {unfinished
            .map(({ kind, id, state }) => `${kind} ${visibleText(id)} (${state})`)
            .join(', ')}
          .
        </p>
      )}
      {kept.length > 0 && (
        <p>These ids hold it themselves, and stay: {kept.map(visibleText).join(', ')}.</p>
      )}
    </>
  )
}
