/** What is not finished about an order, and what it was asked to do and did not. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { Moment } from '../../components/moment.tsx'
import { Section } from '../../components/page.tsx'
import { StateBadge } from '../../components/state-badge.tsx'
import { linkOf, linkTo } from '../../links.ts'
import { visibleText } from '../../visible-text.ts'
import type { OrderRecord } from '../order.tsx'

/** What asks for a person comes first, as the API sorts it. */
export function OpenThings({ open }: { open: OrderRecord['open'] }): ReactNode {
  return (
    <Section title="Open" flush>
      <ul className="rows">
        {open.map(({ about, text, at, asks }, index) => {
          const to = about === null ? null : linkOf(about.kind, about.id)
          return (
            <li key={index}>
              <StateBadge
                state={asks ? 'asks for you' : 'goes on by itself'}
                tone={asks ? 'bad' : 'busy'}
              />
              {to === null ? (
                <span>{visibleText(text)}</span>
              ) : (
                <Link to={to} className="row-link">
                  {visibleText(text)}
                </Link>
              )}
              {at !== null && (
                <span className="muted">
                  {asks ? 'due' : 'next'} <Moment at={at} />
                </span>
              )}
            </li>
          )
        })}
      </ul>
    </Section>
  )
}

/** Transitions that were refused, or wait, and why. */
export function Refused({ refused }: { refused: OrderRecord['refused'] }): ReactNode {
  return (
    <Section title="Refused, and why" flush>
      <ul className="rows">
        {refused.map((each) => (
          <li key={each.decision_id}>
            <StateBadge state={each.verdict} tone={each.verdict === 'refused' ? 'bad' : 'warn'} />
            <span>
              {each.to_state !== null && (
                <strong>
                  {visibleText(each.from_state ?? 'not opened')} → {visibleText(each.to_state)}
                  :{' '}
                </strong>
              )}
              {visibleText(each.reason)}
            </span>
            <span className="muted">
              <Moment at={each.at} show="both" />
              {each.event !== null && (
                <>
                  {' '}
                  <Link to={linkOf(each.event.kind, each.event.id) ?? ''}>
                    {visibleText(each.event_type ?? 'event')}
                  </Link>
                </>
              )}
              {each.finding_ids.map((id) => (
                <span key={id}>
                  {' '}
                  <Link to={linkTo('finding', { finding_id: id })}>finding</Link>
                </span>
              ))}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  )
}
