/**
 * Runs a batch to its end: what made it fail is taken out, and the rest goes on. A failing batch is
 * split until the bad event is alone; a lock that somebody else holds is yielded to at once.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { classify, sqlstateOf } from '../postgres/sqlstate.ts'
import { linkedOutcome } from '../workflow/caused-by.ts'
import { deadOutcome } from '../workflow/orderless-outcome.ts'
import { judgeEventFailure, remedyOf, type EventFailure } from './batch-failure.ts'
import { claim, claimSetup, type Selection } from './claim.ts'
import type { UnopenedEvent } from './decided-batch.ts'
import { readClaimed } from './read-claimed.ts'
import { notGathered } from './ask-parts.ts'
import { inboxParts } from './outcome-parts.ts'
import { workBatch, type BatchMode, type BatchReport, type WorkContext } from './work-batch.ts'

/** The most times one batch is run again for the same keys before the loop backs off. */
const maxReruns = 6

/** Collects what the parts of one claim came to. */
export interface RunReport {
  readonly settled: BatchReport['settled'][number][]
  /** Keys that were looked at, so that the scan can go on after them. */
  readonly claimed: bigint[]
  /** Keys that wait for an answer of the provider from now on. */
  readonly asked: bigint[]
  /** Keys that stay on the ready list, and why they should not be claimed again at once. */
  readonly left: bigint[]
  readonly cooling: bigint[]
  /** Keys of events that failed, and are tried again. */
  readonly retried: bigint[]
}

/**
 * Claims and runs one selection; throws only what no other run can mend now. `onClaimed` is told the
 * keys as soon as they are locked.
 */
export async function runBatch(
  ctx: WorkContext,
  selection: Selection,
  onClaimed: (keys: readonly bigint[]) => void = () => {},
): Promise<RunReport> {
  const report = emptyReport()
  await runSelection({ ...ctx, onClaimed }, selection, wholeMode, report, 0)
  return report
}

/** Runs the suspect that is longest due, alone. One that cannot run now makes room for the next. */
export async function runSuspect(ctx: WorkContext): Promise<RunReport> {
  const report = emptyReport()
  const seen: bigint[] = []
  try {
    await runSelection(withWatch(ctx, seen), { kind: 'suspect' }, wholeMode, report, 0)
    await putOff(ctx, report.left)
  } catch (error) {
    await putOff(ctx, seen).catch(() => {})
    throw error
  }
  return report
}

/** Tries one event again that had to wait for somebody; patience is short, since nothing else goes on meanwhile. */
export async function runCooled(ctx: WorkContext, key: bigint): Promise<RunReport> {
  const report = emptyReport()
  await runGroups(ctx, [[key]], report)
  return report
}

const wholeMode: BatchMode = { openNew: true, checkPayers: false }

/** How long a part of a batch waits for a lock that made the whole of it wait in vain, in milliseconds. */
const partLockTimeoutMs = 50

function emptyReport(): RunReport {
  return { settled: [], claimed: [], asked: [], left: [], cooling: [], retried: [] }
}

async function putOff(ctx: WorkContext, keys: readonly bigint[]): Promise<void> {
  if (keys.length === 0) return
  await ctx.db.query({
    text: `update ${ctx.db.schema}inbox_suspects set due_at = now() + interval '2 seconds' where event_key = any ($1::bigint[])`,
    values: [keys.map(String)],
  })
}

async function runSelection(
  ctx: WorkContext,
  selection: Selection,
  mode: BatchMode,
  report: RunReport,
  reruns: number,
): Promise<void> {
  const seen: bigint[] = []
  try {
    const done = await workBatch(withWatch(ctx, seen), selection, mode)
    report.settled.push(...done.settled)
    report.retried.push(...done.retried.map(({ row }) => row.key))
    report.asked.push(...done.asked)
    report.claimed.push(...done.claimed)
    report.left.push(...done.left)
    if (selection.kind !== 'suspect') await runGroups(ctx, grouped(done.unopened), report)
  } catch (error) {
    if (reruns >= maxReruns)
      return exhausted(ctx, error, keysOf(selection, seen), mode, report, reruns)
    await remedy(ctx, error, keysOf(selection, seen), mode, report, reruns)
  }
}

