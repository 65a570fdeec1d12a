/** `hookledger explain ID`: the readable story of an order, event, name, payment, subject, customer, operation or finding. */
import type { CommandDef } from 'citty'
import { HookledgerError } from '../core/errors.ts'
import { explain } from '../report/explain.ts'
import { command } from './command.ts'
import { explainText } from './explain-text.ts'
import { withDatabase } from './project.ts'
import { sequencedOf } from './sequenced.ts'

/** The command. */
export const explainCommand: CommandDef = command(
  {
    name: 'explain',
    description:
      'What happened to an order, an event, a name (pi_…), a payment, a subject, a customer, an operation or a finding, and why',
  },
  { id: { type: 'positional', description: 'Any of these ids', required: true } },
  async ({ args, out, world }) =>
    withDatabase(world, args.config, async (db, { parts }) => {
      const found = await explain(db, args.id, sequencedOf(parts))
      if (found === null) {
        throw new HookledgerError(
          'HKL_NOT_FOUND',
          `nothing is known of ${JSON.stringify(args.id)}: it is no order, event, name, payment, effect, subject, customer, operation or finding of schema ${db.schemaName}; ` +
            `try "hookledger status" (has anything arrived?), "hookledger findings list", or the id that your provider shows`,
        )
      }
      out.result(found, explainText)
      return 0
    }),
)
