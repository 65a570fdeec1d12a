/**
 * Asserts that the order of events does not matter: every order of a list is run, and all must end
 * the same. It throws an ordinary error, so that it works in any test runner.
 */
import { checkConfluence, lookText } from '../workflow/confluence.ts'
import { differences, stableText } from '../workflow/difference.ts'
import { orderings, seededRandom } from '../workflow/orderings.ts'
import { playOutbox, type PlayDestinations } from '../workflow/play-outbox.ts'
import type { History, Workflow } from '../workflow/workflow.ts'

/** Options of {@link everyOrder}. */
export interface EveryOrderOptions {
  /** An order that the app opens: first where events open orders too, else at any moment. */
  readonly open?: History['open']
  /** What mirrors find at the end, by kind and id; default: `data.object` of the last event about the object. */
  readonly present?: History['present']
  /** What `gather` finds out, by the id of the event. */
  readonly gathered?: History['gathered']
  /** The subjects that the provider's customers are linked with, before or after all events. */
  readonly customers?: History['customers']
  /** Up to this many events every order is run; 6 (720 orders). */
  readonly exhaustive?: number | undefined
  /** How many orders of a longer list are run; 500. */
  readonly samples?: number | undefined
  /** Of the sample; 1. */
  readonly seed?: number | undefined
  /** Configured destinations; default: any name, bodies as JSON. */
  readonly destinations?: PlayDestinations | undefined
}

/** What was run. */
export interface EveryOrderReport {
  /** How many orders were run. */
  readonly orders: number
  /** Whether the list was too long to run every order. */
  readonly sampled: boolean
}

/** Thrown when two orders of the same events end differently. */
export class OrderMattersError extends Error {
  /** The order that ends differently from the given one. */
  readonly order: readonly string[]
  /** What differs, part by part. */
  readonly differs: readonly string[]

  constructor(given: string, order: readonly string[], differs: readonly string[]) {
    super(
      `the order of events matters.\nThis order\n${numbered(order)}\nends differently from ${given}:\n` +
        differs.map((line) => `  - ${line}`).join('\n'),
    )
    this.name = 'OrderMattersError'
    this.order = order
    this.differs = differs
  }
}

/**
 * Runs every order of the events through workflows in memory (one by one, and again in batches with
 * duplicates), or through a function of your own, whose results must be equal.
 *
 * @throws OrderMattersError naming the nearest order that ends differently, and what differs.
 * @example everyOrder([paid, refunded, disputed], license)
 * @example await everyOrder(events, async (order) => { …; return readState() })
 */
export function everyOrder(
  events: readonly object[],
  workflows: Workflow | readonly Workflow[],
  options?: EveryOrderOptions,
): EveryOrderReport
export function everyOrder<Event, Result>(
  events: readonly Event[],
  run: (order: readonly Event[]) => Promise<Result>,
  options?: EveryOrderOptions,
): Promise<EveryOrderReport>
export function everyOrder<Event, Result>(
  events: readonly Event[],
  run: (order: readonly Event[]) => Result,
  options?: EveryOrderOptions,
): EveryOrderReport
export function everyOrder(
  events: readonly object[],
  subject: Workflow | readonly Workflow[] | ((order: readonly object[]) => unknown),
  options: EveryOrderOptions = {},
): EveryOrderReport | Promise<EveryOrderReport> {
  if (typeof subject === 'function') return runFunction(events, subject, options)
  const { open, present, gathered, customers } = options
  const history = { name: 'events', events, open, present, gathered, customers }
  const outbox = playOutbox(options.destinations)
  const check = { ...options, outbox }
  const { checked, sampled, failures } = checkConfluence(subject, [history], check)
  const [failure] = failures
  if (failure !== undefined) {
    const given = `the given order${lookText(failure.looks)}`
    throw new OrderMattersError(given, failure.order, failure.differs)
  }
  return { orders: checked, sampled }
}

function runFunction(
  events: readonly object[],
  run: (order: readonly object[]) => unknown,
  options: EveryOrderOptions,
): EveryOrderReport | Promise<EveryOrderReport> {
  const { exhaustive = 6, samples = 500, seed = 1 } = options
  const orders = orderings(events.length, { exhaustive, samples, random: seededRandom(seed) })
  const report = { orders: 0, sampled: events.length > exhaustive }
  let expected: unknown
  const compare = (order: readonly number[], result: unknown): void => {
    report.orders += 1
    if (report.orders === 1) expected = result
    else if (stableText(result) !== stableText(expected)) {
      const labels = order.map((index) => labelOf(events[index], index))
      throw new OrderMattersError('the given order', labels, differences(result, expected))
    }
  }
  const pick = (order: readonly number[]): object[] => order.flatMap((index) => events[index] ?? [])
  for (let next = orders.next(); next.done !== true; next = orders.next()) {
    const order = next.value
    const result = run(pick(order))
    if (!isThenable(result)) {
      compare(order, result)
      continue
    }
    // one after the other: runs may share a database
    return (async () => {
      compare(order, await result)
      for (const later of orders) compare(later, await run(pick(later)))
      return report
    })()
  }
  return report
}

function isThenable(result: unknown): result is PromiseLike<unknown> {
  return typeof result === 'object' && result !== null && 'then' in result
}

/** `refund.created evt_1` for a provider's event, else its place in the given list. */
function labelOf(event: object | undefined, index: number): string {
  const { type, id } = (event ?? {}) as { readonly type?: unknown; readonly id?: unknown }
  const name = [type, id].filter((part) => typeof part === 'string').join(' ')
  return name === '' ? `event ${index + 1} of the list` : name
}

function numbered(order: readonly string[]): string {
  return order.map((line, index) => `  ${index + 1}. ${line}`).join('\n')
}