/** The keys that a failed run had claimed; its selection may have been "the next ones". */
function keysOf(selection: Selection, seen: readonly bigint[]): Selection {
  const [first] = seen
  if (first === undefined) return selection
  return selection.kind === 'suspect'
    ? { kind: 'suspect', key: first }
    : { kind: 'these', keys: [...seen] }
}

async function remedy(
  ctx: WorkContext,
  error: unknown,
  selection: Selection,
  mode: BatchMode,
  report: RunReport,
  reruns: number,
): Promise<void> {
  const again = (next: Selection, nextMode: BatchMode = mode): Promise<void> =>
    runSelection(ctx, next, nextMode, report, reruns + 1)
  switch (remedyOf(error)) {
    case 'without_event': {
      const { key, cause } = error as EventFailure
      await failEvent(ctx, selection, key, cause, report)
      if (selection.kind !== 'these') return
      const others = selection.keys.filter((each) => each !== key)
      if (others.length === 0) return
      // a batch full of failing events would otherwise be run as often as it has events
      if (reruns < 3) return again({ kind: 'these', keys: others })
      for (const other of others) await runGroups(ctx, [[other]], report)
      return
    }
    case 'decide_again':
      return again(selection, { ...mode, checkPayers: true })
    case 'without_new_orders':
      if (mode.openNew) return again(selection, { ...mode, openNew: false })
      // not an order that would be opened: a name, or the row of an order that the app is opening
      if (selection.kind === 'these')
        return runGroups(
          ctx,
          selection.keys.map((key) => [key]),
          report,
        )
      report.left.push(
        ...(selection.kind === 'suspect' && selection.key !== undefined ? [selection.key] : []),
      )
      return
    case 'run_again':
      await sleep(10 * 2 ** reruns * (0.5 + Math.random()))
      return again(selection)
    case 'split':
      return split(ctx, error, selection, mode, report, reruns)
    default:
      throw error
  }
}

/** Somebody else's lock, no free connection, a server that starts: no event is to blame. */
const crowded: ReadonlySet<string> = new Set(['55P03', '53300', '57P03'])

/**
 * What failed as often as it may, and always as something that another run can mend: it may be one of
 * the events after all (a trigger of the app's that refuses at COMMIT), and the others need not wait for
 * it. Where nothing answers, there is nothing to part.
 */
async function exhausted(
  ctx: WorkContext,
  error: unknown,
  selection: Selection,
  mode: BatchMode,
  report: RunReport,
  reruns: number,
): Promise<void> {
  const state = sqlstateOf(error)
  const isRefusal = state !== undefined && !crowded.has(state) && classify(error) === 'retry'
  // a fault of code: of what it was given, no connection throws these
  const isFault = error instanceof TypeError || error instanceof RangeError
  if (!isRefusal && !isFault) throw error
  return split(ctx, error, selection, mode, report, reruns)
}

async function split(
  ctx: WorkContext,
  error: unknown,
  selection: Selection,
  mode: BatchMode,
  report: RunReport,
  reruns: number,
): Promise<void> {
  if (selection.kind === 'suspect' && selection.key !== undefined)
    return failEvent(ctx, selection, selection.key, error, report)
  if (selection.kind !== 'these') throw error
  const { keys } = selection
  const [only] = keys
  if (keys.length === 1 && only !== undefined) return failEvent(ctx, selection, only, error, report)
  const middle = Math.ceil(keys.length / 2)
  for (const half of [keys.slice(0, middle), keys.slice(middle)]) {
    // halving is not repeating: it may go as deep as it must
    await runSelection(ctx, { kind: 'these', keys: half }, mode, report, Math.min(reruns, 1))
  }
}

/**
 * Runs groups of events in as few batches as can be. Where one has to wait for somebody, the others are
 * parted from it by halves; the group that is left alone with its wait cools down.
 */
