/** What can be done about a finding: repair it, give it to somebody, or say that it is fine. */
import { useState, type ReactNode } from 'react'
import { Acts } from '../../components/acts.tsx'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { Field } from '../../components/field.tsx'
import { useMay } from '../../session.tsx'
import { useAct } from '../../use-api.ts'
import { RepairDialog } from './repair.tsx'

/** A finding, as far as acts need it. */
export interface ActedFinding {
  readonly finding_id: string
  readonly state: string
  readonly owner: string
}

type Open = 'repair' | 'assign' | 'dismiss'

/** The buttons that the reader may press, and what they open. */
export function FindingActs({
  finding,
  allowed,
}: {
  finding: ActedFinding
  /** What its state permits. */
  allowed: readonly Open[]
}): ReactNode {
  const mayOperate = useMay('operate')
  const can = (act: Open): boolean => mayOperate && allowed.includes(act)
  return (
    <Acts
      of={[
        can('assign') && {
          name: 'Assign',
          open: (close) => <AssignDialog finding={finding} close={close} />,
        },
        can('dismiss') && {
          name: 'Dismiss',
          open: (close) => <DismissDialog finding={finding} close={close} />,
        },
        can('repair') && {
          name: 'Plan a repair',
          primary: true,
          open: (close) => <RepairDialog id={finding.finding_id} close={close} />,
        },
      ]}
    />
  )
}

interface DialogProps {
  readonly finding: ActedFinding
  close(): void
}

function AssignDialog({ finding, close }: DialogProps): ReactNode {
  const assign = useAct('POST /findings/{finding_id}/assign')
  const [owner, setOwner] = useState(finding.owner)
  return (
    <ConfirmDialog
      title="Assign this finding"
      verb="Assign"
      ready={owner.trim() !== '' && owner.trim() !== finding.owner}
      close={close}
      act={async ({ reason }) => {
        const body = { owner: owner.trim(), reason }
        await assign.mutateAsync({ params: { finding_id: finding.finding_id }, body })
        return `It is ${owner.trim()}’s now`
      }}
    >
      <Field label="Owner" value={owner} set={setOwner} />
    </ConfirmDialog>
  )
}

/** Days that a dismissal can last: afterwards the finding is open again if both sides still differ. */
const days = [1, 7, 30, 90]

function DismissDialog({ finding, close }: DialogProps): ReactNode {
  const dismiss = useAct('POST /findings/{finding_id}/dismiss')
  const [chosen, setChosen] = useState(7)
  return (
    <ConfirmDialog
      title="Dismiss this finding"
      verb="Dismiss"
      close={close}
      act={async ({ reason }) => {
        const until = new Date(Date.now() + chosen * 86_400_000).toISOString()
        const params = { finding_id: finding.finding_id }
        await dismiss.mutateAsync({ params, body: { until, reason } })
        return 'Dismissed: other figures open it again'
      }}
    >
      <p>
        It is fine as it is. Other figures open it again at once; the same ones after this time.
      </p>
      <label className="field">
        <span>For</span>
        <select value={chosen} onChange={(event) => setChosen(Number(event.target.value))}>
          {days.map((each) => (
            <option key={each} value={each}>
              {each === 1 ? '1 day' : `${each} days`}
            </option>
          ))}
        </select>
      </label>
    </ConfirmDialog>
  )
}
