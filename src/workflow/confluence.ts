/**
 * The confluence check: a history that a provider can produce ends the same in whichever order its
 * events come, however often each comes, whether they come one by one or together, and whenever the provider
 * is looked at. Seeded: what it found once, it finds again.
 */
import { differences } from './difference.ts'
import type { LookTime } from './history-provider.ts'
import { endOf, endText, HistoryRun, type RunEnd } from './history-run.ts'
import { inversions, orderings, seededRandom, type Random } from './orderings.ts'
import type { OutboxPort } from './outbox-port.ts'
import type { History, Workflow } from './workflow.ts'

/** Options of {@link checkConfluence}. */
export interface ConfluenceOptions {
  /** Histories up to this many events are played in every order; 6. */
  readonly exhaustive?: number | undefined
  /** How many orders of a longer one are played; 500. */
  readonly samples?: number | undefined
  /** Of the samples, duplicates and batches; 1. */
  readonly seed?: number | undefined
  /** Where effects may send; anywhere, as JSON. */
  readonly outbox?: OutboxPort | undefined
}

/** A history that ends differently in another order. */
export interface ConfluenceFailure {
  readonly history: string
  /** The order nearest to the history's own that differs: a line for everything that comes at once. */
  readonly order: readonly string[]
  /** What is at the end of that order, and is not at the end of the history's own. */
  readonly differs: readonly string[]
  /** Set where it ends so when looks find the object as the latest event that had come shows it. */
  readonly looks?: 'latest'
}

/** The time of looks for people; nothing where it makes no difference. */
export function lookText(looks: 'latest' | undefined): string {
  return looks === undefined
    ? ''
    : ', and each look finds its object as the latest of the events that had come shows it'
}

/** What the check came to. */
export interface ConfluenceReport {
  /** How many orders were played; each of them one by one, and again in batches with duplicates. */
  readonly checked: number
  /** Whether a history was too long to play every order. */
  readonly sampled: boolean
  readonly failures: readonly ConfluenceFailure[]
}

type Batches = readonly (readonly number[])[]

/** Plays histories in every order (or a sample) and names those whose end depends on it. */
export function checkConfluence(
  workflow: Workflow | readonly Workflow[],
  histories: readonly History[],
  options: ConfluenceOptions = {},
): ConfluenceReport {
  const workflows = isList(workflow) ? workflow : [workflow]
  const failures: ConfluenceFailure[] = []
  let checked = 0
  let sampled = false
  for (const history of histories) {
    const check = new HistoryCheck(
      new HistoryRun(workflows, history, options.outbox),
      opensByEvent(workflows),
      options,
    )
    const failure = check.run()
    checked += check.checked
    sampled ||= check.sampled
    if (failure !== null) failures.push({ history: history.name, ...failure })
  }
  return { checked, sampled, failures }
}

function isList(workflow: Workflow | readonly Workflow[]): workflow is readonly Workflow[] {
  return Array.isArray(workflow)
}

/**
 * An order that an event may open is judged by what the app expects only once the app has said so: it
 * opens such an order first. Elsewhere events wait for the app, whenever it comes.
 */
function opensByEvent(workflows: readonly Workflow[]): boolean {
  return workflows.every((workflow) => workflow.opens === 'event')
}

class HistoryCheck {
  readonly #run: HistoryRun
  readonly #opensFirst: boolean
  readonly #options: Required<{ exhaustive: number; samples: number }>
  readonly #random: Random
  readonly #expected: RunEnd
  readonly #expectedText: string
  checked = 0

