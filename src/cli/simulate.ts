/**
 * The simulation of `dev`: orders of the demo shop lived through at the simulated provider, delivered
 * as real webhooks, and then compared with what the database says.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../postgres/executor.ts'
import { audit, defaultAuditLimits } from '../report/audit.ts'
import { status } from '../report/status.ts'
import { countEffects, isWorkedOff, orderResults } from '../report/summary.ts'
import { seededMailFaults } from '../testing/mail-double/mail-faults.ts'
import { runSimulation } from '../testing/simulation/run-simulation.ts'
import type {
  SimulationProgress,
  SimulationResult,
} from '../testing/simulation/simulation-report.ts'
import type { SimulatedOrder } from '../testing/simulation/simulated-order.ts'
import type { WebhookSender } from '../testing/stripe-double/webhook-sender.ts'
import { usageError, type CommandWorld } from './command.ts'
import type { Output } from './output.ts'
import type { Project } from './project.ts'
import type { Mail } from './mail.ts'
import type { Provider } from './provider.ts'
import { isMailSettled, reportMail } from './simulate-mail.ts'
import { simulationText, type SimulationReport } from './simulate-text.ts'

/** What a simulation needs. */
export interface SimulateOptions {
  readonly world: CommandWorld
  readonly out: Output
  readonly project: Project
  readonly provider: Provider
  readonly mail: Mail
  readonly sender: WebhookSender
  readonly db: Database
  /** Where the receiver and the shop's routes are. */
  readonly url: string
  readonly orders: number
  readonly signal: AbortSignal
}

/** How long the last events may take to be decided and the last emails to be sent, in milliseconds. */
const settleMs = 20_000
/** The share of calls to the simulated mail service that go wrong. */
const mailFaultShare = 0.2

/** @throws HookledgerError HKL_CLI_USAGE unless the configuration is one that the simulation can play. */
export function requireDemoShop(project: Project): void {
  const { sources, workflows } = project.parts.config
  const plays = [...sources.values()].some(
    ({ name, source }) => name === 'stripe' && source.provider === 'stripe',
  )
  if (plays && workflows.some((workflow) => workflow.name === 'license')) return
  throw usageError(
    '--simulate plays the demo shop: its configuration has a source "stripe" and a workflow "license"',
  )
}

/** Runs a simulation and tells what it came to; the last line is `simulation finished`. */
export async function simulate(options: SimulateOptions): Promise<void> {
  const { out, provider, mail, sender, signal, db, world } = options
  const { double } = provider
  const seed = `demo ${double.log.entries('event').length}`
  mail.double?.misbehave(seededMailFaults(seed, mailFaultShare))
  const result = await runSimulation({
    double,
    sender,
    orders: options.orders,
    seed,
    signal,
    onProgress: (progress) => out.progress(progressText(progress)),
    ...(options.project.loaded.routes === undefined
      ? {}
      : { openOrder: (order: SimulatedOrder) => openOrder(options.url, order) }),
  })
  if (result.stopped || !(await settled(options))) return
  mail.double?.misbehave(null)
  out.progress('audit: every promise as a query')
  const report = await persistently(() => reportOf(db, result, options))
  out.result(report, (safe, style) => simulationText(safe, world.program, style))
  out.text('simulation finished')
}

function progressText(progress: SimulationProgress): string {
  const { begun, total, deliveries, acknowledged, failedAttempts } = progress
  const failed = failedAttempts === 0 ? '' : `, ${failedAttempts} to be sent again`
  return `simulating: ${begun} of ${total} orders and subscriptions, ${deliveries} deliveries sent, ${acknowledged} answered 200${failed}`
}

/** The shop's own checkout. */
async function openOrder(url: string, order: SimulatedOrder): Promise<void> {
  const response = await fetch(`${url}/orders`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      id: order.id,
      email: order.email,
      amount: order.amount,
      currency: order.currency.toUpperCase(),
    }),
    signal: AbortSignal.timeout(10_000),
  })
  // 409 is an answer, too: the order exists with other figures
  if (!response.ok && response.status !== 409)
    throw new Error(`the shop answered ${response.status}`)
  await response.arrayBuffer()
}

/** Waits until nothing is pending and no email under way; false when it was stopped meanwhile. */
async function settled({ db, out, signal }: SimulateOptions): Promise<boolean> {
  const until = performance.now() + settleMs
  while (!signal.aborted && performance.now() < until) {
    const isDecided = await persistently(() => isWorkedOff(db))
    if (isDecided && (await persistently(() => isMailSettled(db)))) return true
    out.progress(`waiting until every ${isDecided ? 'email is sent' : 'event is decided'}`)
    await sleep(100)
  }
  return !signal.aborted
}

/** Whoever plays with this kills the database, too: it comes back, and so does the question. */
async function persistently<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      if (attempt === 10) throw error
      await sleep(500)
    }
  }
}

async function reportOf(
  db: Database,
  result: SimulationResult,
  { project, mail }: SimulateOptions,
): Promise<SimulationReport> {
  const { limits } = project.parts.config
  const audited = await audit(db, { ...defaultAuditLimits, pendingMs: limits.deferralMs })
  const now = await status(db)
  const byScenario = (scenario: SimulatedOrder['scenario']): string | undefined =>
    result.orders.find((order) => order.scenario === scenario)?.id
  return {
    counts: result.counts,
    elapsed_ms: result.elapsedMs,
    now,
    effects: await countEffects(db),
    emails: await reportMail(db, [...result.outcomes.keys()], mail.double),
    differences: await differencesOf(db, result),
    audit: {
      holds: audited.holds,
      broken: audited.checks.filter((each) => !each.holds).map((each) => each.check),
    },
    examples: [
      byScenario('paid_twice'),
      byScenario('refunded_in_parts'),
      byScenario('underpaid'),
    ].filter((id) => id !== undefined),
    emails_url: mail.double === null ? null : mail.url,
  }
}

/** What the database says otherwise than the provider's own objects. */
async function differencesOf(db: Database, result: SimulationResult): Promise<string[]> {
  const found = new Map(
    (await orderResults(db, [...result.outcomes.keys()], 'license')).map((row) => [
      row.order_id,
      row,
    ]),
  )
  const differences: string[] = []
  for (const [id, expected] of result.outcomes) {
    const row = found.get(id) ?? { state: 'pending', entitled: false, effects: 0 }
    if (row.state !== expected.state)
      differences.push(`order ${id} is ${row.state}, the provider says ${expected.state}`)
    else if (row.entitled !== expected.entitled)
      differences.push(
        `order ${id} ${row.entitled ? 'entitles' : 'does not entitle'}, the provider says otherwise`,
      )
    else if (row.effects !== expected.licenses)
      differences.push(
        `order ${id} has ${row.effects} licenses, the provider says ${expected.licenses}`,
      )
  }
  return differences
}
