/**
 * Plays one case to its end on a database of its own, with the product's roles in processes of their own, and asks the
 * oracle. What the sender, the destination and the provider saw is what counts; the product's word counts for nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ResolvedConfig } from '../compose/options.ts'
import { CaseProcesses } from './case-processes.ts'
import { ChildFailure, ChildGone, type ChildPool } from './child-process.ts'
import { nameOf, type DrillCase } from './drill-case.ts'
import type { DrillRole, DrillWorld } from './messages.ts'
import { findMissingIndexes } from './oracle/index-checks.ts'
import { readEnd, type End } from './oracle/ends.ts'
import { agePasses, countAdded, type Added } from './oracle/repeat.ts'
import { hasArrived, isQuiet, judge } from './oracle/judge.ts'
import type { Asked, MadeEvent, Violation } from './oracle/verdict.ts'
import { actsOf, signedEvents, withEvents, type PlayedHistory } from './played-history.ts'
import { madeNow, toldTwice } from './pure/derived-histories.ts'
import type { ArmedFault, CommitFaultMode, CommitProxy } from './proxy/commit-proxy.ts'
import type { DestinationDouble, DestinationFault } from './world/destination-double.ts'
import type { ProviderDouble, ProviderFault } from './world/provider-double.ts'
import type { Scratch } from './world/scratch.ts'
import { createSender, type Sender, type Signed } from './world/sender.ts'

/** Everything that cases share. */
export interface CaseWorld {
  readonly config: ResolvedConfig
  readonly world: DrillWorld
  readonly scratch: Scratch
  readonly proxy: CommitProxy
  readonly provider: ProviderDouble
  readonly destination: DestinationDouble
  readonly pool: ChildPool
}

/** What a case came to. */
export interface CaseResult {
  readonly name: string
  readonly drillCase: DrillCase
  /** Whether what was planned really happened. */
  readonly exercised: boolean
  readonly violations: readonly Violation[]
  readonly end: End | null
  /** From the end of the fault until nothing was left to do, in milliseconds; null where nothing had to recover. */
  readonly recoveryMs: number | null
  readonly tookMs: number
  readonly reached: readonly string[]
}

/** How long a case may take until nothing is left to do, in milliseconds. */
const quietMs = 20_000
/** How long a pass over the provider's records may take, in milliseconds. */
const passesMs = 15_000
/** How long the worker is off in the case of that name, in milliseconds. */
const offMs = 300

const roleOfStep: Readonly<Record<string, DrillRole>> = {
  R: 'receive',
  W: 'work',
  G: 'work',
  D: 'dispatch',
  C: 'reconcile',
}

/** Statements that tell whose commit it is. */
const commitsOf: Readonly<Record<string, RegExp>> = {
  receive: /inbox_events/,
  work: /ledger_decisions/,
  dispatch: /dispatch_round/,
}

/** Plays a case. Never rejects for what the product does. */
export async function runCase(
  shared: CaseWorld,
  played: PlayedHistory,
  drillCase: DrillCase,
): Promise<CaseResult> {
  const run = new CaseRun(shared, played, drillCase)
  return run.play()
}

class CaseRun {
  readonly #shared: CaseWorld
  #played: PlayedHistory
  readonly #case: DrillCase
  readonly #processes: CaseProcesses
  readonly #sender: Sender
  #events: readonly Signed[] = []
  readonly #violations: Violation[] = []
  #armed: ArmedFault | undefined
  #struck = false
  #healedAt: number | null = null
  #isSilencePast = false

  constructor(shared: CaseWorld, played: PlayedHistory, drillCase: DrillCase) {
    this.#shared = shared
    this.#case = drillCase
    this.#played = played
    this.#processes = new CaseProcesses({ pool: shared.pool, ask: shared.scratch.ask })
    this.#sender = createSender(() => this.#processes.port)
  }

