/** The first page: is every paid customer served, and if not, where to begin; then how everything stands. */
import type { ReactNode } from 'react'
import type { Answer } from '../api.ts'
import { Page } from '../components/page.tsx'
import { Read } from '../components/read.tsx'
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
  return (
    <Page title="Overview">
      <Read of={overview} lines={6}>
        {(data) => (
          <>
            <Verdict overview={data} />
            <Stages stages={stagesOf(data)} />
          </>
        )}
      </Read>
      <OverTime />
      {overview.data !== undefined && <Standing overview={overview.data} />}
    </Page>
  )
}
