/** What a drill has found so far, and what it comes to: what was never exercised counts as well as what broke. */
import type { ResolvedConfig } from '../compose/options.ts'
import { caseKinds, nameOf, promisesOf, type CaseKind } from './drill-case.ts'
import {
  promiseIds,
  type CaseReport,
  type DrillReport,
  type FaultReport,
  type PromiseReport,
  type RecoveryReport,
} from './drill-report.ts'
import type { PureReport } from './messages.ts'
import { promiseTitles, type PromiseId } from './oracle/verdict.ts'
import type { PlannedCase } from './plan.ts'
import { historyOf, type CaseResult } from './run-case.ts'
import type { PlayedHistory } from './played-history.ts'

/** What findings are judged by. */
export interface FindingsOptions {
  readonly config: ResolvedConfig
  readonly histories: readonly PlayedHistory[]
  readonly budgetMs: number | null
  readonly seed: number
  readonly only: readonly string[] | null
  readonly named: readonly string[] | null
  readonly replay: (name: string | null) => string
  readonly signal: AbortSignal
}

const promiseOfPure: Readonly<Record<string, PromiseId>> = {
  sends_outside_outbox: 'P6',
  effect_keyed_by_event: 'P2',
  refund_ignored: 'P4',
  dead_event: 'P5',
}

/** The promise that each check in memory puts to the test. */
const promisesOfChecks: Readonly<Record<string, PromiseId>> = {
  orders: 'P10',
  times: 'P10',
  again: 'P10',
  twice: 'P2',
  refund: 'P4',
  io: 'P6',
}

interface OpenFault {
  readonly fault: string
  readonly promise: PromiseId
  readonly case: string
  readonly detail: string
  cases: number
  schedule: readonly string[]
  planned: PlannedCase | null
  replay: string | null
}

/** Gathers what a drill finds. */
export class DrillFindings {
  readonly #options: FindingsOptions
  readonly #faults = new Map<string, OpenFault>()
  readonly #cases: CaseReport[] = []
  readonly #tested = new Map<PromiseId, number>()
  readonly #exercised = new Set<string>()
  readonly #recovery = new Map<CaseKind, number[]>()
  #inMemory: Readonly<Record<string, number>> = {}

  constructor(options: FindingsOptions) {
    this.#options = options
  }

  get isGo(): boolean {
    return this.#faults.size === 0
  }

  get faults(): number {
    return this.#faults.size
  }

