/**
 * `hookledger erase`: what a subject leaves behind goes, for good. The plan is shown without `--apply`; with it, the
 * subject is typed a second time.
 */
import type { CommandDef } from 'citty'
import { applyErasure, nextOf, planErasure, type ErasureReport } from '../compose/erase.ts'
import { command, usageError } from './command.ts'
import { withDatabase } from './project.ts'
import { actorOf } from './replay.ts'
import { plural } from './table.ts'

/** The command. */
export const eraseCommand: CommandDef = command(
  { name: 'erase', description: 'Erases a subject: bytes go, ids, hashes and decisions stay' },
  {
    subject: { type: 'positional', description: 'Whom: user:42', required: true },
    also: {
      type: 'string',
      description: 'Another text that stands for the person, an email address say (repeat it)',
      valueHint: 'TEXT',
    },
    apply: { type: 'boolean', description: 'Does it; without it the plan is shown' },
    confirm: {
      type: 'string',
      description: 'With --apply: the subject, typed again',
      valueHint: 'SUBJECT',
    },
    'give-up': {
      type: 'boolean',
      description: 'Gives up events that wait or are dead: they would need their bodies',
    },
    reason: { type: 'string', description: 'Why; required with --apply, and recorded' },
    actor: { type: 'string', description: 'Who; the user of the operating system without it' },
  },
  async ({ args, list, out, world }) => {
    const { subject, reason, confirm } = args
    const also = list('also')
    if (args.apply !== true)
      return withDatabase(world, args.config, async (db) => {
        out.result(await planErasure(db, { subject, also }), planText)
        return 0
      })
    if (reason === undefined || reason.trim() === '')
      throw usageError('--reason is missing: it is recorded with the erasure')
    if (confirm !== subject)
      throw usageError('--confirm must be the subject, typed again: nobody can take it back')
    const actor = args.actor ?? actorOf(world)
    const giveUp = args['give-up']
    return withDatabase(world, args.config, async (db) => {
      const request = { subject, also, reason, actor, confirm, giveUp }
      out.result(await applyErasure(db, request), doneText)
      return 0
    })
  },
)

function planText(plan: ErasureReport): string {
  return [
    `${plan.subjects.join(', ')}: ${plural(plan.orders, 'order')}, ${plural(plan.events, 'event')}, ${plural(plan.decisions, 'decision')}`,
    `would go: ${bytesText(plan)}; the subject becomes a pseudonym`,
    ...plan.active.map(
      ({ order_id: order, entitlement }) =>
        `still active: ${entitlement} of order ${order}, which nobody asks for under this name afterwards`,
    ),
    ...(plan.kept_ids.length === 0
      ? []
      : [`these ids hold the text themselves, and stay: ${plan.kept_ids.join(', ')}`]),
    ...plan.unfinished.map(({ id, state }) => `not finished: ${id} is ${state}`),
    plan.unfinished.length === 0
      ? `nothing was changed; to do it: hookledger erase ${plan.confirm} --apply --confirm ${plan.confirm} --reason '…'`
      : `nothing was changed; first: ${nextOf(plan.unfinished)}`,
  ].join('\n')
}

function doneText(done: ErasureReport): string {
  return `erased: ${bytesText(done)} are gone; the subject is ${done.pseudonym} now, in ${plural(done.orders, 'order')} (act ${done.act_id})`
}

function bytesText({ bodies, evidence, requests, answers }: ErasureReport): string {
  return [
    bodies === 1 ? '1 body' : `${bodies} bodies`,
    `${plural(evidence, 'answer')} of providers`,
    plural(requests, 'request'),
    `${plural(answers, 'answer')} of destinations`,
  ].join(', ')
}
