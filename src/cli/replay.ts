/**
 * `hookledger replay`: the same path again for one event, a filter, or all dead. Who and why are
 * recorded; an event with a final decision answers with it.
 */
import type { CommandDef } from 'citty'
import { userInfo } from 'node:os'
import type { Database } from '../postgres/executor.ts'
import { planReplay, replayMany, type ReplayPlan, type ReplayReport } from '../inbox/replay-many.ts'
import type { ReplayFilter } from '../inbox/replay-lookup.ts'
import {
  replayEvent,
  type ReplayableState,
  type ReplayAnswer,
  type ReplayReason,
} from '../inbox/replay.ts'
import { command, usageError, type CommandWorld } from './command.ts'
import type { ExitCode } from './exit-codes.ts'
import type { Output } from './output.ts'
import { runDryRun } from './dry-run.ts'
import { withDatabase } from './project.ts'
import { runRedecide } from './redecide.ts'
import { plural } from './table.ts'
import { optionalTime } from './time-option.ts'

/** The options of every act of an operator, and which of several sources is meant. */
export const reasonArgs = {
  reason: { type: 'string', description: 'Why; recorded with the act' },
  actor: { type: 'string', description: 'Who; the user of the operating system without it' },
  source: { type: 'string', description: 'Of this source only', valueHint: 'PROVIDER:ACCOUNT' },
  since: { type: 'string', description: 'Received at this time or later', valueHint: 'TIME' },
  until: { type: 'string', description: 'Received before this time', valueHint: 'TIME' },
} as const

const states = [
  'dead',
  'ignored',
  'deferred',
  'delayed',
] as const satisfies readonly ReplayableState[]

/** The command. */
export const replayCommand: CommandDef = command(
  {
    name: 'replay',
    description: 'Sends an event, a filter of them, or all dead ones down the same path again',
  },
  {
    event: { type: 'positional', description: "The provider's event id", required: false },
    'all-dead': { type: 'boolean', description: 'All dead events' },
    all: {
      type: 'boolean',
      description: 'Everything ever received; what is decided stays as it is',
    },
    type: {
      type: 'string',
      description: 'Events of these types (repeat it, or commas)',
      valueHint: 'TYPE',
    },
    state: {
      type: 'string',
      description: `Of these states only: ${states.join(', ')}`,
      valueHint: 'STATE',
    },
    redecide: {
      type: 'boolean',
      description: 'Decides one event anew that was skipped or contradicted; needs --reason',
    },
    plan: { type: 'boolean', description: 'With --redecide: says what would change, and ends' },
    'dry-run': {
      type: 'boolean',
      description: 'With --since: decides history anew, writes nothing, tells what would differ',
    },
    ...reasonArgs,
  },
  async ({ args, list, out, world }) => {
    const onlyDead = args['all-dead'] === true
    const named = list('state').map(stateNamed)
    const others = onlyDead || args.all === true || named.length > 0 || list('type').length > 0
    if (args['dry-run'] === true) {
      if (others || args.event !== undefined || args.redecide === true || args.until !== undefined)
        throw usageError('--dry-run goes with --since alone: it decides all that came since then')
      return runDryRun({
        world,
        out,
        config: args.config,
        since: optionalTime('since', args.since),
      })
    }
    if (args.redecide === true) {
      const { event, source, reason, actor = actorOf(world) } = args
      if (event === undefined || others || args.since !== undefined || args.until !== undefined)
        throw usageError(
          '--redecide is about one event: give its id, and nothing else to choose by',
        )
      return runRedecide({
        world,
        out,
        config: args.config,
        event: { id: event, source },
        by: { reason, actor },
        onlyPlan: args.plan === true,
      })
    }
    if (args.plan === true) throw usageError('--plan goes with --redecide')
    if (onlyDead && named.length > 0)
      throw usageError('--all-dead and --state say the same thing twice: give one of them')
    return runReplay({
      world,
      out,
      config: args.config,
      event: args.event,
      types: list('type'),
      states: onlyDead ? ['dead'] : named.length > 0 ? named : states,
      all: onlyDead || args.all === true || named.length > 0,
      args,
    })
  },
)

function stateNamed(name: string): ReplayableState {
  const state = states.find((each) => each === name)
  if (state === undefined)
    throw usageError(`--state must be of ${states.join(', ')}, not "${name}"`)
  return state
}

