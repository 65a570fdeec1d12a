/** The promises, each asked of the database by queries: what `hookledger audit` prints. */
import { useState, type ReactNode } from 'react'
import type { Answer } from '../api.ts'
import { Moment } from '../components/moment.tsx'
import { Loading, Page, Section } from '../components/page.tsx'
import { ProblemBanner } from '../components/problem.tsx'
import { StateBadge } from '../components/state-badge.tsx'
import { useGet } from '../use-api.ts'
import { visibleText } from '../visible-text.ts'

type Promised = Answer<'GET /promises'>['promises'][number]
type Check = Promised['checks'][number]

/** The page. */
export function PromisesPage(): ReactNode {
  const [asked, setAsked] = useState(false)
  const read = useGet('GET /promises', {}, { enabled: asked, refresh: false })
  const { data } = read
  return (
    <Page
      title="Promises"
      lead={
        data === undefined ? (
          'Every promise as queries over all that is recorded. Whole tables are read, so it is asked only when you ask.'
        ) : (
          <>
            As of <Moment at={data.asked_at} show="both" />; an answer is kept for a minute.
          </>
        )
      }
      facts={
        data && (
          <StateBadge
            state={data.holds ? 'all hold' : 'broken'}
            tone={data.holds ? 'good' : 'bad'}
          />
        )
      }
      actions={
        <button
          type="button"
          className="button primary"
          disabled={read.isFetching}
          onClick={() => (asked ? void read.refetch() : setAsked(true))}
        >
          {read.isFetching ? 'Checking…' : 'Check now'}
        </button>
      }
    >
      <ProblemBanner problem={read.error} again={() => void read.refetch()} />
      {read.isFetching && data === undefined && <Loading lines={8} />}
      {data?.promises.map((each) => (
        <PromiseSection key={each.promise} of={each} />
      ))}
    </Page>
  )
}

function PromiseSection({ of: { promise, name, holds, checks } }: { of: Promised }): ReactNode {
  return (
    <Section
      title={`${promise} ${name}`}
      aside={<StateBadge state={holds ? 'holds' : 'broken'} tone={holds ? 'good' : 'bad'} />}
    >
      <ul className="checks">
        {checks.map((each) => (
          <li key={each.check}>
            {each.says} <StateBadge quiet state={verdictOf(each)} tone={toneOf(each)} />
            {each.skipped !== null && <p className="muted">{visibleText(each.skipped)}</p>}
            {each.examples.map(({ key, detail }) => (
              <p key={key}>
                <span className="id-text">{visibleText(key)}</span>: {visibleText(detail)}
              </p>
            ))}
          </li>
        ))}
      </ul>
    </Section>
  )
}

function verdictOf({ holds, skipped, violations, known }: Check): string {
  if (skipped !== null) return 'not checked'
  if (!holds) return `${violations} broken`
  return known > 0 ? `${known} known` : 'holds'
}

function toneOf({ holds, skipped, known }: Check): 'good' | 'bad' | 'warn' {
  if (!holds) return 'bad'
  return skipped !== null || known > 0 ? 'warn' : 'good'
}
