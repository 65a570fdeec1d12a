/**
 * `hookledger outbox retry|resolve|discard`: what a person decides about an operation. Who and why are
 * recorded in the commit of what it changes.
 */
import type { CommandDef } from 'citty'
import { outboxActs, type OutboxActs } from '../compose/outbox.ts'
import type { Database } from '../postgres/executor.ts'
import { installation } from '../postgres/migrate.ts'
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
  description: 'Its id or key, or the first six characters or more',
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
      description: 'All dead operations to this destination, instead of one',
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
        : retryDead(context, out, destination),
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

/** Each in a commit of its own, with its own record; those that changed meanwhile are left alone. */
async function retryDead(
  { db, acts, by }: Acting,
  out: Output,
  destination: string,
): Promise<ExitCode> {
  let retried = 0
  let changed = 0
  for (let after: string | undefined; ;) {
    const dead = await listOperations(db, { states: ['dead'], destination, after, limit: atOnce })
    for (const { operation_id: id } of dead) {
      try {
        await acts.retry(id, by)
        retried++
      } catch (error) {
        if (!isNotOpen(error)) throw error
        changed++
      }
      out.progress(`${retried} retried`)
    }
    after = dead.at(-1)?.sequence
    if (dead.length < atOnce) break
  }
  out.result({ destination, retried, changed }, (safe) =>
    [
      `${plural(safe.retried, 'operation')} to ${safe.destination} pending again`,
      ...(safe.changed === 0 ? [] : [`${safe.changed} were not dead any more`]),
    ].join('\n'),
  )
  return 0
}

function isNotOpen(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'HKL_OUTBOX_NOT_OPEN'
}
