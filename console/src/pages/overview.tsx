/** The first page: is every paid customer served, and if not, where to begin; then how everything stands. */
import type { ReactNode } from 'react'
import type { Answer } from '../api.ts'
import { Loading, Page } from '../components/page.tsx'
import { ProblemBanner } from '../components/problem.tsx'
import { useGet } from '../use-api.ts'
import { OverTime } from './overview/over-time.tsx'
import { stagesOf } from './overview/stages-of.ts'
import { Stages } from './overview/stages.tsx'
import { Standing } from './overview/standing.tsx'
import { Verdict } from './overview/verdict.tsx'

/** What the first page is told. */
export type Overview = Answer<'GET /overview'>

/** The page. */
export function OverviewPage(): ReactNode {
  const overview = useGet('GET /overview', {}, { refresh: 5 })
  const data = overview.data
  return (
    <Page title="Overview">
      <ProblemBanner problem={overview.error} again={() => void overview.refetch()} />
      {data === undefined ? (
        overview.error === null && <Loading lines={6} />
      ) : (
        <>
          <Verdict overview={data} />
          <Stages stages={stagesOf(data)} />
        </>
      )}
      <OverTime />
      {data !== undefined && <Standing overview={data} />}
    </Page>
  )
}
