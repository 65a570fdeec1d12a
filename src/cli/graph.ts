/** `hookledger graph [WORKFLOW]`: a workflow as a Mermaid diagram. */
import type { CommandDef } from 'citty'
import { HookledgerError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'
import { graph } from '../report/graph.ts'
import { command } from './command.ts'
import { openProject } from './project.ts'

/** The command. */
export const graphCommand: CommandDef = command(
  { name: 'graph', description: 'Workflows as Mermaid state diagrams' },
  {
    workflow: {
      type: 'positional',
      description: 'One workflow; all of them without it',
      required: false,
    },
  },
  async ({ args, out, world }) => {
    const { workflows } = (await openProject(world, args.config)).parts.config
    const names = workflows.map((each) => each.name)
    const chosen =
      args.workflow === undefined
        ? workflows
        : workflows.filter((each) => each.name === args.workflow)
    if (args.workflow !== undefined && chosen.length === 0) {
      const near = nearest(args.workflow, names)
      throw new HookledgerError(
        'HKL_NOT_FOUND',
        `no workflow is named "${args.workflow}"${near === null ? `; the configuration has ${names.join(', ') || 'none'}` : `, did you mean "${near}"?`}`,
      )
    }
    if (out.json)
      out.rows(
        chosen.map((each) => ({
          workflow: each.name,
          version: each.version,
          mermaid: graph(each),
        })),
        () => '',
      )
    else out.text(chosen.map((each) => graph(each)).join('\n\n'))
    return 0
  },
)
