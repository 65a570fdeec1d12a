/**
 * Which cases a drill has, in which order: first one for each promise, then the steps at which most is at stake, then a
 * covering array of steps, actions and histories. The same seed gives the same cases.
 */
import { faultActions } from '../testing/fault-plan.ts'
import { orderings, seededRandom, shuffled } from '../workflow/orderings.ts'
import type { CaseKind, DrillCase } from './drill-case.ts'
import { historyOf } from './run-case.ts'
import type { PlayedHistory } from './played-history.ts'

/** Steps by the role that reaches them. */
const steps = {
  receive: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((at) => `R${at}`),
  work: [0, 1, 2, 3, 4, 5, 6, 7].map((at) => `W${at}`),
  dispatch: [0, 1, 2, 3, 4, 5, 6].map((at) => `D${at}`),
  gather: [0, 1, 2, 3, 4, 5, 6, 7].map((at) => `G${at}`),
  reconcile: [0, 1, 2, 3, 4, 5, 6, 7].map((at) => `C${at}`),
} as const

/** Where most is at stake: bytes, effects, operations and commits that are half done. */
const hotSteps = ['R7', 'W3', 'W5', 'W6', 'W7', 'R5', 'R8', 'D0', 'D3', 'D5', 'D6', 'G4', 'G5']

/** How many orders of a history of more than three events are played on a database. */
const sampledOrders = 8

/** A planned case with its history. */
export interface PlannedCase {
  readonly played: PlayedHistory
  readonly drillCase: DrillCase
}

/** The cases of a drill of these histories, in the order in which they are played while there is time. */
export function planDrill(
  histories: readonly PlayedHistory[],
  seed: number,
): readonly PlannedCase[] {
  const [any] = ranked(histories, () => true)
  if (any === undefined) return []
  const sending = ranked(histories, ({ sends }) => sends)
  const looking = ranked(histories, ({ looks }) => looks)
  const reachable = [
    ...steps.receive,
    ...steps.work,
    ...(sending.length > 0 ? steps.dispatch : []),
    ...(looking.length > 0 ? steps.gather : []),
  ]
  const fit = (step: string): readonly PlayedHistory[] =>
    step.startsWith('D') ? sending : step.startsWith('G') ? looking : ranked(histories, () => true)
  const killed = (step: string): PlannedCase[] =>
    fit(step)
      .slice(0, 1)
      .map((played) => planned(played, 'kill', `${step}.kill`))
  const cases = [
    ...firstCases(histories, any, killed),
    ...hotSteps.filter((step) => reachable.includes(step)).flatMap(killed),
    ...otherCases(histories, seed),
    ...coveringArray(reachable, fit, seed).map(({ played, step, action }) =>
      planned(played, 'kill', `${step}.${action}`),
    ),
    ...coveringArray(
      recorded(histories).length > 0 ? steps.reconcile : [],
      () => recorded(histories),
      seed,
    ).map(({ played, step, action }) => planned(played, 'reconcile', `${step}.${action}`)),
  ]
  return distinct(cases)
}

/** Those first in which most can go wrong; and short ones, but not so short that nothing can be lost in between. */
function ranked(
  histories: readonly PlayedHistory[],
  fits: (played: PlayedHistory) => boolean,
): readonly PlayedHistory[] {
  const weight = ({ history, refunds, sends, looks }: PlayedHistory): number =>
    Math.abs(history.events.length - 3) +
    (refunds.length > 0 ? 0 : 10) +
    (sends ? 0 : 10) +
    (looks ? 5 : 0)
  return histories.filter(fits).sort((a, b) => weight(a) - weight(b))
}

function planned(
  played: PlayedHistory,
  kind: CaseKind,
  detail = '-',
  order?: readonly number[],
): PlannedCase {
  const blank = { kind, detail, workflow: played.workflow.name, history: played.slug, steps: [] }
  const { events } = historyOf(played, blank)
  return {
    played,
    drillCase: { ...blank, steps: order ?? events.map((_, at) => at) },
  }
}

/** One case for each promise. */
function firstCases(
  histories: readonly PlayedHistory[],
  any: PlayedHistory,
  killed: (step: string) => PlannedCase[],
): PlannedCase[] {
  const [several = any] = ranked(histories, ({ history }) => history.events.length > 1)
  const backwards = several.history.events.map((_, at) => at).reverse()
  return [
    ...killed('R8'),
    planned(any, 'simultaneous'),
    ...killed('W6'),
    ...killed('D2'),
    ...recorded(histories)
      .slice(0, 1)
      .map((played) => planned(played, 'reconcile', 'lost')),
    planned(any, 'off'),
    planned(several, 'permutation', '-', backwards),
    ...ranked(histories, ({ refunds }) => refunds.length > 0)
      .slice(0, 1)
      .map(paidLast),
    planned(any, 'twin'),
  ]
}

