/** `hookledger dev`: everything in one go, with a simulation of the demo shop where it is asked for. */
import type { CommandDef } from 'citty'
import { HookledgerError } from '../core/errors.ts'
import { command } from './command.ts'
import { findConfigFile } from './config-file.ts'
import { defaultPort, DevSession } from './dev-session.ts'
import { portOf } from './start.ts'

/** The command. */
export const devCommand: CommandDef = command(
  {
    name: 'dev',
    description: 'Everything in one go, on an embedded PostgreSQL unless DATABASE_URL is set',
  },
  {
    simulate: {
      type: 'boolean',
      description: 'Play a few hundred orders of the demo shop at the simulated provider',
      negativeDescription: 'Start quiet',
    },
    orders: { type: 'string', description: 'How many orders to simulate (300)', valueHint: 'N' },
    port: { type: 'string', description: `PORT without it, else ${defaultPort} or a free one` },
    host: { type: 'string', description: 'HOST without it, else 127.0.0.1' },
    console: {
      type: 'boolean',
      description: 'Serve the console (so it is)',
      negativeDescription: 'Leave the console out',
      default: true,
    },
  },
  async ({ args, out, world }) => {
    world.environment.checkAll()
    const port = portOf(args.port) ?? world.environment.port
    const host = args.host ?? world.environment.host ?? '127.0.0.1'
    const file = findConfigFile(world.cwd, args.config)
    const session = new DevSession(world, out)
    return session.run({
      file,
      port,
      host,
      console: args.console !== false,
      simulated: args.simulate === true ? ordersOf(args.orders) : null,
    })
  },
)

function ordersOf(text: string | undefined): number {
  const orders = Number(text ?? 300)
  if (Number.isInteger(orders) && orders > 0 && orders <= 100_000) return orders
  throw new HookledgerError(
    'HKL_CLI_USAGE',
    `--orders must be a whole number from 1 to 100000, not "${text}"`,
  )
}
