/**
 * Configuration is read at import, often where nothing will be sent. A destination with a bad option is
 * made all the same: it carries its problem, at which the start stops, and sends nothing.
 */
import { HookledgerError } from '../../core/errors.ts'
import type { Destination } from '../destination.ts'
import { defaultContract } from '../destination.ts'

/** The destination, or one that carries its problem and encodes and calls nothing. */
export function withDeferredProblem<Body>(
  kind: string,
  make: () => Destination<Body>,
): Destination<Body> {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof HookledgerError)) throw error
    const problem = error.message
    return Object.freeze({
      kind,
      contract: defaultContract,
      problem,
      encode: () => {
        throw error
      },
      call: () => Promise.resolve({ kind: 'retry', error: problem } as const),
    })
  }
}
