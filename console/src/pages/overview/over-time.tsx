/** What came, what became of it and what failed, over an hour, a day or a week. */
import { useMemo, type ReactNode } from 'react'
import { Chart, type Series } from '../../components/chart.tsx'
import { Loading, Section } from '../../components/page.tsx'
import { ProblemBanner } from '../../components/problem.tsx'
import { useUrlQuery } from '../../location.ts'
import { useGet } from '../../use-api.ts'

const windows = ['1h', '24h', '7d'] as const
const names = { '1h': 'Hour', '24h': 'Day', '7d': 'Week' } as const

/** The charts; the window is in the address. */
export function OverTime(): ReactNode {
  const { values, set } = useUrlQuery()
  const chosen = windows.find((each) => each === values['window']) ?? '1h'
  const series = useGet('GET /overview/series', { query: { window: chosen } }, { refresh: 10 })
  const buckets = series.data?.buckets
  const charts = useMemo(() => (buckets === undefined ? null : chartsOf(buckets)), [buckets])
  return (
    <Section
      title="Over time"
      aside={
        <div className="segments" role="group" aria-label="Window">
          {windows.map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={each === chosen}
              onClick={() => set({ window: each === '1h' ? null : each })}
            >
              {names[each]}
            </button>
          ))}
        </div>
      }
    >
      <ProblemBanner problem={series.error} again={() => void series.refetch()} />
      {charts === null ? (
        series.error === null && <Loading lines={6} />
      ) : (
        <div className="charts">
          <Chart
            label={`Came in, last ${names[chosen]}`}
            times={charts.times}
            series={charts.came}
          />
          <Chart
            label={`Sent and failed, last ${names[chosen]}`}
            times={charts.times}
            series={charts.went}
          />
        </div>
      )}
    </Section>
  )
}

interface Bucket {
  readonly at: string
  readonly received: number
  readonly decided: number
  readonly duplicates: number
  readonly failed: number
  readonly sent: number
}

function chartsOf(buckets: readonly Bucket[]): {
  times: readonly number[]
  came: readonly Series[]
  went: readonly Series[]
} {
  const of = (key: Exclude<keyof Bucket, 'at'>): number[] => buckets.map((bucket) => bucket[key])
  return {
    times: buckets.map(({ at }) => Date.parse(at)),
    came: [
      { name: 'Received', tone: 'accent', values: of('received') },
      { name: 'Decided', tone: 'ink', values: of('decided') },
      { name: 'Duplicates absorbed', tone: 'quiet', values: of('duplicates') },
    ],
    went: [
      { name: 'Sent', tone: 'accent', values: of('sent') },
      { name: 'Failed', tone: 'bad', values: of('failed') },
    ],
  }
}
