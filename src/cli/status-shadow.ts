/** What `hookledger status` says of workflows in shadow. */
import type { ShadowStatus } from '../report/shadow.ts'
import { plural, relative } from './table.ts'

/** What is in shadow, and how the last comparison came out; empty where nothing is. */
export function shadowText(status: ShadowStatus | null): string[] {
  if (status === null) return []
  const names = status.workflows.map(({ workflow, since }) => `${workflow} (${relative(since)})`)
  const { last } = status
  const compared =
    last === null
      ? 'not compared yet'
      : `${plural(last.differences, 'difference')} in ${plural(last.subjects, 'subject')}, compared ${relative(last.compared_at)}`
  return ['', `in shadow: ${names.join(', ')}; ${compared}: hookledger shadow list`]
}
