/**
 * What to do about what is wrong, the worst first: what keeps paying customers waiting comes before what only a
 * person can end, and that before what is late. Pure.
 */
import type { OverviewFacts } from './overview-facts.ts'
import type { Reference } from './reference.ts'

/** One thing to do. */
export interface Advice {
  /** Stable, for what reads it: `no_worker`. */
  readonly code: string
  readonly text: string
  /** What to look at; null where it is about a process. */
  readonly kind: Reference['kind'] | null
  readonly id: string | null
}

/** Something due for so long while its process should be there deserves a question, in milliseconds. */
const lateMs = 60_000
/** How old a checkpoint may be, in milliseconds. */
const checkpointMs = 3_600_000
/** A run that did not show itself for so long was left behind by a process that died, in milliseconds. */
const silentMs = 300_000

/** Everything that there is to do. */
export function adviceOf(facts: OverviewFacts): Advice[] {
  return [
    ...schemaAdvice(facts),
    ...workAdvice(facts),
    ...personAdvice(facts),
    ...sendAdvice(facts),
    ...reconcileAdvice(facts),
  ]
}

function advice(code: string, text: string, about: Reference | null = null): Advice {
  return { code, text, kind: about?.kind ?? null, id: about?.id ?? null }
}

function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

function at(facts: OverviewFacts, role: string): number {
  return facts.processes.filter((each) => each.alive && each.roles.includes(role)).length
}

function schemaAdvice({ schema }: OverviewFacts): Advice[] {
  if (schema.drift !== 'older') return []
  return [
    advice(
      'schema_older',
      `the database is at migration ${schema.migration}, this version knows ${schema.newest}: hookledger migrate`,
    ),
  ]
}

function workAdvice(facts: OverviewFacts): Advice[] {
  const { unserved, stages, decided_last_minute: decided, gathering } = facts
  const waiting = plural(unserved.events, 'event')
  const isGathering = (stages.find(({ stage }) => stage === 'gathering')?.unfinished ?? 0) > 0
  const told: Advice[] = []
  const onlyGathering =
    isGathering && stages.every(({ stage, unfinished }) => stage !== 'inbox' || unfinished === 0)
  if (unserved.events > 0 && !onlyGathering) {
    if (at(facts, 'work') === 0 && decided === 0)
      told.push(
        advice(
          'no_worker',
          `${waiting} arrived and nothing works on them: start a worker (hookledger start --roles work)`,
        ),
      )
    else if (decided === 0)
      told.push(
        advice(
          'worker_stuck',
          `${waiting} arrived, a worker runs, and nothing was decided in the last minute: see its log`,
        ),
      )
  }
  const unasked =
    gathering !== null &&
    gathering.failing === 0 &&
    gathering.paused.length === 0 &&
    (gathering.oldest_age_ms ?? 0) > lateMs
  if (unasked)
    told.push(
      advice(
        'no_gatherer',
        'nothing is being asked of providers: start a gatherer (hookledger start --roles gather)',
      ),
    )
  return told
}

function personAdvice(facts: OverviewFacts): Advice[] {
  const { firsts, findings, unserved, stages } = facts
  const dead = stages.find(({ stage }) => stage === 'inbox')?.dead ?? 0
  const [unservedOrder] = unserved.items.filter(({ about }) => about.kind !== 'event')
  const told: Advice[] = []
  if (dead > 0)
    told.push(
      advice(
        'dead_events',
        `${plural(dead, 'dead event')}: mend what made them fail, then replay`,
        firsts.dead_event,
      ),
    )
  if (facts.asking > 0)
    told.push(
      advice(
        'operations_ask',
        `${plural(facts.asking, 'operation')} that only a person can end`,
        firsts.asking_operation,
      ),
    )
  if (unservedOrder !== undefined)
    told.push(
      advice(
        'unserved',
        `${unservedOrder.order_id === null ? 'somebody' : `order ${unservedOrder.order_id}`}: ${unservedOrder.why}`,
        unservedOrder.about,
      ),
    )
  if (findings.overdue > 0)
    told.push(
      advice('findings_overdue', `${plural(findings.overdue, 'finding')} overdue`, firsts.finding),
    )
  else if (findings.contradiction > 0)
    told.push(
      advice(
        'contradictions',
        `${plural(findings.contradiction, 'contradiction')} that a person decides`,
        firsts.finding,
      ),
    )
  const overdue = stages.find(({ stage }) => stage === 'waiting')?.overdue ?? 0
  if (overdue > 0)
    told.push(
      advice(
        'waits_overdue',
        `${plural(overdue, 'event waits', 'events wait')} past the deadline`,
        firsts.overdue_event,
      ),
    )
  return told
}

function sendAdvice(facts: OverviewFacts): Advice[] {
  const late = facts.destinations.filter(
    (each) => (each.oldest_due_age_ms ?? 0) > lateMs && each.closed_until === null,
  )
  const paused = facts.destinations.filter((each) => each.closed_until !== null)
  const names = late.map((each) => each.destination).join(', ')
  return [
    ...(late.length === 0
      ? []
      : [
          advice(
            'dispatch_late',
            at(facts, 'dispatch') === 0
              ? `operations to ${names} are due and nothing sends them: start a dispatcher (hookledger start --roles dispatch)`
              : `operations to ${names} are late: does a dispatcher run that knows them, and is its limit enough?`,
          ),
        ]),
    ...paused.map((each) =>
      advice(
        'destination_paused',
        `${each.destination} is left alone until ${each.closed_until}: it failed ${plural(each.failures, 'time')} in a row`,
      ),
    ),
  ]
}

function reconcileAdvice({ checkpoints, runs, repairs, at: now }: OverviewFacts): Advice[] {
  const newest = runs.filter(
    (run, index) => runs.findIndex((each) => each.source === run.source) === index,
  )
  const late = checkpoints.filter((each) => each.age_ms > checkpointMs)
  return [
    ...newest
      .filter((run) => run.state === 'failed' || run.state === 'incomplete')
      .map((run) =>
        advice(
          'pass_failed',
          `the last pass over ${run.source} is ${run.state}: ${run.error ?? 'it gave no reason'}`,
        ),
      ),
    ...newest
      .filter(
        (run) => run.state === 'running' && Date.parse(now) - Date.parse(run.seen_at) > silentMs,
      )
      .map((run) =>
        advice(
          'pass_left',
          `a pass over ${run.source} stopped in the middle: the next one goes on there (hookledger reconcile)`,
        ),
      ),
    ...(late.length === 0
      ? []
      : [
          advice(
            'reconcile_late',
            'nothing of the last hour was compared with the provider: does a reconciler run? (hookledger start --roles reconcile)',
          ),
        ]),
    ...((repairs.oldest_unverified_age_ms ?? 0) <= checkpointMs
      ? []
      : [
          advice(
            'repairs_unverified',
            `${plural(repairs.unverified, 'repair')} not verified: hookledger reconcile asks the provider again`,
          ),
        ]),
  ]
}
