/** What was decided of an event, why, and from which evidence. */
import type { ReactNode } from 'react'
import { JsonView } from '../../components/json-view.tsx'
import { Moment } from '../../components/moment.tsx'
import { Section } from '../../components/page.tsx'
import { StateBadge, Tag } from '../../components/state-badge.tsx'
import { visibleText } from '../../visible-text.ts'
import type { EventRecord } from '../event.tsx'

type Decision = EventRecord['decisions'][number]

/** The decisions, the last one first: a deferral is followed by what it led to. */
export function Decisions({ decisions }: { decisions: readonly Decision[] }): ReactNode {
  return (
    <Section title={decisions.length === 1 ? 'The decision' : 'Decisions'}>
      {decisions.toReversed().map((decision) => (
        <article key={decision.decision_id} className="decision">
          <p className="decision-head">
            <StateBadge state={decision.kind} />
            {decision.to_state !== null && <strong>{movement(decision)}</strong>}
            {decision.final && <Tag>final</Tag>}
            <span className="muted">
              <Moment at={decision.decided_at} show="both" />
            </span>
          </p>
          <p>because {visibleText(decision.reason)}</p>
          <p className="muted">
            decision {decision.decision_id} by {visibleText(decision.actor)}
            {decision.workflow_version !== null && `, version ${decision.workflow_version}`}
            {decision.attempts > 1 && `, attempt ${decision.attempts}`}
          </p>
          {hasFields(decision.evidence) && (
            <details className="more">
              <summary>Evidence</summary>
              <JsonView value={decision.evidence} label="evidence" open={3} />
            </details>
          )}
        </article>
      ))}
    </Section>
  )
}

function movement({ from_state: from, to_state: to }: Decision): string {
  if (from === null) return to ?? ''
  return from === to ? `stays ${to}` : `${from} → ${to}`
}

function hasFields(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}
