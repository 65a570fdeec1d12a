/**
 * One pass over one source: events first, then objects kind by kind, then both sides against one another.
 * What could not be gone through is said, and is where the next pass goes on; the rest goes on without it.
 */
import { reach } from '../core/failpoints.ts'
import { RecordsError, type RecordKind, type RecordReference } from '../workflow/records.ts'
import { lastMoves } from './checkpoint.ts'
import { beyondReach } from './beyond-reach.ts'
import type { Coverage } from './coverage.ts'
import { findingOf } from './open-findings.ts'
import { BudgetSpent, type PassContext, type SourceRun, type WalkTarget } from './pass-context.ts'
import type { PassOptions } from './pass-report.ts'
import type { WindowSeen } from './ports.ts'
import { outlast } from './outlast.ts'
import { lookAgain } from './look-again.ts'
import { markCompared } from './runs.ts'
import { settle, spanOf, type InjectedKeys } from './settle.ts'
import { withinReach, type Window } from './slices.ts'
import { sourceIds } from './sources.ts'
import { eventTrack, objectTrack, rangeTrack, type Track } from './track.ts'
import { eventPages, type Injections } from './walk-events.ts'
import { objectPages } from './walk-objects.ts'
import { walk } from './walk.ts'

/** What a run came to beyond its coverage. */
export interface SourceCounts {
  opened: number
  closed: number
}

/** What came in the way, in words; empty: the pass over this source is complete. */
export type Problems = string[]

/** How long events that did not settle in time are waited for again, in milliseconds. */
const onceMoreMs = 1000