/** Those whose events the provider's records have, too. */
function recorded(histories: readonly PlayedHistory[]): readonly PlayedHistory[] {
  return ranked(histories, ({ workflow }) => workflow.sources.includes('stripe'))
}

/** What is paid back comes first, and the payment last. */
function paidLast(played: PlayedHistory): PlannedCase {
  const own = played.history.events.length
  const all = [...played.history.events, ...played.refunds].map((_, at) => at)
  return planned(played, 'refund', '-', [...all.slice(own), ...all.slice(0, own)])
}

const commitFaults = ['drop-before', 'drop-after', 'black-hole'] as const
const destinationFaults = ['refuse', 'lose', 'silent', 'drop'] as const
const providerFaults = ['error', 'limit', 'drop'] as const

/** Every other kind with every history: of each kind one first, then the rest. */
function otherCases(histories: readonly PlayedHistory[], seed: number): PlannedCase[] {
  const byHistory = histories.map((played) => [
    planned(played, 'postgres', 'kill'),
    ...['receive', 'work', ...(played.sends ? ['dispatch'] : [])].flatMap((whose) =>
      commitFaults.map((mode) => planned(played, 'commit', `${whose}.${mode}`)),
    ),
    ...(played.sends
      ? destinationFaults.map((fault) => planned(played, 'destination', fault))
      : []),
    ...(played.looks ? providerFaults.map((fault) => planned(played, 'provider', fault)) : []),
    planned(played, 'duplicate'),
    planned(played, 'twin'),
    planned(played, 'simultaneous'),
    ...(played.refunds.length > 0 ? [paidLast(played)] : []),
    planned(played, 'off'),
    ...(recorded([played]).length > 0 ? [planned(played, 'reconcile', 'lost')] : []),
    ...orders(played, seed),
  ])
  const seen = new Set<string>()
  const first: PlannedCase[] = []
  const rest: PlannedCase[] = []
  for (const each of byHistory.flat()) {
    const what = `${each.drillCase.kind} ${each.drillCase.detail}`
    if (seen.has(what)) rest.push(each)
    else first.push(each)
    seen.add(what)
  }
  return [...first, ...rest]
}

/** Every order of up to three events, a sample beyond; in memory it is every order of up to six. */
function orders(played: PlayedHistory, seed: number): PlannedCase[] {
  const count = played.history.events.length
  const options = { exhaustive: 3, samples: sampledOrders, random: seededRandom(seed) }
  return [...orderings(count, options)]
    .slice(1)
    .map((order) => planned(played, 'permutation', '-', order))
}

/**
 * Every step with every action, each with a history, so that soon every action has met every history and every step every
 * action: of the candidates the one comes next that shows most pairs that none before has shown.
 */
function coveringArray(
  reachable: readonly string[],
  fit: (step: string) => readonly PlayedHistory[],
  seed: number,
): { readonly played: PlayedHistory; readonly step: string; readonly action: string }[] {
  const random = seededRandom(seed)
  const pairs = reachable.flatMap((step) => faultActions.map((action) => ({ step, action })))
  const uses = new Map<string, number>()
  return shuffled(pairs.length, random).flatMap((at) => {
    const pair = pairs[at]
    if (pair === undefined) return []
    const { step, action } = pair
    const keys = (played: PlayedHistory): string[] => {
      const name = `${played.workflow.name}/${played.slug}`
      return [`${step} ${name}`, `${action} ${name}`, name]
    }
    const cost = (played: PlayedHistory): number =>
      keys(played).reduce((sum, key) => sum + (uses.get(key) ?? 0), 0)
    const [best] = [...fit(step)].sort((a, b) => cost(a) - cost(b))
    if (best === undefined) return []
    for (const key of keys(best)) uses.set(key, (uses.get(key) ?? 0) + 1)
    return [{ played: best, step, action }]
  })
}

function distinct(cases: readonly PlannedCase[]): PlannedCase[] {
  const seen = new Set<string>()
  return cases.filter(({ drillCase }) => {
    const name = JSON.stringify(drillCase)
    if (seen.has(name)) return false
    seen.add(name)
    return true
  })
}
