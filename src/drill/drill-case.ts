/**
 * The cases of a drill and their names: `KIND/DETAIL/WORKFLOW/HISTORY/STEPS`, from which a case can be made again. STEPS
 * are the places of the history's events in the order in which they come.
 */
import type { PromiseId } from './oracle/verdict.ts'

/** Kinds of case, in the order of the documentation. */
export type CaseKind =
  | 'plain'
  | 'kill'
  | 'permutation'
  | 'duplicate'
  | 'simultaneous'
  | 'twin'
  | 'refund'
  | 'off'
  | 'postgres'
  | 'commit'
  | 'provider'
  | 'destination'
  | 'reconcile'

/** Every kind that is played on a database, and what it is, for people. */
export const caseKinds: Readonly<Record<CaseKind, string>> = {
  plain: 'no fault',
  kill: 'a process suffers a fault at a named step',
  permutation: 'events in another order',
  duplicate: 'every event twice',
  simultaneous: 'every event four times at once',
  twin: 'every fact under a second event id',
  refund: 'everything paid back, and the payment comes last',
  off: 'no worker for a while, the endpoint stays healthy',
  postgres: 'PostgreSQL killed',
  commit: 'a COMMIT whose answer is lost',
  provider: "the provider's API fails",
  destination: 'the destination fails',
  reconcile: 'events that were never delivered, found in the records of the provider',
}

/** The promises that a kind of case puts to the test, besides P5, P8 and P9, which every case does. */
export const promisesOfKind: Readonly<Record<CaseKind, readonly PromiseId[]>> = {
  plain: [],
  kill: ['P3'],
  permutation: ['P10'],
  duplicate: ['P2'],
  simultaneous: ['P2'],
  twin: ['P2'],
  refund: ['P4', 'P10'],
  off: ['P1'],
  postgres: ['P1', 'P3'],
  commit: ['P3'],
  provider: [],
  destination: ['P6'],
  reconcile: ['P7'],
}

/** One case. */
export interface DrillCase {
  readonly kind: CaseKind
  /** What exactly: `W3.kill`, `receive.drop-after`, `lose`; `-` where there is nothing to say. */
  readonly detail: string
  readonly workflow: string
  /** The history's name as a slug. */
  readonly history: string
  readonly steps: readonly number[]
}

/** The name that `--case` takes. */
export function nameOf({ kind, detail, workflow, history, steps }: DrillCase): string {
  return [kind, detail, workflow, history, steps.join('.')].join('/')
}

/** The case of a name; null for what is none. */
export function caseOf(name: string): DrillCase | null {
  const [kind = '', detail = '', workflow = '', history = '', steps = '', ...rest] = name.split('/')
  const isSteps = /^\d+(\.\d+)*$/.test(steps)
  if (!Object.hasOwn(caseKinds, kind) || detail === '' || !isSteps || rest.length > 0) return null
  return {
    kind: kind as CaseKind,
    detail,
    workflow,
    history,
    steps: steps.split('.').map(Number),
  }
}

/** A name that needs no quotes. */
export function slugOf(name: string): string {
  return (
    name
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-|-$/g, '') || 'history'
  )
}

/** Which promises a case puts to the test. */
export function promisesOf(drillCase: DrillCase): readonly PromiseId[] {
  const always: PromiseId[] = ['P5', 'P8', 'P9']
  const byStep = drillCase.kind === 'kill' ? promisesOfStep(drillCase.detail) : []
  const byCommit = drillCase.detail.startsWith('receive.')
    ? (['P1'] as const)
    : drillCase.detail.startsWith('dispatch.')
      ? (['P6'] as const)
      : []
  return [...new Set([...promisesOfKind[drillCase.kind], ...byStep, ...byCommit, ...always])]
}

function promisesOfStep(detail: string): readonly PromiseId[] {
  const letter = detail[0]
  if (letter === 'R') return ['P1']
  if (letter === 'D') return ['P6']
  if (letter === 'C') return ['P7']
  return ['P2']
}
