/** Plans a bulk act: which act, on what, and why. Nothing happens by it but that it is counted. */
import { useState } from 'react'
import type { ReactNode } from 'react'
import type { Input } from '../../api.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { linkTo } from '../../links.ts'
import { go } from '../../location.ts'
import { useAct } from '../../use-api.ts'
import { sentence, wordsOf } from '../../words.ts'

const acts = ['replay', 'retry', 'discard', 'assign', 'dismiss', 'repair'] as const
type Act = (typeof acts)[number]

interface Field {
  readonly name: string
  readonly label: string
  readonly hint?: string
  /** A list of texts, separated by commas, of which only these are known. */
  readonly of?: readonly string[]
  readonly type?: 'datetime-local' | 'checkbox'
}

const events: readonly Field[] = [
  { name: 'states', label: 'In state', of: ['dead', 'deferred', 'delayed', 'ignored'] },
  { name: 'types', label: 'Of type', hint: 'refund.created, invoice.paid' },
  { name: 'source', label: 'From source', hint: 'stripe' },
  { name: 'from', label: 'Received from', type: 'datetime-local' },
  { name: 'to', label: 'Until', type: 'datetime-local' },
]
const operations: readonly Field[] = [
  { name: 'states', label: 'In state', of: ['dead', 'uncertain'] },
  { name: 'destination', label: 'Destination', hint: 'email' },
  { name: 'order_id', label: 'Order' },
  { name: 'from', label: 'Recorded from', type: 'datetime-local' },
  { name: 'to', label: 'Until', type: 'datetime-local' },
]
const findings: readonly Field[] = [
  { name: 'states', label: 'In state', of: ['open', 'repairing', 'dismissed'] },
  { name: 'kind', label: 'Kind', hint: 'event_missing' },
  { name: 'class', label: 'Class', hint: 'lag or contradiction' },
  { name: 'owner', label: 'Owner' },
  { name: 'order_id', label: 'Order' },
  { name: 'overdue', label: 'Overdue only', type: 'checkbox' },
]

const forms: Readonly<
  Record<
    Act,
    { readonly filter: readonly Field[]; readonly details: readonly Field[]; readonly what: string }
  >
> = {
  replay: { filter: events, details: [], what: 'Events go the same path again.' },
  retry: { filter: operations, details: [], what: 'Operations are tried again.' },
  discard: {
    filter: operations,
    details: [],
    what: 'Operations are given up: they will never be sent.',
  },
  assign: {
    filter: findings,
    details: [{ name: 'owner', label: 'New owner', hint: 'billing' }],
    what: 'Findings get another owner.',
  },
  dismiss: {
    filter: findings,
    details: [{ name: 'until', label: 'Until', type: 'datetime-local' }],
    what: 'Findings are said to be fine as they are, until a day.',
  },
  repair: {
    filter: findings,
    details: [{ name: 'choice', label: 'Choice, where there are several', hint: 'provider' }],
    what: 'Each finding gets a fresh plan, and it is applied.',
  },
}

type Values = Readonly<Record<string, string>>

/** The dialog. */
export function PlanDialog({ close }: { close(): void }): ReactNode {
  const [act, setAct] = useState<Act>('replay')
  const [filter, setFilter] = useState<Values>({})
  const [details, setDetails] = useState<Values>({})
  // one form is one plan, however often its button is pressed
  const [bulkId] = useState(() => crypto.randomUUID())
  const plan = useAct('POST /bulk')
  const form = forms[act]
  const choose = (next: Act): void => {
    setAct(next)
    setFilter({})
    setDetails({})
  }
  const missing =
    (act === 'assign' || act === 'dismiss') && form.details.some(({ name }) => !details[name])
  return (
    <ConfirmDialog
      title="Plan a bulk act"
      verb="Plan it"
      ready={!missing}
      wide
      close={close}
      act={async ({ reason }) => {
        const body = {
          bulk_id: bulkId,
          reason,
          act,
          filter: sent(form.filter, filter),
          ...(form.details.length > 0 && { details: sent(form.details, details) }),
        } as unknown as Input<'POST /bulk'>['body']
        const { count } = await plan.mutateAsync({ body } as Input<'POST /bulk'>)
        go(linkTo('bulk_act', { bulk_id: bulkId }))
        return `Planned: ${count} would be touched. Nothing has happened yet.`
      }}
    >
      <label className="field">
        <span>Act</span>
        <select value={act} onChange={(event) => choose(event.target.value as Act)}>
          {acts.map((each) => (
            <option key={each} value={each}>
              {sentence(each)}
            </option>
          ))}
        </select>
      </label>
      <p>{form.what} An empty field fits everything.</p>
      <Fields of={form.filter} values={filter} set={setFilter} />
      <Fields of={form.details} values={details} set={setDetails} />
    </ConfirmDialog>
  )
}

function Fields({
  of,
  values,
  set,
}: {
  of: readonly Field[]
  values: Values
  set(values: Values): void
}): ReactNode {
  if (of.length === 0) return null
  return (
    <div className="columns">
      {of.map(({ name, label, hint, of: choices, type }) => (
        <label key={name} className={type === 'checkbox' ? 'choice' : 'field'}>
          <span>{label}</span>
          {choices === undefined ? (
            <input
              type={type ?? 'text'}
              value={type === 'checkbox' ? undefined : (values[name] ?? '')}
              checked={type === 'checkbox' ? values[name] === 'true' : undefined}
              placeholder={hint}
              maxLength={512}
              onChange={({ target }) =>
                set({
                  ...values,
                  [name]: type === 'checkbox' ? String(target.checked) : target.value,
                })
              }
            />
          ) : (
            <select
              value={values[name] ?? ''}
              onChange={({ target }) => set({ ...values, [name]: target.value })}
            >
              <option value="">any of them</option>
              {choices.map((each) => (
                <option key={each} value={each}>
                  {wordsOf(each)}
                </option>
              ))}
            </select>
          )}
        </label>
      ))}
    </div>
  )
}

/** What the fields hold, as the API takes it; empty ones are left out. */
function sent(fields: readonly Field[], values: Values): Readonly<Record<string, unknown>> {
  const given = fields.flatMap(({ name, type }): [string, unknown][] => {
    const value = (values[name] ?? '').trim()
    if (value === '' || value === 'false') return []
    if (type === 'checkbox') return [[name, true]]
    if (type === 'datetime-local') return [[name, new Date(value).toISOString()]]
    if (name === 'states' || name === 'types')
      return [
        [
          name,
          value
            .split(',')
            .map((each) => each.trim())
            .filter((each) => each !== ''),
        ],
      ]
    return [[name, value]]
  })
  return Object.fromEntries(given)
}
