/** The run of a drill: plays in memory, cases while there is time, and the smallest schedule of what failed. */
import type { ChildPool } from './child-process.ts'
import { compareEnds, referenceOf, type Reference } from './compare-ends.ts'
import { nameOf, type DrillCase } from './drill-case.ts'
import type { DrillFindings } from './drill-findings.ts'
import type { PureReport } from './messages.ts'
import type { PlannedCase } from './plan.ts'
import type { PlayedHistory } from './played-history.ts'
import { runCase, type CaseResult, type CaseWorld } from './run-case.ts'

/** Who is told what is under way. */
export interface RunTold {
  readonly progress: (text: string) => void
  readonly signal: AbortSignal
}

/** What a case is thought to take before any has been played, in milliseconds. */
const usualMs = 3000
/** How many schedules are tried to make one smaller. */
const shrinkTries = 12

/** Plays cases. */
export class DrillRun {
  readonly #told: RunTold
  readonly #pool: ChildPool
  readonly #shared: CaseWorld | null
  readonly #references = new Map<string, Reference | null>()
  #longestMs = usualMs

  constructor(told: RunTold, pool: ChildPool, shared: CaseWorld | null) {
    this.#told = told
    this.#pool = pool
    this.#shared = shared
  }

  /** Plays in memory in two processes: what differs between them is of no event. */
  async checkInMemory(seed: number, samples: number): Promise<PureReport> {
    this.#told.progress('drill: every order, twice, at other times, paid back; in memory')
    const [one, other] = [await this.#pool.take('work'), await this.#pool.take('dispatch')]
    try {
      const [report, again] = await Promise.all([one.check(seed, samples), other.check(seed, 1)])
      const differ = new Set(
        Object.keys(report.ends).filter((name) => report.ends[name] !== again.ends[name]),
      )
      const faults = report.faults.map((each) =>
        each.fault === 'state_in_memory' && differ.has(`${each.workflow}/${each.history}`)
          ? { ...each, fault: 'decide_not_pure' }
          : each,
      )
      return { ...report, faults }
    } finally {
      this.#pool.giveBack(one)
      this.#pool.giveBack(other)
    }
  }

  /** Plays cases while there is time. */
  async cases(
    cases: readonly PlannedCase[],
    findings: DrillFindings,
    isTimeLeft: (neededMs: number) => boolean,
  ): Promise<void> {
    for (const [at, planned] of cases.entries()) {
      if (!isTimeLeft(this.#longestMs)) return
      this.#told.progress(
        `drill: ${at + 1} of ${cases.length}, ${nameOf(planned.drillCase)}${findings.isGo ? '' : ` (${findings.faults} faults so far)`}`,
      )
      findings.add(planned, await this.#play(planned))
    }
  }

  /** A case, judged by the oracle and against the same events without a fault. */
  async #play({ played, drillCase }: PlannedCase): Promise<CaseResult> {
    const shared = this.#shared
    if (shared === null) throw new Error('there is no database')
    const reference = await this.#reference(played, drillCase)
    const result = await runCase(shared, played, drillCase)
    this.#longestMs = Math.max(Math.min(this.#longestMs, 1500), Math.min(result.tookMs * 2, 6000))
    if (result.end === null || reference === null) return result
    return {
      ...result,
      violations: [...result.violations, ...compareEnds(drillCase.kind, reference, result.end)],
    }
  }

  async #reference(played: PlayedHistory, drillCase: DrillCase): Promise<Reference | null> {
    const shared = this.#shared
    if (shared === null) return null
    const paidBack = drillCase.kind === 'refund'
    const steps = [...new Set(drillCase.steps)]
      .filter((step) => paidBack || step < played.history.events.length)
      .sort((a, b) => a - b)
    const base: DrillCase = {
      ...drillCase,
      kind: paidBack ? 'refund' : 'plain',
      detail: '-',
      steps,
    }
    const key = nameOf(base)
    const known = this.#references.get(key)
    if (known !== undefined) return known
    const plain = await runCase(shared, played, base)
    const shifted = await runCase(shared, played, { ...base, detail: 'shifted' })
    const reference =
      plain.end === null || shifted.end === null ? null : referenceOf(plain.end, shifted.end)
    this.#references.set(key, reference)
    return reference
  }

  /** For each fault the smallest schedule that still shows it. */
  async shrink(findings: DrillFindings, isTimeLeft: (neededMs: number) => boolean): Promise<void> {
    for (const { fault, planned } of findings.shrinkable()) {
      let best = planned
      for (let tries = 0; tries < shrinkTries; tries++) {
        const smaller = await this.#smaller(best, fault, isTimeLeft)
        if (smaller === null) break
        best = smaller
      }
      findings.shrunk(fault, best)
    }
  }

  async #smaller(
    { played, drillCase }: PlannedCase,
    fault: string,
    isTimeLeft: (neededMs: number) => boolean,
  ): Promise<PlannedCase | null> {
    if (drillCase.steps.length < 2) return null
    for (const step of drillCase.steps) {
      if (!isTimeLeft(this.#longestMs * 3)) return null
      const candidate = {
        played,
        drillCase: { ...drillCase, steps: drillCase.steps.filter((each) => each !== step) },
      }
      this.#told.progress(`drill: is ${fault} there without event ${step}?`)
      const { violations } = await this.#play(candidate)
      if (violations.some((each) => each.fault === fault)) return candidate
    }
    return null
  }
}
