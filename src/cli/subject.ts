/**
 * `hookledger subject link|merge`: says which subject a provider's customer is, and makes two subjects one. Who
 * and why are recorded in the commit of what it changes.
 */
import type { CommandDef } from 'citty'
import { linkCustomer, mergeSubjects, subjectNow } from '../compose/subjects.ts'
import { command, commandGroup, usageError, type CommandWorld } from './command.ts'
import { withDatabase } from './project.ts'
import { actorOf } from './replay.ts'

const byArgs = {
  reason: { type: 'string', description: 'Why; required, and recorded with it' },
  actor: { type: 'string', description: 'Who; the user of the operating system without it' },
} as const

const linkCommand: CommandDef = command(
  { name: 'link', description: "Says which subject a provider's customer is" },
  {
    customer: { type: 'positional', description: "The provider's id: cus_1", required: true },
    subject: { type: 'positional', description: 'Who that is: org:7', required: true },
    source: {
      type: 'string',
      description: 'The source that knows the customer; needed where there are several',
      valueHint: 'NAME',
    },
    account: {
      type: 'string',
      description: "The provider account that knows the customer; the source's own without it",
      valueHint: 'ACCOUNT',
    },
    replace: { type: 'boolean', description: 'Also where another subject is linked' },
    ...byArgs,
  },
  async ({ args, out, world }) => {
    const by = reasonOf(args, world)
    return withDatabase(world, args.config, async (db, { parts: { config } }) => {
      const { customer, subject, account, replace } = args
      const source = args.source ?? onlyOf([...config.sources.keys()])
      const request = { source, account, customer, subject, replace, ...by }
      const outcome = await db.transaction((tx) => linkCustomer({ db, config }, tx, request))
      out.result({ customer, subject, source, outcome }, (safe) =>
        safe.outcome === 'linked'
          ? `customer ${safe.customer} of ${safe.source} is ${safe.subject} from now on; what waited for it is decided by the next worker`
          : `customer ${safe.customer} of ${safe.source} was ${safe.subject} before; nothing changed`,
      )
      return 0
    })
  },
)

const mergeCommand: CommandDef = command(
  { name: 'merge', description: 'Makes two subjects one, for good' },
  {
    from: { type: 'positional', description: 'What becomes the other: user:42', required: true },
    into: { type: 'positional', description: 'What it becomes: org:7', required: true },
    ...byArgs,
  },
  async ({ args, out, world }) => {
    const by = reasonOf(args, world)
    return withDatabase(world, args.config, async (db) => {
      const { from, into } = args
      const [outcome, now] = await db.transaction(async (tx) => {
        const merged = await mergeSubjects(db, tx, { from, into, ...by })
        // where `into` was merged itself, it is what that one became
        return [merged, await subjectNow(db, tx, into)] as const
      })
      out.result({ from, into, now, outcome }, (safe) =>
        safe.outcome === 'merged'
          ? `${safe.from} is ${safe.now} from now on: what it has, and will be granted, is of ${safe.now}`
          : `${safe.from} was ${safe.now} before; nothing changed`,
      )
      return 0
    })
  },
)

/** The commands about subjects. */
export const subjectCommand: CommandDef = commandGroup(
  { name: 'subject', description: "Who a provider's customer is, and which subjects are one" },
  { link: linkCommand, merge: mergeCommand },
)

function reasonOf(
  { reason, actor }: { readonly reason?: string | undefined; readonly actor?: string | undefined },
  world: CommandWorld,
): { readonly reason: string; readonly actor: string } {
  if (reason === undefined || reason.trim() === '')
    throw usageError('--reason is missing: it is recorded with it')
  return { reason, actor: actor ?? actorOf(world) }
}

function onlyOf(sources: readonly string[]): string {
  const [only] = sources
  if (only !== undefined && sources.length === 1) return only
  throw usageError(`--source is missing: one of ${sources.join(', ')}`)
}
