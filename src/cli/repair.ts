/**
 * `hookledger repair plan|apply`: what would be done about a finding, and doing it. Who and why are recorded
 * in the commit of what it changes; a plan is applied once, however often it is asked for.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { CommandDef } from 'citty'
import { differences, repairsOf, type GivenPlan, type Repairs } from '../compose/repairs.ts'
import { HookledgerError } from '../core/errors.ts'
import { toJson } from '../core/json.ts'
import type { FindingView } from '../report/findings.ts'
import { command, commandGroup, usageError, type CommandWorld } from './command.ts'
import type { ExitCode } from './exit-codes.ts'
import { requireFinding } from './named-finding.ts'
import type { Output } from './output.ts'
import { withDatabase } from './project.ts'
import { actorOf } from './replay.ts'
import { choiceLines, planJson, planText, reportJson, reportText } from './repair-text.ts'

const findingArg = {
  type: 'positional',
  description: "The finding's id, or the first six characters or more",
  required: true,
} as const

const choiceArgs = {
  choice: {
    type: 'string',
    description: 'What to do, where there are several ways: refund, compensate, keep, …',
    valueHint: 'CHOICE',
  },
  to: {
    type: 'string',
    description: 'The state that the order is to be in, whatever the transitions',
    valueHint: 'STATE',
  },
} as const

const planCommand: CommandDef = command(
  { name: 'plan', description: 'What a repair of a finding would change; changes nothing' },
  { finding: findingArg, ...choiceArgs },
  async ({ args, out, world }) =>
    withRepairs(world, args, out, async (repairs, finding) => {
      const { choice, to } = args
      const plan = await repairs.plan(finding.finding_id, { choice, to })
      if (plan === null) {
        out.result({ finding_id: finding.finding_id, plan: null }, () => agreedText(finding))
        return 0
      }
      out.result(planJson(plan), (_, style) => planText(plan, finding, style))
      return 0
    }),
)

const applyCommand: CommandDef = command(
  { name: 'apply', description: 'Repairs a finding: by a fresh plan, or by exactly the given one' },
  {
    finding: findingArg,
    ...choiceArgs,
    plan: {
      type: 'string',
      description: 'What repair plan --json printed; refused when anything changed since',
      valueHint: 'FILE',
    },
    reason: { type: 'string', description: 'Why; required, and recorded with the repair' },
    actor: { type: 'string', description: 'Who; the user of the operating system without it' },
  },
  async ({ args, out, world }) => {
    const { reason, choice, to } = args
    if (reason === undefined || reason.trim() === '')
      throw usageError('--reason is missing: it is recorded with the repair')
    if (args.plan !== undefined && (choice !== undefined || to !== undefined))
      throw usageError('--plan says what is to be done: leave --choice and --to out')
    const given = args.plan === undefined ? undefined : readPlan(resolve(world.cwd, args.plan))
    return withRepairs(world, args, out, async (repairs, finding) => {
      if (given !== undefined && given.finding_id !== finding.finding_id)
        throw usageError(`the plan in ${args.plan} is for finding ${given.finding_id}`)
      const by = { reason, actor: args.actor ?? actorOf(world) }
      const report = await repairs.apply(finding.finding_id, by, {
        choice,
        to,
        given: given?.plan,
      })
      out.result(reportJson(report), (_, style) => reportText(report, style))
      return 0
    })
  },
)

/** The commands about repairs. */
export const repairCommand: CommandDef = commandGroup(
  { name: 'repair', description: 'What is done about a finding: plan, apply' },
  { plan: planCommand, apply: applyCommand },
  'plan',
)

/** Finds the finding. Where somebody must choose, the choices are the result, and it ends with 2. */
async function withRepairs(
  world: CommandWorld,
  args: { readonly config?: string | undefined; readonly finding: string },
  out: Output,
  work: (repairs: Repairs, finding: FindingView) => Promise<ExitCode>,
): Promise<ExitCode> {
  return withDatabase(world, args.config, async (db, { parts }) => {
    const finding = await requireFinding(db, args.finding)
    const repairs = await repairsOf({ db, config: parts.config, signals: parts.signals })
    try {
      return await work(repairs, finding)
    } catch (error) {
      const lines = choiceLines(error)
      if (lines === null) throw error
      out.result(
        { finding_id: finding.finding_id, plan: null, why: lines.why, choices: lines.choices },
        () => lines.offers.join('\n'),
      )
      throw new HookledgerError('HKL_REPAIR_CHOICE', lines.why, { cause: error })
    }
  })
}

function agreedText({ finding_id: id }: FindingView): string {
  return `both sides agree by now: there is nothing to repair, and hookledger repair apply ${id.slice(0, 8)} closes the finding`
}

interface GivenFile {
  readonly finding_id: string
  readonly plan: GivenPlan
}

/**
 * The plan that somebody has read. Nothing of it is carried out: it is made again, and must come out the same.
 *
 * @throws HookledgerError HKL_CLI_USAGE for a file that holds none
 */
function readPlan(file: string): GivenFile {
  let read: unknown
  try {
    read = JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    throw usageError(`${file} is not a file of JSON: write it with "hookledger repair plan --json"`)
  }
  const fields = (typeof read === 'object' && read !== null ? read : {}) as Record<string, unknown>
  const { plan_id: id, finding_id: findingId, choice } = fields
  if (typeof id !== 'string' || typeof findingId !== 'string' || typeof choice !== 'string')
    throw usageError(`${file} holds no plan: write it with "hookledger repair plan --json"`)
  if (!/^[0-9a-f-]{36}$/.test(id)) throw usageError(`${file}: plan_id is not the id of a plan`)
  return {
    finding_id: findingId,
    plan: {
      id,
      choice,
      differences: (now) => differences(told(JSON.parse(toJson(planJson(now)))), told(fields)),
    },
  }
}

/** A plan without what only tells of it. */
function told(plan: Readonly<Record<string, unknown>>): object {
  const { plan_id: _, summary: __, choices: ___, ...content } = plan
  return content
}