  async play(): Promise<CaseResult> {
    const from = performance.now()
    const { scratch, destination, provider, config } = this.#shared
    await scratch.reset()
    if (this.#case.detail === 'shifted') await this.#ask(shiftSequences)
    this.#played = { ...this.#played, history: historyOf(this.#played, this.#case) }
    this.#events = signedEvents(this.#played, config, this.#shared.world)
    destination.reset()
    provider.play(
      this.#played.history,
      this.#events.map(({ body }) => JSON.parse(body.toString()) as object),
    )
    this.#violations.push(...(await this.#ask((db) => findMissingIndexes(db, config.schemaName))))
    let end: End | null = null
    let recoveryMs: number | null = null
    try {
      await this.#live()
      const quiet = await this.#untilQuiet()
      if (quiet && this.#case.kind === 'reconcile') await this.#repeatPass()
      const since = this.#healedAt ?? this.#processes.healedAt
      recoveryMs = since === null ? null : Math.round(performance.now() - since)
      await this.#processes.stop()
      this.#armed?.disarm()
      end = await this.#judge(quiet)
    } catch (error) {
      if (error instanceof ChildFailure)
        this.#violations.push({ fault: 'did_not_start', promise: 'P1', detail: error.message })
      else if (error instanceof ChildGone)
        this.#violations.push({ fault: 'process_died', promise: 'P5', detail: error.message })
      else throw error
    } finally {
      await this.#processes.stop()
      this.#armed?.disarm()
    }
    return {
      name: nameOf(this.#case),
      drillCase: this.#case,
      exercised: this.#hasStruck(),
      violations: this.#violations,
      end,
      recoveryMs,
      tookMs: Math.round(performance.now() - from),
      reached: [...this.#processes.reached],
    }
  }

  #ask<T>(work: (db: Asked) => Promise<T>): Promise<T> {
    return this.#shared.scratch.ask(work)
  }

  async #live(): Promise<void> {
    const { kind, detail } = this.#case
    const isFault = kind === 'kill' || (kind === 'reconcile' && detail !== 'lost')
    const role = isFault ? roleOfStep[detail[0] ?? ''] : undefined
    const plan = isFault ? detail.replace('.', ':1:') : ''
    // a whole history at once is more to lose than its first event
    const isLate = kind === 'off' || role === 'work'
    const hasSends = this.#shared.config.destinations.size > 0
    await Promise.all([
      this.#processes.start('receive', role === 'receive' ? plan : ''),
      ...(isLate ? [] : [this.#processes.start('work')]),
      ...(hasSends ? [this.#processes.start('dispatch', role === 'dispatch' ? plan : '')] : []),
    ])
    this.#processes.keep()
    await this.#begin()
    this.#plant()
    await this.#deliver()
    if (kind === 'off') await sleep(offMs)
    if (isLate) {
      this.#healedAt = kind === 'off' ? performance.now() : null
      await this.#processes.start('work', role === 'work' ? plan : '')
    }
    if (kind === 'reconcile') await this.#processes.start('reconcile', plan)
  }

  /** The app's own acts come first: an order that events may open too is judged by them. */
  async #begin(): Promise<void> {
    const acts = actsOf(this.#played)
    if (acts !== null) await this.#processes.child('receive')?.act(acts)
  }

  #plant(): void {
    const { kind, detail } = this.#case
    const { destination, provider } = this.#shared
    if (kind === 'destination')
      destination.fail([detail as DestinationFault, detail as DestinationFault])
    if (kind === 'provider') provider.fail([detail as ProviderFault, detail as ProviderFault])
    if (kind !== 'commit') return
    const [whose = '', mode = ''] = detail.split('.')
    const arm = (): void => this.#arm(mode as CommitFaultMode, commitsOf[whose])
    // a dispatcher commits all the time: what counts is the commit in which it says what came of a call
    if (whose === 'dispatch') destination.onNextCall(arm)
    else arm()
  }

  #arm(mode: CommitFaultMode, match: RegExp | undefined): void {
    this.#armed = this.#shared.proxy.arm({ mode, ...(match !== undefined && { match }) })
    void this.#armed.struck.then(() => {
      this.#struck = true
      this.#healedAt = performance.now()
    })
  }

  async #deliver(): Promise<void> {
    const { kind, steps } = this.#case
    const events = steps.flatMap((step) => this.#events[step] ?? [])
    switch (kind) {
      case 'simultaneous':
        return this.#all(events.flatMap((event) => [event, event, event, event]))
      case 'duplicate':
        await this.#each(events)
        return this.#each(events)
      case 'postgres': {
        const half = Math.ceil(events.length / 2)
        await this.#each(events.slice(0, half))
        const later = this.#all(events.slice(half))
        await this.#shared.scratch.crash()
        this.#healedAt = performance.now()
        return later
      }
      case 'reconcile':
        // every other event is lost on its way, the first one too
        return this.#each(events.filter((_, at) => at % 2 === 1))
      default:
        return this.#each(events)
    }
  }

  async #each(events: readonly Signed[]): Promise<void> {
    for (const event of events) await this.#sender.deliver(event)
  }

  async #all(events: readonly Signed[]): Promise<void> {
    await Promise.all(events.map((event) => this.#sender.deliver(event)))
  }

  /** Whether what was planned has happened. */
  #hasStruck(): boolean {
    const { kind, detail } = this.#case
    const { destination, provider } = this.#shared
    if (kind === 'kill' || (kind === 'reconcile' && detail !== 'lost'))
      return this.#processes.faults.length > 0
    if (kind === 'commit') return this.#struck
    if (kind === 'destination') return destination.calls.some(({ status }) => status !== 200)
    if (kind === 'provider') return provider.requests > 0 || detail === '-'
    return true
  }

  async #untilQuiet(): Promise<boolean> {
    const until = performance.now() + quietMs
    // a fault that strikes after everything is done still has to be waited for, but not for ever
    const faultUntil = performance.now() + 1500
    let calm = 0
    while (performance.now() < until) {
      await this.#letSilencePass().catch(() => {})
      const quiet = await this.#ask((db) => this.#isDone(db)).catch(() => false)
      calm = quiet ? calm + 1 : 0
      const waits = !this.#hasStruck() && performance.now() < faultUntil
      // asked twice: what was decided may have something sent that is recorded a moment later
      if (calm >= 2 && !waits) return true
      await sleep(25)
    }
    return false
  }

