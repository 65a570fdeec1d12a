/**
 * `hookledger outbox retry|resolve|discard`: what a person decides about an operation. Who and why are
 * recorded in the commit of what it changes.
 */
import type { CommandDef } from 'citty'
import { outboxActs, type OutboxActs } from '../compose/outbox.ts'
import { HookledgerError } from '../core/errors.ts'
import type { Database } from '../postgres/executor.ts'
import { installation } from '../postgres/migrate.ts'
import { nextStep } from '../report/operation-story.ts'
import { listOperations } from '../report/operations.ts'
import { command, usageError, type CommandWorld } from './command.ts'
import type { ExitCode } from './exit-codes.ts'
import { requireOperation } from './named-operation.ts'
import type { Output } from './output.ts'
import { withDatabase } from './project.ts'
import { actorOf } from './replay.ts'
import { plural } from './table.ts'

const idArg = {
  type: 'positional',
  description: 'Its id or its first six characters, its key, or the key of outbox.add',
} as const

const byArgs = {
  reason: { type: 'string', description: 'Why; required, and recorded with the act' },
  actor: { type: 'string', description: 'Who; the user of the operating system without it' },
} as const

type By = Parameters<OutboxActs['discard']>[1]
type Report = Awaited<ReturnType<OutboxActs['discard']>>

/** What an act needs beside the operation. */
interface Acting {
  readonly db: Database
  readonly acts: OutboxActs
  readonly by: By
}

/** The command that sends an operation again. */
export const retryCommand: CommandDef = command(
  { name: 'retry', description: 'Sends a dead or uncertain operation again' },
  {
    id: { ...idArg, required: false },
    destination: {
      type: 'string',
      description: 'All to this destination that wait for a person, instead of one',
      valueHint: 'NAME',
    },
    ...byArgs,
  },
  async ({ args, out, world }) => {
    const { id, destination } = args
    if ((id === undefined) === (destination === undefined))
      throw usageError('say what to send again: one operation, or --destination NAME')
    return acting(world, args, async (context) =>
      destination === undefined
        ? actOnOne(context, out, id ?? '', (each) => context.acts.retry(each, context.by))
        : retryAll(context, out, destination),
    )
  },
)

/** The command that records what a person found out. */
export const resolveCommand: CommandDef = command(
  {
    name: 'resolve',
    description: 'Says whether an operation was done, after a look at its destination',
  },
  {
    id: { ...idArg, required: true },
    as: {
      type: 'enum',
      description: 'sent: it was done, and ends; not-done: it was not, and is sent again',
      options: ['sent', 'not-done'],
    },
    ...byArgs,
  },
  async ({ args, out, world }) => {
    if (args.as === undefined) throw usageError('--as is missing: sent, or not-done')
    const resolution = { as: args.as === 'sent' ? 'sent' : 'not_done' } as const
    return acting(world, args, async (context) =>
      actOnOne(context, out, args.id, (id) => context.acts.resolve(id, resolution, context.by)),
    )
  },
)

/** The command that ends an operation without sending it. */
export const discardCommand: CommandDef = command(
  { name: 'discard', description: 'Ends a dead or uncertain operation; it is not sent any more' },
  { id: { ...idArg, required: true }, ...byArgs },
  async ({ args, out, world }) =>
    acting(world, args, async (context) =>
      actOnOne(context, out, args.id, (id) => context.acts.discard(id, context.by)),
    ),
)

/** @throws HookledgerError HKL_CLI_USAGE without a reason: an act that nobody can explain later is none */
async function acting(
  world: CommandWorld,
  args: {
    readonly config?: string | undefined
    readonly reason?: string | undefined
    readonly actor?: string | undefined
  },
  work: (context: Acting) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { reason } = args
  if (reason === undefined || reason.trim() === '')
    throw usageError('--reason is missing: it is recorded with the act')
  const by = { reason, actor: args.actor ?? actorOf(world) }
  return withDatabase(world, args.config, async (db, { parts }) => {
    const { destinations, findings: policy, limits } = parts.config
    const { id: installationId } = await installation(db)
    const { signals } = parts
    return work({
      db,
      acts: outboxActs({ db, installationId, destinations, policy, limits, signals }),
      by,
    })
  })
}

async function actOnOne(
  { db }: Acting,
  out: Output,
  named: string,
  act: (id: string) => Promise<Report>,
): Promise<ExitCode> {
  const { operation_id: id } = await requireOperation(db, named)
  const report = await act(id)
  out.result(
    {
      operation_id: id,
      destination: report.destination,
      order_id: report.orderId,
      from: report.from,
      to: report.to,
      key_generation: report.keyGeneration,
      attempts: report.attempts,
    },
    (safe) =>
      `${id} to ${safe.destination} was ${safe.from} and is ${safe.to}${nextOf(safe.to)}: hookledger outbox show ${id}`,
  )
  return 0
}

function nextOf(state: Report['to']): string {
  if (state === 'pending') return ', due now'
  return state === 'uncertain' ? ', tried again now' : ''
}

const atOnce = 500

/**
 * All that wait for a person, each in a commit of its own, with its own record. What changed meanwhile is left
 * alone, and so is what nobody but a person can tell the outcome of.
 */
async function retryAll(
  { db, acts, by }: Acting,
  out: Output,
  destination: string,
): Promise<ExitCode> {
  const counts = { retried: 0, changed: 0, undecided: 0 }
  for (let after: string | undefined; ;) {
    const states = ['dead', 'uncertain']
    const asking = await listOperations(db, { states, destination, after, limit: atOnce })
    for (const operation of asking.filter((each) => nextStep(each).asks)) {
      counts[await retryOne(acts, operation.operation_id, by)]++
      out.progress(`${counts.retried} retried`)
    }
    after = asking.at(-1)?.sequence
    if (asking.length < atOnce) break
  }
  out.result({ destination, ...counts }, (safe) =>
    [
      `${plural(safe.retried, 'operation')} to ${safe.destination} tried again now`,
      ...(safe.changed === 0 ? [] : [`${safe.changed} did not wait for a person any more`]),
      ...(safe.undecided === 0
        ? []
        : [
            `${safe.undecided} may have been done, and ${safe.destination} can no longer tell: ` +
              'find out, then "hookledger outbox resolve ID --as sent" (or "--as not-done")',
          ]),
    ].join('\n'),
  )
  return 0
}

async function retryOne(
  acts: OutboxActs,
  id: string,
  by: By,
): Promise<'retried' | 'changed' | 'undecided'> {
  try {
    await acts.retry(id, by)
    return 'retried'
  } catch (error) {
    const code = error instanceof HookledgerError ? error.code : null
    if (code === 'HKL_OUTBOX_NOT_OPEN') return 'changed'
    if (code === 'HKL_OUTBOX_UNDECIDED') return 'undecided'
    throw error
  }
}