/** What a replay was asked to do. */
export interface ReplayRequest {
  readonly world: CommandWorld
  readonly out: Output
  readonly config: string | undefined
  readonly event: string | undefined
  readonly types: readonly string[]
  readonly states: readonly ReplayableState[]
  /** Whether everything in these states is meant; a filter by type or time says so as well. */
  readonly all: boolean
  readonly args: {
    readonly reason?: string | undefined
    readonly actor?: string | undefined
    readonly source?: string | undefined
    readonly since?: string | undefined
    readonly until?: string | undefined
  }
}

/** Runs a replay and tells what it did. */
export async function runReplay(request: ReplayRequest): Promise<ExitCode> {
  const { world, out, event, types, all, args } = request
  const filter = {
    types,
    source: args.source,
    since: optionalTime('since', args.since),
    until: optionalTime('until', args.until),
  }
  const filtered = types.length > 0 || filter.since !== undefined || filter.until !== undefined
  if (event !== undefined && (all || filtered))
    throw usageError('give one event, or what many have in common, not both')
  if (event === undefined && !all && !filtered) {
    throw usageError('say what to replay: an event id, --all-dead, --type TYPE, or --all')
  }
  const by = { reason: args.reason ?? 'replayed by hand', actor: args.actor ?? actorOf(world) }
  return withDatabase(world, request.config, async (db) =>
    event === undefined
      ? replayFiltered(db, request, filter, by)
      : replayOne(db, out, { id: event, source: args.source }, by),
  )
}

/** The operating system's name of who runs this. */
export function actorOf(world: CommandWorld): string {
  if (world.environment.user !== undefined) return world.environment.user
  try {
    return userInfo().username
  } catch {
    return 'operator' // an id without a name, as in many containers
  }
}

async function replayOne(
  db: Database,
  out: Output,
  event: { readonly id: string; readonly source: string | undefined },
  by: ReplayReason,
): Promise<ExitCode> {
  const answer = await replayEvent(db, event, by)
  out.result({ event_id: event.id, ...answer }, (safe) => answerText(safe.event_id, safe))
  return 0
}

function answerText(id: string, answer: ReplayAnswer): string {
  switch (answer.outcome) {
    case 'replayed':
      return `${id} was ${answer.from} and is pending again: hookledger explain ${id}`
    case 'pending':
      return `${id} is pending already: a worker takes it next`
    case 'recorded': {
      const { decision } = answer
      const moved =
        decision.to_state === null || decision.from_state === decision.to_state
          ? ''
          : ` ${decision.from_state} → ${decision.to_state}`
      const order = decision.order_id === null ? '' : ` about order ${decision.order_id}`
      return `${id} has its final decision: ${decision.kind}${moved}${order}, because ${decision.reason} (decision ${decision.decision_id}); nothing changed`
    }
  }
}

async function replayFiltered(
  db: Database,
  { out, states }: ReplayRequest,
  filter: ReplayFilter,
  by: ReplayReason,
): Promise<ExitCode> {
  const plan = await planReplay(db, filter, states)
  out.note(planText(plan))
  const interruption = new AbortController()
  const interrupt = (): void => interruption.abort()
  process.once('SIGINT', interrupt)
  try {
    const report = await replayMany(db, filter, plan, by, {
      signal: interruption.signal,
      onProgress: (each) => out.progress(`${each.replayed} replayed`),
    })
    out.result({ matched: plan.matched, ...report }, (safe) => reportText(safe))
    if (interruption.signal.aborted) return 130
    return report.expired > 0 ? 1 : 0
  } finally {
    process.off('SIGINT', interrupt)
  }
}

function planText(plan: ReplayPlan): string {
  const parts = plan.states.map((state) => `${plan.matched[state] ?? 0} ${state}`)
  const recorded =
    plan.recorded === 0
      ? ''
      : `; ${plural(plan.recorded, 'event')} with a final decision will not be touched`
  return `matched: ${parts.join(', ')}${recorded}`
}

function reportText(report: ReplayReport): string {
  return [
    `${plural(report.replayed, 'event')} pending again`,
    ...(report.recorded === 0 ? [] : [`${report.recorded} keep their recorded decision`]),
    ...(report.expired === 0 ? [] : [`${report.expired} not replayed: payload expired`]),
    ...(report.busy === 0 ? [] : [`${report.busy} in work already`]),
  ].join('\n')
}