async function runGroups(
  ctx: WorkContext,
  groups: readonly (readonly bigint[])[],
  report: RunReport,
): Promise<void> {
  if (groups.length === 0) return
  const { limits } = ctx
  const hasty = {
    ...ctx,
    limits: { ...limits, lockTimeoutMs: Math.min(limits.lockTimeoutMs, partLockTimeoutMs) },
  }
  const selection: Selection = { kind: 'these', keys: groups.flat() }
  try {
    const done = await workBatch(hasty, selection, wholeMode)
    report.settled.push(...done.settled)
    report.retried.push(...done.retried.map(({ row }) => row.key))
    report.asked.push(...done.asked)
    report.left.push(...done.left)
  } catch (error) {
    if (remedyOf(error) !== 'without_new_orders')
      return remedy(ctx, error, selection, wholeMode, report, 0)
    if (groups.length === 1) return void report.cooling.push(...selection.keys)
    const middle = Math.ceil(groups.length / 2)
    await runGroups(ctx, groups.slice(0, middle), report)
    await runGroups(ctx, groups.slice(middle), report)
  }
}

/** Events of one order or name wait for the same transaction: they stay together. */
function grouped(events: readonly UnopenedEvent[]): bigint[][] {
  const groups = new Map<string, bigint[]>()
  for (const { key, group } of events) groups.set(group, [...(groups.get(group) ?? []), key])
  return [...groups.values()]
}

/** Records the failure of one event in a transaction of its own: tried again later, or dead. */
async function failEvent(
  ctx: WorkContext,
  selection: Selection,
  key: bigint,
  error: unknown,
  report: RunReport,
): Promise<void> {
  const { db, ledger, limits, worker, reading } = ctx
  const own: Selection =
    selection.kind === 'suspect' ? { kind: 'suspect', key } : { kind: 'these', keys: [key] }
  let isRetried = false
  const dead = await db.transaction(
    async (tx) => {
      const rows = await claim(db, tx, own)
      const [found] = await readClaimed(db, tx, rows, reading)
      // another worker has it, or has finished it
      if (found === undefined || found.finished) return []
      const verdict = judgeEventFailure(error, found.row.attempts, limits)
      const outcome = verdict.dead
        ? linkedOutcome(deadOutcome(found.event, found.decisionId, verdict.reason))
        : null
      const settled = outcome === null ? [] : [{ row: found.row, outcome, waits: [] }]
      isRetried = outcome === null
      const parts = inboxParts(db.schema, {
        from: own.kind === 'suspect' ? 'inbox_suspects' : 'inbox_ready',
        taken: [found.row],
        settled,
        retried: verdict.dead
          ? []
          : [{ row: found.row, delayMs: verdict.delayMs, error: verdict.error }],
        defaultDeferralMs: limits.deferralMs,
        operatorOnly: new Set(verdict.dead && verdict.poison === true ? [found.row.key] : []),
        wakes: [],
        batchId: null,
      })
      if (verdict.dead) parts.push(notGathered(db.schema, [found.row.key.toString()]))
      const { source } = found.event
      await ledger.apply(
        tx,
        {
          decided: settled.map((each) => ({
            outcome: each.outcome,
            attempts: found.row.attempts + 1,
            recorded: true,
          })),
          before: new Map(),
          after: new Map(),
          findings: settled.flatMap((each) =>
            each.outcome.findings.map((draft) => ({
              draft,
              source: `${source.provider}:${source.account}:${source.environment}`,
              orderId: null,
              eventKey: found.event.key,
            })),
          ),
          closedFindings: [],
          actor: worker,
        },
        parts,
      )
      return settled
    },
    { setup: claimSetup(limits) },
  )
  report.settled.push(...dead)
  if (isRetried) report.retried.push(key)
}

/** Remembers which keys a run claimed, for the run after it, should it fail. */
function withWatch(ctx: WorkContext, seen: bigint[]): WorkContext {
  return {
    ...ctx,
    onClaimed: (keys) => {
      seen.push(...keys)
      ctx.onClaimed?.(keys)
    },
  }
}
