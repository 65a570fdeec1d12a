/** What went wrong, as the page tells it: a code, what to do next, and whether trying again can help. */

/** Every failed request of the page becomes one of these. */
export class Problem extends Error {
  /** Of the error catalogue, or `HKL_CONSOLE_UNREACHABLE` where no answer came at all. */
  readonly code: string
  /** The HTTP status; 0 without an answer. */
  readonly status: number

  constructor(status: number, code: string, message: string) {
    super(message)
    this.name = 'Problem'
    this.status = status
    this.code = code
  }
}

/** Reads `{ error: { code, message } }`; anything else becomes a problem of the answer's status. */
export function problemOf(status: number, answer: unknown): Problem {
  const error = isRecord(answer) ? answer['error'] : undefined
  if (
    isRecord(error) &&
    typeof error['code'] === 'string' &&
    typeof error['message'] === 'string'
  ) {
    return new Problem(status, error['code'], error['message'])
  }
  return new Problem(
    status,
    'HKL_CONSOLE_UNREACHABLE',
    `The server answered ${status} with something that is not its API: look at what stands between (a proxy, a login page) and load again.`,
  )
}

/** No answer at all. */
export function unreachable(): Problem {
  return new Problem(
    0,
    'HKL_CONSOLE_UNREACHABLE',
    'The server does not answer. What you see is what was read before; it is read again by itself.',
  )
}

/** Whether the same request can succeed later without anybody doing something. */
export function isPassing(problem: unknown): boolean {
  return (
    problem instanceof Problem &&
    (problem.status === 0 || problem.status === 429 || problem.status >= 502)
  )
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
