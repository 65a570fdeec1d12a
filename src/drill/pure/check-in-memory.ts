/**
 * Plays every history of every workflow in memory, in ways in which it must end the same: again, in every order, at other
 * times, with every fact told twice; and with everything paid back, after which nothing may be left to use.
 */
import { checkConfluence } from '../../workflow/confluence.ts'
import { differences } from '../../workflow/difference.ts'
import { endOf, endText, HistoryRun, type RunEnd } from '../../workflow/history-run.ts'
import { seededRandom } from '../../workflow/orderings.ts'
import type { PlayRun } from '../../workflow/play.ts'
import type { History, Workflow } from '../../workflow/workflow.ts'
import type { Outlook, PureFault, PureReport, Standing } from '../messages.ts'
import {
  atOtherTimes,
  isLive,
  isMirror,
  isPaidBack,
  refundsOf,
  toldTwice,
} from './derived-histories.ts'
import { watchIo } from './io-watch.ts'

/** How many of each check were played. */
interface Found {
  readonly faults: PureFault[]
  readonly cases: Record<string, number>
  readonly ends: Record<string, string>
  readonly outlooks: Record<string, Outlook>
}

/** How it is played. */
export interface PureOptions {
  readonly seed: number
  /** How many orders of a history of more than six events. */
  readonly samples: number
}

/** Checks workflows in memory. Never rejects for what a workflow does. */
export async function checkInMemory(
  workflows: readonly Workflow[],
  options: PureOptions,
): Promise<PureReport> {
  const found: Found = { faults: [], cases: {}, ends: {}, outlooks: {} }
  for (const workflow of workflows)
    for (const history of workflow.histories ?? []) {
      const io = await watchIo(() => checkOne(workflow, history, options, found))
      count(found, 'io')
      if (io.size > 0)
        found.faults.push({
          fault: 'sends_outside_outbox',
          workflow: workflow.name,
          history: history.name,
          detail: `${[...io].join(', ')} was begun while it was decided: what is sent belongs into the outbox`,
          schedule: [],
        })
    }
  return found
}

function count(found: Found, name: string, times = 1): void {
  found.cases[name] = (found.cases[name] ?? 0) + times
}

function checkOne(
  workflow: Workflow,
  history: History,
  { seed, samples }: PureOptions,
  found: Found,
): void {
  const tell = (fault: string, detail: string, schedule: readonly string[] = []): void =>
    void found.faults.push({
      fault,
      workflow: workflow.name,
      history: history.name,
      detail,
      schedule,
    })
  try {
    const first = played(workflow, history)
    const name = `${workflow.name}/${history.name}`
    found.ends[name] = endText(first)
    found.outlooks[name] = { standing: standing(first), sends: [...first.drafts].length > 0 }
    for (const [event, why] of Object.entries(endOf(first).dead))
      tell('dead_event', `${event} can never be decided: ${why}`)
    count(found, 'again')
    const again = played(workflow, history)
    if (endText(again) !== endText(first)) {
      tell(
        'state_in_memory',
        `played again it ends otherwise: ${differ(endOf(again), endOf(first))}`,
      )
      // what follows compares ends, and would only say the same in other words
      return
    }
    checkTimes(workflow, history, seed, found, tell)
    checkTwice(workflow, history, first, found, tell)
    checkRefund(workflow, history, first, found, tell)
    const order = checkConfluence(workflow, [history], { seed, samples })
    count(found, 'orders', order.checked)
    for (const failure of order.failures)
      tell('order_matters', failure.differs.join('; '), failure.order)
  } catch (error) {
    tell('history_fails', error instanceof Error ? error.message : String(error))
  }
}

type Tell = (fault: string, detail: string, schedule?: readonly string[]) => void

function played(workflow: Workflow, history: History, order?: readonly number[]): PlayRun {
  const run = new HistoryRun([workflow], history)
  const natural = Array.from({ length: run.events }, (_, at) => at)
  const steps = [...(run.opening === null ? [] : [run.opening]), ...(order ?? natural)]
  return run.play(steps.map((step) => [step]))
}

function differ(actual: unknown, expected: unknown): string {
  return differences(actual, expected).slice(0, 5).join('; ')
}

/** What an end comes to, without what may be said otherwise of the same fact. */
function outcomeOf(end: RunEnd): unknown {
  return Object.fromEntries(
    Object.entries(end.orders).map(([id, { state, effects, entitlements }]) => [
      id,
      {
        state,
        effects: Object.keys(effects).sort(),
        entitlements: Object.keys(entitlements).sort(),
      },
    ]),
  )
}

function checkTimes(
  workflow: Workflow,
  history: History,
  seed: number,
  found: Found,
  tell: Tell,
): void {
  const random = seededRandom(seed)
  const inOrder = atOtherTimes(history, () => 0.999_999)
  if (inOrder === null) return
  const expected = outcomeOf(endOf(played(workflow, inOrder)))
  for (const other of [atOtherTimes(history, 'reversed'), atOtherTimes(history, random)]) {
    if (other === null) continue
    count(found, 'times')
    const actual = outcomeOf(endOf(played(workflow, other)))
    const wrong = differ(actual, expected)
    if (wrong === '') continue
    const labels = (other.events as readonly { type?: string; created?: number }[]).map(
      ({ type, created }) => `${type} made at ${created}`,
    )
    return tell('compares_timestamps', `made at other times it ends otherwise: ${wrong}`, labels)
  }
}

function checkTwice(
  workflow: Workflow,
  history: History,
  first: PlayRun,
  found: Found,
  tell: Tell,
): void {
  const twice = toldTwice(history)
  if (twice === null) return
  count(found, 'twice')
  const wrong = differ(outcomeOf(endOf(played(workflow, twice))), outcomeOf(endOf(first)))
  if (wrong !== '')
    tell('effect_keyed_by_event', `the same facts under other event ids change the end: ${wrong}`)
}

function standing(run: PlayRun): readonly Standing[] {
  return [...run.orders.values()].flatMap(({ payments }) =>
    payments.flatMap(({ id, amount, currency }) =>
      /^pi_/.test(id) && amount > 0n ? [{ payment: id, amount: Number(amount), currency }] : [],
    ),
  )
}

const refundTypes = ['refund.created', 'refund.updated', 'charge.refunded'] as const

function checkRefund(
  workflow: Workflow,
  history: History,
  first: PlayRun,
  found: Found,
  tell: Tell,
): void {
  if (!workflow.sources.includes('stripe') || isMirror(workflow)) return
  const paid = standing(first)
  if (paid.length === 0) return
  count(found, 'refund')
  if (!refundTypes.some((type) => workflow.handlers.has(type)))
    return tell(
      'refund_ignored',
      `it takes payments and handles none of ${refundTypes.join(', ')}: what is paid back stays bought`,
    )
  if (isPaidBack(history) || !isEntitling(first)) return
  const refunds = refundsOf(paid, isLive(history))
  const whole = { ...history, events: [...history.events, ...refunds] }
  const natural = whole.events.map((_, at) => at)
  const paidLast = [
    ...natural.slice(history.events.length),
    ...natural.slice(0, history.events.length),
  ]
  for (const order of [natural, paidLast]) {
    const end = played(workflow, whole, order)
    if (!isEntitling(end)) continue
    const labels = order.map((at) => String((whole.events[at] as { type?: unknown }).type))
    return tell('refund_ignored', 'everything was paid back, and it still entitles', labels)
  }
}

function isEntitling(run: PlayRun): boolean {
  return [...run.orders.values()].some(({ entitlements }) => entitlements.some((row) => row.active))
}
