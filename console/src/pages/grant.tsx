/** Gives something away: access without a payment, by whom and why. */
import { useState } from 'react'
import type { ReactNode } from 'react'
import { ConfirmDialog } from '../components/confirm-dialog.tsx'
import { Field } from '../components/field.tsx'
import { Page, Section } from '../components/page.tsx'
import { linkTo } from '../links.ts'
import { go, useUrlQuery } from '../location.ts'
import { useMay } from '../session.tsx'
import { useAct } from '../use-api.ts'
import { visibleText } from '../visible-text.ts'

/** The page. */
export function GrantPage(): ReactNode {
  const { values } = useUrlQuery()
  const [subject, setSubject] = useState(values['subject'] ?? '')
  const [entitlement, setEntitlement] = useState('')
  const [quantity, setQuantity] = useState('1')
  const [until, setUntil] = useState('')
  const [asking, setAsking] = useState(false)
  // one form is one grant, however often its button is pressed
  const [id, setId] = useState(() => crypto.randomUUID() as string)
  const give = useAct('POST /grants')
  const isComplete =
    subject.trim() !== '' && entitlement.trim() !== '' && /^[1-9]\d{0,8}$/.test(quantity)
  if (!useMay('operate'))
    return <Page title="Grant">Only an operator may give something away.</Page>
  return (
    <Page
      title="Grant"
      lead="Access that nobody paid for: an apology, a trial, a colleague. It is an order of its own, and ends when you end it."
    >
      <Section title="Who gets what">
        <form
          className="columns"
          onSubmit={(event) => {
            event.preventDefault()
            if (isComplete) setAsking(true)
          }}
        >
          <Field label="Subject" hint="user:42" value={subject} set={setSubject} />
          <Field label="May use" hint="pro" value={entitlement} set={setEntitlement} />
          <Field label="How many" hint="1" value={quantity} set={setQuantity} />
          <Field
            label="Until (left open: until it is ended)"
            type="datetime-local"
            value={until}
            set={setUntil}
          />
          <button type="submit" className="button primary" disabled={!isComplete}>
            Grant…
          </button>
        </form>
      </Section>
      {asking && (
        <ConfirmDialog
          title={`Grant ${entitlement.trim()} to ${subject.trim()}`}
          verb="Grant"
          dangerous
          typed={subject.trim()}
          close={() => setAsking(false)}
          act={async ({ reason, confirm }) => {
            const given = await give.mutateAsync({
              body: {
                id,
                subject: subject.trim(),
                entitlements: [{ entitlement: entitlement.trim(), quantity: Number(quantity) }],
                until: until === '' ? null : new Date(until).toISOString(),
                reason,
                confirm,
              },
            })
            setId(crypto.randomUUID())
            go(linkTo('order', { order_id: given.order_id }))
            return 'Granted'
          }}
        >
          <p>
            {visibleText(subject.trim())} may use {visibleText(entitlement.trim())} from this moment
            on.
          </p>
        </ConfirmDialog>
      )}
    </Page>
  )
}