  /** What playing in memory found. */
  addInMemory({ faults, cases }: PureReport): void {
    this.#inMemory = cases
    for (const [check, count] of Object.entries(cases)) {
      const promise = promisesOfChecks[check]
      if (promise !== undefined) this.#test(promise, count)
    }
    for (const { fault, workflow, history, detail, schedule } of faults)
      this.#fault({
        fault,
        promise: promiseOfPure[fault] ?? 'P10',
        case: `in memory, ${workflow}, ${history}`,
        detail,
        schedule,
        planned: null,
      })
  }

  /** What a case came to. */
  add(planned: PlannedCase, result: CaseResult): void {
    const { drillCase, violations, exercised, name } = result
    this.#cases.push({
      case: name,
      holds: violations.length === 0,
      exercised,
      took_ms: result.tookMs,
      recovery_ms: result.recoveryMs,
      faults: [...new Set(violations.map(({ fault }) => fault))],
    })
    if (exercised) {
      for (const promise of promisesOf(drillCase)) this.#test(promise, 1)
      if (drillCase.kind === 'kill') this.#exercised.add(drillCase.detail)
      if (result.recoveryMs !== null)
        this.#recovery.set(drillCase.kind, [
          ...(this.#recovery.get(drillCase.kind) ?? []),
          result.recoveryMs,
        ])
    }
    for (const violation of violations)
      this.#fault({ ...violation, case: name, schedule: scheduleOf(planned), planned })
  }

  #test(promise: PromiseId, count: number): void {
    this.#tested.set(promise, (this.#tested.get(promise) ?? 0) + count)
  }

  #fault(found: Omit<OpenFault, 'cases' | 'replay'>): void {
    const known = this.#faults.get(found.fault)
    if (known !== undefined) {
      known.cases += 1
      return
    }
    const { replay: again } = this.#options
    const replay =
      found.planned !== null
        ? again(found.case)
        : found.case.startsWith('in memory')
          ? again(null)
          : null
    this.#faults.set(found.fault, { ...found, cases: 1, replay })
  }

  /** Faults that a schedule on a database shows, to be made smaller. */
  shrinkable(): readonly { readonly fault: string; readonly planned: PlannedCase }[] {
    return [...this.#faults.values()].flatMap(({ fault, planned }) =>
      planned === null || fault === 'unique_index_missing' || fault === 'did_not_start'
        ? []
        : [{ fault, planned }],
    )
  }

  /** The smallest case that shows a fault. */
  shrunk(fault: string, planned: PlannedCase): void {
    const known = this.#faults.get(fault)
    if (known === undefined) return
    known.planned = planned
    known.schedule = scheduleOf(planned)
    known.replay = this.#options.replay(nameOf(planned.drillCase))
  }

  /** The whole. `planned` are the cases that there were. */
  report(tookMs: number, planned: readonly PlannedCase[]): DrillReport {
    const { budgetMs, seed, only, named, signal } = this.#options
    const leftOut = this.#leftOut(planned)
    const isWhole = budgetMs === null && only === null && named === null && !signal.aborted
    if (isWhole)
      for (const what of leftOut)
        this.#fault({
          fault: 'never_exercised',
          promise: promiseOfStep(what),
          case: what,
          detail: `${what} was planned and never happened: nothing can be said of it`,
          schedule: [],
          planned: null,
        })
    const promises = this.#promises()
    const everyPromiseTested =
      only !== null ||
      named !== null ||
      promises.every(({ cases, not_applicable: no }) => cases > 0 || no !== null)
    return {
      go: this.#faults.size === 0 && everyPromiseTested,
      not_a_release_decision: isWhole ? null : whyPartial(this.#options, leftOut.length),
      seed,
      took_ms: tookMs,
      promises,
      faults: [...this.#faults.values()].map(({ planned: _, ...told }): FaultReport => told),
      left_out: leftOut,
      recovery: this.#recoveries(),
      cases: this.#cases,
      in_memory: this.#inMemory,
    }
  }

  /** What was planned and did not happen: for steps their name and action, else the case's. */
  #leftOut(planned: readonly PlannedCase[]): readonly string[] {
    const done = new Set(this.#cases.filter((each) => each.exercised).map((each) => each.case))
    const left = new Set<string>()
    for (const { drillCase } of planned) {
      if (drillCase.kind === 'kill') {
        if (!this.#exercised.has(drillCase.detail)) left.add(drillCase.detail)
      } else if (!done.has(nameOf(drillCase))) left.add(nameOf(drillCase))
    }
    return [...left]
  }

  #promises(): readonly PromiseReport[] {
    return promiseIds.map((id) => {
      const faults = [...this.#faults.values()].filter(({ promise }) => promise === id)
      return {
        id,
        title: promiseTitles[id],
        holds: faults.length === 0,
        cases: this.#tested.get(id) ?? 0,
        faults: faults.map(({ fault }) => fault),
        not_applicable: this.#notApplicable(id),
      }
    })
  }

  #notApplicable(id: PromiseId): string | null {
    const { config, histories } = this.#options
    if (id === 'P6' && !histories.some(({ sends }) => sends) && config.destinations.size === 0)
      return 'nothing is sent anywhere'
    if (id === 'P7' && ![...config.sources.values()].some(({ source }) => source.records))
      return 'no source has records that could be compared'
    if (id === 'P4' && !histories.some(({ refunds }) => refunds.length > 0))
      return 'no history leaves a payment standing that could be paid back'
    return null
  }

  #recoveries(): readonly RecoveryReport[] {
    return [...this.#recovery].map(([kind, times]) => {
      const sorted = [...times].sort((a, b) => a - b)
      return {
        kind: caseKinds[kind],
        cases: sorted.length,
        median_ms: sorted[Math.floor(sorted.length / 2)] ?? 0,
        longest_ms: sorted.at(-1) ?? 0,
      }
    })
  }
}

function whyPartial({ budgetMs, only, named }: FindingsOptions, left: number): string {
  if (named !== null) return 'it played only the cases that were named'
  if (only !== null) return `it played only ${only.join(', ')}`
  if (budgetMs === null) return 'it was interrupted'
  return `its budget of ${budgetMs / 1000} s left out ${left} of what a whole drill plays`
}

function promiseOfStep(what: string): PromiseId {
  if (what.startsWith('D') || what.startsWith('destination')) return 'P6'
  if (what.startsWith('R')) return 'P1'
  if (what.startsWith('C') || what.startsWith('reconcile')) return 'P7'
  return 'P3'
}

/** A schedule for people: a line for each event as it comes. */
function scheduleOf({ played, drillCase }: PlannedCase): readonly string[] {
  const { events } = historyOf(played, drillCase)
  return drillCase.steps.map((step) => {
    const { type, id } = (events[step] ?? {}) as { readonly type?: unknown; readonly id?: unknown }
    return `${String(type)} ${String(id)}`
  })
}
