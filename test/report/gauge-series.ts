/** The figures of the database as one record: `name label` → value. */
import type { Database } from '../../src/postgres/executor.ts'
import { gauges } from '../../src/report/gauges.ts'

export async function seriesOf(db: Database): Promise<Readonly<Record<string, number>>> {
  const families = await gauges(db)
  return Object.fromEntries(
    families.flatMap(({ name, values }) =>
      values.map(({ labels, value }) => [[name, ...labels].join(' '), value]),
    ),
  )
}