/** One pass over one source. */
export class SourcePass {
  readonly counts: SourceCounts = { opened: 0, closed: 0 }
  readonly problems: Problems = []
  readonly #context: PassContext
  readonly #run: SourceRun
  readonly #options: PassOptions
  readonly #coverage: Coverage
  readonly #seen: WindowSeen
  readonly #settledBefore: Date
  readonly #walked: { readonly track: Track; readonly holds: RecordKind['holds'] }[] = []
  #isStopped = false
  /** No list can be asked for any more: whoever was not begun with comes first the next time. */
  #isSpent = false
  #undecided: InjectedKeys | null = null
  readonly #injections: Injections = {
    written: (events) => {
      const keys = events.map(({ eventKey }) => eventKey)
      this.#undecided = spanOf(this.#undecided, keys)
    },
    committed: (events, opened) => {
      this.counts.opened += opened
      if (events.length > 0) this.#context.injected(this.#run.source.name, events.length)
    },
  }
  #isLate = false

  constructor(context: PassContext, run: SourceRun, options: PassOptions, coverage: Coverage) {
    this.#context = context
    this.#run = run
    this.#options = options
    this.#coverage = coverage
    this.#seen = context.comparison.newSeen()
    this.#settledBefore = new Date(run.now.getTime() - context.settings.lagMs)
  }

  /** Where what was decided here begins to be new to this pass. */
  get newFrom(): Date {
    return this.#newFrom(() => true)
  }

  /**
   * A list of events says nothing of what is paid: only objects can contradict what is here. Where only
   * some kinds were gone through, whatever the others would confirm had to be asked for one by one.
   */
  get #comparedFrom(): Date {
    if (this.#options.kinds !== undefined) return this.#settledBefore
    return this.#newFrom((holds) => holds === 'objects')
  }

  #newFrom(counts: (holds: RecordKind['holds']) => boolean): Date {
    const walked = this.#walked.filter(({ holds }) => counts(holds))
    const times = walked.map(({ track }) => track.unseenFrom.getTime())
    return new Date(Math.min(this.#settledBefore.getTime(), ...times))
  }

  /** Somebody ended the pass. */
  stop(): void {
    this.#isStopped = true
    const why = 'it was stopped before its end: the next pass goes on from here'
    if (!this.problems.includes(why)) this.problems.push(why)
  }

  /** Rejects only where nothing of the run can go on: the database, or a function that threw. */
  async run(): Promise<void> {
    const { source } = this.#run
    await this.#attempt(`accounts of ${source.name}`, async () => {
      const accounts = await this.#run.asker.accounts()
      const ids = await outlast(() => sourceIds(this.#context.db, source, accounts))
      for (const account of await this.#inOrder(accounts, ids)) {
        if (this.#isStopped || this.#isSpent) break
        await this.#goThrough(account, ids.get(account) ?? 0)
      }
      await this.#lookAgain(ids)
    })
    if (this.#isStopped) return
    await this.#settle('')
    await this.#compare()
  }

  /** Accounts that waited longest come first: a budget must not end with the same ones every time. */
  async #inOrder(
    accounts: readonly string[],
    ids: ReadonlyMap<string, number>,
  ): Promise<readonly string[]> {
    if (accounts.length < 2) return accounts
    const { db } = this.#context
    const moved = await lastMoves(db, db.schema, [...ids.values()])
    const at = (account: string): number => moved.get(ids.get(account) ?? 0) ?? 0
    return [...accounts].sort((a, b) => at(a) - at(b))
  }

  async #goThrough(account: string, sourceId: number): Promise<void> {
    for (const kind of kindsOf(this.#run.source.source.records.kinds, this.#options.kinds)) {
      if (this.#isStopped || this.#isSpent) return
      const target = { account, sourceId, kind: kind.kind, reachMs: kind.reachMs }
      await this.#attempt(`${kind.kind} of ${account}`, () => this.#goThroughKind(target, kind))
      await this.#settle(account)
    }
  }

  async #goThroughKind(target: WalkTarget, { holds }: RecordKind): Promise<void> {
    const track = await this.#track(target, holds)
    await reach('C0')
    await this.#tellBeyond(target, track)
    const prepare =
      holds === 'events'
        ? eventPages(this.#context, this.#run, target, this.#injections)
        : objectPages(this.#context, this.#run, target, this.#injections, {
            seen: this.#seen,
            settledBefore: this.#settledBefore,
            heldUp: (createdAt) => track.heldUp(createdAt),
          })
    await walk(this.#context, this.#run, target, track, this.#coverage, prepare)
    // a window that was not gone through to its end must not be closed with the others
    this.#walked.push({ track, holds })
  }

  /** Part of whole passes only: a range, or some kinds, say nothing of what is old. */
  async #lookAgain(ids: ReadonlyMap<string, number>): Promise<void> {
    const { kinds, how } = this.#options
    if (this.#isStopped || this.#isSpent || kinds !== undefined || how === 'range') return
    await this.#attempt('looking again', async () => {
      await lookAgain(this.#context, this.#run, ids, this.#injections)
    })
  }

  #track(target: WalkTarget, holds: RecordKind['holds']): Promise<Track> | Track {
    const { how, from, to } = this.#options
    if (how !== 'range')
      return (holds === 'events' ? eventTrack : objectTrack)(this.#context, this.#run, target)
    const until = to !== undefined && to < this.#settledBefore ? to : this.#settledBefore
    const asked = from === undefined || from >= until ? null : { from, to: until }
    return rangeTrack(asked, target.reachMs, this.#run.now, this.#context.settings.sliceMs)
  }

  /** What a provider does not keep any more cannot be found by asking it: a person has to know. */
  async #tellBeyond({ account, kind, reachMs }: WalkTarget, track: Track): Promise<void> {
    const { source, now } = this.#run
    const to = track.window?.to ?? this.#settledBefore
    const asked: Window = { from: track.unseenFrom, to }
    const { beyond } = withinReach(asked, track.unseenFrom, reachMs, now)
    if (beyond === null) return
    const { db, findings } = this.#context
    const text = `${source.source.provider}:${account}:${source.environment}`
    const before = await outlast(() => findingOf(db, findings.id('beyond_reach', text, kind)))
    const found = beyondReach({ source: text, account, kind }, beyond, before?.evidence)
    const counts = await outlast(() => db.transaction((tx) => findings.found(tx, [found])))
    this.counts.opened += counts.opened
  }

  async #settle(account: string): Promise<void> {
    const keys = this.#undecided
    if (keys === null || this.#isStopped) return
    this.#run.progress({ account, step: 'settling', kind: null, reached: null, to: null })
    const { settleMs } = this.#context.settings
    // what did not settle in time once is not waited for at every kind
    const withinMs = this.#isLate ? Math.min(settleMs, onceMoreMs) : settleMs
    await this.#attempt('waiting', async () => {
      const isSettled = await outlast(() => settle(this.#context, this.#run, keys, withinMs))
      if (isSettled) this.#undecided = null
      else this.#isLate = true
    })
  }

  async #compare(): Promise<void> {
    const { asker, signal, source } = this.#run
    this.#run.progress({
      account: source.account,
      step: 'comparing',
      kind: null,
      reached: null,
      to: null,
    })
    await this.#attempt('comparing', async () => {
      const input = {
        source,
        seen: this.#seen,
        localFrom: this.#comparedFrom,
        to: this.#settledBefore,
        settledBefore: this.#settledBefore,
        fetch: (_: unknown, reference: RecordReference) => asker.fetch(reference),
        signal,
      }
      const report = await outlast(() => this.#context.comparison.compareWindow(input))
      this.counts.opened += report.opened
      this.counts.closed += report.closed
      await outlast(() => markCompared(this.#context.db, this.#run.runId))
      for (const { track } of this.#walked) await track.close()
    })
    if (this.#undecided !== null) this.problems.push(notDecided(this.#context.settings.settleMs))
  }

  /** Runs a step; what the provider could not answer is a problem of the pass and no failure of it. */
  async #attempt(what: string, step: () => Promise<void>): Promise<void> {
    try {
      await step()
    } catch (error) {
      if (this.#run.signal.aborted) {
        this.stop()
      } else if (error instanceof BudgetSpent) {
        this.#isSpent = true
        if (!this.problems.includes(error.message)) this.problems.push(error.message)
      } else if (error instanceof RecordsError) {
        // who does not answer one question will not answer the next either
        this.#isStopped = error.trouble === 'unavailable'
        this.problems.push(`${what}: ${error.message}`)
      } else {
        throw error
      }
    }
  }
}

/** Events first: what they bring need not be made from objects. */
function kindsOf(
  kinds: readonly RecordKind[],
  only: readonly string[] | undefined,
): readonly RecordKind[] {
  const wanted = kinds.filter(({ kind }) => only === undefined || only.includes(kind))
  return [
    ...wanted.filter(({ holds }) => holds === 'events'),
    ...wanted.filter(({ holds }) => holds === 'objects'),
  ]
}

function notDecided(settleMs: number): string {
  return `events that were put into the inbox were not decided within ${settleMs / 1000} s: see that a worker runs, and a gatherer where a workflow asks its provider (hookledger start); the next pass compares what they come to`
}
