/** Failures, told where they happened: what failed, its code, what to do next. */
import type { ReactNode } from 'react'
import { Problem } from '../problem.ts'
import { Icon } from './icons.tsx'

/** A banner for a failed reading or act. `again` offers to try once more. */
export function ProblemBanner({
  problem,
  again,
}: {
  problem: Error | null | undefined
  again?: (() => void) | undefined
}): ReactNode {
  if (problem === null || problem === undefined) return null
  const code = problem instanceof Problem ? problem.code : 'HKL_CONSOLE_FAULT'
  const slow = code === 'HKL_API_TOO_SLOW'
  return (
    <div className="banner" data-tone={slow ? 'warn' : 'bad'} role="alert">
      <Icon name={slow ? 'clock' : 'alert'} />
      <div className="banner-text">
        <strong>{slow ? 'This took too long and was stopped. ' : headOf(problem)}</strong>
        {problem.message} <code className="muted">{code}</code>
      </div>
      {again !== undefined && (
        <button type="button" className="button small" onClick={again}>
          Try again
        </button>
      )}
    </div>
  )
}

function headOf(problem: Error): string {
  if (!(problem instanceof Problem)) return 'This page failed. '
  switch (problem.status) {
    case 0:
      return 'No answer. '
    case 403:
      return 'You may not do this. '
    case 404:
      return 'There is no such thing. '
    case 409:
      return 'It changed in the meantime. '
    case 429:
      return 'Too many requests. '
    case 503:
      return 'The database does not answer. '
    default:
      return ''
  }
}
