/**
 * Configuration is read at import, often where nothing will run (a build, a type check). A source with
 * a bad option is made all the same, says so when it is used, and verifies nothing until then.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Source } from './provider.ts'

/** The source, or one that carries its problem: the start refuses it, and no delivery passes it. */
export function withDeferredProblem<S extends Source>(provider: S['provider'], make: () => S): S {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof HookledgerError)) throw error
    const broken: Source = {
      provider,
      account: undefined,
      environment: undefined,
      problem: error,
      allowsAccount: () => false,
      verify: () => ({ ok: false, reason: 'mismatch' }),
      name: () => [],
    }
    return Object.freeze(broken) as S
  }
}
