/** A child process of `drill`: one role of the product, to be killed at any step. */
import type { CommandDef } from 'citty'
import { runDrillChild } from '../drill/child.ts'
import type { ChildOrder, ChildReport, DrillWorld } from '../drill/messages.ts'
import { command, usageError } from './command.ts'
import { openProject } from './project.ts'

/** The variable in which a child finds the world that it is in. */
export const worldVariable = 'HOOKLEDGER_DRILL'

/** The command. */
export const drillChildCommand: CommandDef = command(
  { name: 'internal-drill', description: 'A child process of drill', hidden: true },
  {},
  async ({ args, world }) => {
    const text = process.env[worldVariable]
    if (process.send === undefined || text === undefined)
      throw usageError('internal-drill is started by drill')
    // signals of the terminal are the parent's to answer
    process.on('SIGINT', () => {})
    const ended = new Promise<void>((resolve) => process.once('disconnect', () => resolve()))
    const { loaded } = await openProject(world, args.config)
    runDrillChild(loaded, JSON.parse(text) as DrillWorld, {
      send: (report: ChildReport) => {
        if (process.connected) process.send?.(report, undefined, undefined, () => {})
      },
      onOrder: (take) => void process.on('message', (order: ChildOrder) => take(order)),
    })
    await ended
    return 0
  },
)