  constructor(run: HistoryRun, opensFirst: boolean, options: ConfluenceOptions) {
    this.#run = run
    this.#opensFirst = opensFirst
    this.#options = { exhaustive: options.exhaustive ?? 6, samples: options.samples ?? 500 }
    this.#random = seededRandom(options.seed ?? 1)
    const natural = Array.from({ length: run.events }, (_, index) => index)
    const played = run.play(oneByOne(this.#withOpening(natural, 0)))
    this.#expected = endOf(played)
    this.#expectedText = endText(played)
  }

  get sampled(): boolean {
    return this.#run.events > this.#options.exhaustive
  }

  run(): Omit<ConfluenceFailure, 'history'> | null {
    let nearest: readonly number[] | null = null
    let batched: Batches | null = null
    for (const order of orderings(this.#run.events, { ...this.#options, random: this.#random })) {
      // opening comes at every place in turn, so that all of them meet many orders
      const steps = this.#withOpening(order, this.checked % (order.length + 1))
      this.checked += 1
      if (this.#differs(oneByOne(steps))) {
        if (nearest === null || inversions(steps) < inversions(nearest)) nearest = steps
        continue
      }
      if (batched !== null || nearest !== null) continue
      const batches = this.#inBatches(steps)
      if (this.#differs(batches)) batched = batches
    }
    if (nearest !== null) return this.#failure(oneByOne(this.#nearer(nearest)))
    return batched === null ? null : this.#failure(this.#simpler(batched))
  }

  #withOpening(order: readonly number[], place: number): number[] {
    const { opening } = this.#run
    if (opening === null) return [...order]
    const at = this.#opensFirst ? 0 : place
    return [...order.slice(0, at), opening, ...order.slice(at)]
  }

  #differs(batches: Batches): boolean {
    return this.#differing(batches) !== null
  }

  /** When looks must be made for the end to differ; null: it does not. */
  #differing(batches: Batches): LookTime | null {
    for (const looks of this.#run.lookTimes)
      if (endText(this.#run.play(batches, looks)) !== this.#expectedText) return looks
    return null
  }

  /** The same order in batches, half of it delivered again somewhere later. */
  #inBatches(steps: readonly number[]): Batches {
    const deliveries = [...steps]
    for (const step of steps) {
      if (step === this.#run.opening || this.#random() < 0.5) continue
      const from = deliveries.indexOf(step) + 1
      const at = from + Math.floor(this.#random() * (deliveries.length - from + 1))
      deliveries.splice(at, 0, step)
    }
    const together = this.#random()
    const batches: number[][] = []
    for (const step of deliveries) {
      const last = batches.at(-1)
      if (last === undefined || this.#random() >= together) batches.push([step])
      else last.push(step)
    }
    return batches
  }

  /** Swaps neighbors back toward the history's own order for as long as the end still differs. */
  #nearer(order: readonly number[]): readonly number[] {
    for (let index = 0; index + 1 < order.length; index++) {
      const [a = 0, b = 0] = order.slice(index, index + 2)
      if (a < b) continue
      const swapped = [...order.slice(0, index), b, a, ...order.slice(index + 2)]
      if (this.#differs(oneByOne(swapped))) return this.#nearer(swapped)
    }
    return order
  }

  /** Leaves out repetitions for as long as the end still differs. */
  #simpler(batches: Batches): Batches {
    const seen = new Set<number>()
    for (const [index, batch] of batches.entries()) {
      for (const [place, step] of batch.entries()) {
        if (!seen.has(step)) {
          seen.add(step)
          continue
        }
        const kept = batch.filter((_, at) => at !== place)
        const fewer = batches.map((each, at) => (at === index ? kept : each))
        const next = fewer.filter((each) => each.length > 0)
        if (this.#differs(next)) return this.#simpler(next)
      }
    }
    return batches
  }

  #failure(batches: Batches): Omit<ConfluenceFailure, 'history'> {
    const seen = new Set<number>()
    const order = batches.map((batch) =>
      batch
        .map((step) => {
          const again = seen.has(step) ? ' (again)' : ''
          seen.add(step)
          return `${this.#run.label(step)}${again}`
        })
        .join(' + '),
    )
    const looks = this.#differing(batches) ?? 'end'
    return {
      order,
      differs: differences(endOf(this.#run.play(batches, looks)), this.#expected),
      ...(looks === 'latest' && { looks }),
    }
  }
}

function oneByOne(steps: readonly number[]): Batches {
  return steps.map((step) => [step])
}
