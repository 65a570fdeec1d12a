/**
 * `hookledger shadow list|end`: where workflows in shadow differ from what the app itself gives, and the end
 * of a shadow, when what they state begins to count.
 */
import type { CommandDef } from 'citty'
import { compareShadow, endShadow } from '../compose/shadow.ts'
import { listShadowDifferences, type ShadowDifferenceView } from '../report/shadow.ts'
import { command, commandGroup, usageError } from './command.ts'
import { rowLimit } from './limit.ts'
import { withDatabase } from './project.ts'
import { actorOf } from './replay.ts'
import { columns, plural } from './table.ts'

const listCommand: CommandDef = command(
  {
    name: 'list',
    description: 'Asks the app what it gives, and lists where workflows in shadow differ',
  },
  {
    last: { type: 'boolean', description: 'What the last comparison found; asks nobody' },
    limit: { type: 'string', description: 'At most so many (100)', valueHint: 'N' },
  },
  async ({ args, out, world }) =>
    withDatabase(world, args.config, async (db, { parts }) => {
      const limit = rowLimit(args.limit)
      if (args.last !== true) {
        const compared = await compareShadow(db, parts.config, (subjects) =>
          out.progress(`${subjects} subjects compared`),
        )
        const young =
          compared.tooYoung === 0
            ? ''
            : `, ${compared.tooYoung} changed a moment ago and were left to the next look`
        out.note(`${plural(compared.subjects, 'subject')} compared${young}`)
      }
      const rows = await listShadowDifferences(db, limit + 1)
      out.rows(rows.slice(0, limit), differencesText)
      if (rows.length > limit) out.note(`only the first ${limit}: more with --limit`)
      return rows.length === 0 ? 0 : 3
    }),
)

const endCommand: CommandDef = command(
  { name: 'end', description: 'Lets what a workflow stated in shadow count from now on' },
  {
    workflow: { type: 'positional', description: 'Its name', required: true },
    reason: { type: 'string', description: 'Why; required, and recorded with every decision' },
    actor: { type: 'string', description: 'Who; the user of the operating system without it' },
  },
  async ({ args, out, world }) => {
    const { reason, workflow } = args
    if (reason === undefined || reason.trim() === '')
      throw usageError('--reason is missing: it is recorded with every decision')
    const by = { reason, actor: args.actor ?? actorOf(world) }
    const interruption = new AbortController()
    const interrupt = (): void => interruption.abort()
    process.once('SIGINT', interrupt)
    try {
      return await withDatabase(world, args.config, async (db, { parts }) => {
        const report = await endShadow(db, parts.config, workflow, by, {
          signal: interruption.signal,
          onProgress: (orders) => out.progress(`${orders} orders`),
        })
        out.result(
          report,
          (safe) =>
            `${safe.workflow}: ${plural(safe.entitlements, 'entitlement')} of ${plural(safe.orders, 'order')} ${safe.entitlements === 1 ? 'counts' : 'count'} from now on${safe.complete ? '' : '; interrupted: run it again for the rest'}`,
        )
        return report.complete ? 0 : 130
      })
    } finally {
      process.off('SIGINT', interrupt)
    }
  },
)

/** The commands about shadows. */
export const shadowCommand: CommandDef = commandGroup(
  {
    name: 'shadow',
    description: 'Workflows in shadow: where they differ from the app, and the end',
  },
  { list: listCommand, end: endCommand },
  'list',
)

const words: Readonly<Record<string, string>> = {
  only_here: 'only here',
  only_there: 'only by the app',
  quantity: 'another quantity',
  valid_until: 'another end',
}

function differencesText(rows: readonly ShadowDifferenceView[]): string {
  if (rows.length === 0) return 'no difference'
  const lines = rows.map((row) => [
    row.subject,
    row.entitlement,
    words[row.kind] ?? row.kind,
    figures(row.here),
    figures(row.there),
    row.order_ids.join(', '),
  ])
  return columns([['subject', 'entitlement', '', 'here', 'app', 'orders'], ...lines])
}

function figures(answer: unknown): string {
  if (typeof answer !== 'object' || answer === null) return '-'
  const parts = Object.entries(answer).map(([name, value]) => `${name} ${String(value ?? 'none')}`)
  return parts.join(', ') || 'yes'
}