  /** Two more passes: the first may still find what the one before could not, the second adds nothing. */
  async #repeatPass(): Promise<void> {
    const { schemaName } = this.#shared.config
    const count = (): Promise<Added> => this.#ask((db) => countAdded(db, schemaName))
    const passed = async (since: number): Promise<Added | null> => {
      const until = performance.now() + passesMs
      for (;;) {
        const now = await count()
        if (now.passes > since) return now
        if (performance.now() > until) return null
        await sleep(50)
      }
    }
    const before = await passed((await count()).passes)
    const after = before === null ? null : await passed(before.passes + 1)
    if (before === null || after === null)
      this.#violations.push({
        fault: 'stuck',
        promise: 'P7',
        detail: `no pass over the provider's records came to its end within ${passesMs / 1000} s`,
      })
    else if (before.what !== after.what)
      this.#violations.push({
        fault: 'pass_not_repeatable',
        promise: 'P7',
        detail: `there were ${before.what}; another pass over the same records made it ${after.what}`,
      })
  }

  /** A pass whose process is gone has its turn for a minute more: the minute passes, once, when the fault has happened. */
  async #letSilencePass(): Promise<void> {
    const { kind, detail } = this.#case
    if (this.#isSilencePast || kind !== 'reconcile' || detail === 'lost' || !this.#hasStruck())
      return
    await sleep(300)
    await this.#ask((db) => agePasses(db, this.#shared.config.schemaName))
    this.#isSilencePast = true
  }

  async #isDone(db: Asked): Promise<boolean> {
    const { schemaName } = this.#shared.config
    if (!(await isQuiet(db, schemaName))) return false
    return this.#case.kind !== 'reconcile' || hasArrived(db, schemaName, this.#made())
  }

  #made(): readonly MadeEvent[] {
    return this.#events.map(({ eventId, body }) => ({
      eventId,
      created: (JSON.parse(body.toString()) as { created?: number }).created ?? null,
    }))
  }

  async #judge(quiet: boolean): Promise<End> {
    const { config, destination } = this.#shared
    const { schemaName } = config
    const { kind } = this.#case
    for (const how of this.#processes.died)
      this.#violations.push({ fault: 'process_died', promise: 'P5', detail: how })
    if (this.#processes.refused !== null)
      this.#violations.push({
        fault: 'did_not_start',
        promise: 'P5',
        detail: this.#processes.refused,
      })
    const history = {
      deliveries: this.#sender.log,
      calls: destination.calls,
      made: this.#made(),
      complete: kind === 'reconcile',
    }
    const found = await this.#ask((db) => judge(db, schemaName, history, true))
    this.#violations.push(...found)
    if (!quiet && !found.some(({ fault }) => fault === 'stuck'))
      this.#violations.push({
        fault: 'stuck',
        promise: 'P5',
        detail: `it was not done with everything within ${quietMs / 1000} s`,
      })
    return this.#ask((db) => readEnd(db, schemaName))
  }
}

/** Numbers that a run gives out begin elsewhere: what differs then between two runs is of the run. */
async function shiftSequences(db: Asked): Promise<void> {
  await db.query(
    `select setval(format('%I.%I', schemaname, sequencename)::regclass, 1000 * increment_by + coalesce(last_value, start_value)) from pg_sequences`,
  )
}

/** The events that a case plays: the history's own, or those that follow from it. */
export function historyOf(
  { history, refunds }: PlayedHistory,
  { kind }: DrillCase,
): PlayedHistory['history'] {
  if (kind === 'twin') return toldTwice(history) ?? history
  if (kind === 'refund') return withEvents(history, refunds)
  // lists are asked for what was made since the product was installed
  if (kind === 'reconcile') return madeNow(history)
  return history
}
