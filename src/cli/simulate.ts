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
import { demoChances } from '../testing/simulation/delivery-plan.ts'
import { runSimulation } from '../testing/simulation/run-simulation.ts'
import type {
  SimulationProgress,
  SimulationResult,
} from '../testing/simulation/simulation-report.ts'
import type { SimulatedOrder } from '../testing/simulation/simulated-order.ts'
import { tamperWith } from '../testing/simulation/tampering.ts'
import { createRandom } from '../testing/stripe-double/random.ts'
import type { WebhookSender } from '../testing/stripe-double/webhook-sender.ts'
import { usageError, type CommandWorld } from './command.ts'
import type { Output } from './output.ts'
import type { Project } from './project.ts'
import type { Mail } from './mail.ts'
import type { Provider } from './provider.ts'
import { isMailSettled, reportMail } from './simulate-mail.ts'
import { reportTeams, subscriptionsOf } from './simulate-teams.ts'
import {
  isReconciledPast,
  reportReconciliation,
  timeIn,
  type Seeded,
} from './simulate-reconciliation.ts'
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
const settleMs = 60_000
/**
 * How long the summary waits for a pass after the lag, in milliseconds: whoever killed the worker meanwhile sees the
 * next one begin only when the last one's turn is over.
 */
const reconcileMs = 60_000
/** How late the simulated provider's lists show a record, in milliseconds. */
const listLagMs = 1000
/** One order of so many is tampered with. */
const ordersPerTampering = 50
/** One organization subscribes for so many orders. */
const ordersPerOrganization = 10
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
  double.setListLag(listLagMs)
  const result = await runSimulation({
    double,
    sender,
    orders: options.orders,
    organizations: hasTeams(options.project)
      ? Math.ceil(options.orders / ordersPerOrganization)
      : 0,
    seed,
    signal,
    chances: demoChances,
    onProgress: (progress) => out.progress(progressText(progress)),
    ...(options.project.loaded.routes === undefined
      ? {}
      : { openOrder: (order: SimulatedOrder) => openOrder(options.url, order) }),
  })
  if (result.stopped || !(await settled(options))) return
  const count = Math.floor(options.orders / ordersPerTampering)
  const random = createRandom(seed).fork('tampering')
  const tampered = await persistently(() => tamperWith(db, result, count, random))
  const past = await reconciled(options)
  if (past === null || !(await settled(options))) return
  mail.double?.misbehave(null)
  out.progress('audit: every promise as a query')
  const seeded = { lost: result.lost, tampered }
  const report = await persistently(() => reportOf(options, result, seeded, past))
  out.result(report, (safe, style) => simulationText(safe, world.program, style))
  out.text('simulation finished')
}

/** Whether the configuration is the demo's own, with the subscriptions of organizations. */
function hasTeams({ parts }: Project): boolean {
  return parts.config.workflows.some((workflow) => workflow.name === 'saas')
}

function progressText(progress: SimulationProgress): string {
  const { begun, total, deliveries, acknowledged, failedAttempts } = progress
  const failed = failedAttempts === 0 ? '' : `, ${failedAttempts} to be sent again`
  return `simulating: ${begun} of ${total} orders and subscribers, ${deliveries} deliveries sent, ${acknowledged} answered 200${failed}`
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

/**
 * Waits until a pass has come to its end that looked at all of the simulation: one that began after its end plus
 * the lag. Answers with that moment; null when it was stopped meanwhile.
 */
async function reconciled({ db, out, signal, project }: SimulateOptions): Promise<string | null> {
  const { reconcile, reconcileByHand, sources } = project.parts.config
  const { lagMs } = reconcileByHand
  const past = await persistently(() => timeIn(db, lagMs))
  const runs = reconcile !== null && [...sources.values()].some(({ source }) => source.records)
  if (!runs) return past
  const until = performance.now() + lagMs + reconcileMs
  while (!signal.aborted && performance.now() < until) {
    if (await persistently(() => isReconciledPast(db, past))) return past
    out.progress(
      "waiting for a pass over the provider's own records that began after the last event",
    )
    await sleep(250)
  }
  return signal.aborted ? null : past
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
  { db, project, mail, provider: { double } }: SimulateOptions,
  result: SimulationResult,
  seeded: Seeded,
  past: string,
): Promise<SimulationReport> {
  const { limits } = project.parts.config
  const tampered = new Set(seeded.tampered.map((each) => each.orderId))
  const audited = await audit(db, { ...defaultAuditLimits, pendingMs: limits.deferralMs })
  const now = await status(db)
  const byScenario = (scenario: SimulatedOrder['scenario']): string | undefined =>
    result.orders.find((order) => order.scenario === scenario)?.id
  return {
    counts: result.counts,
    elapsed_ms: result.elapsedMs,
    now,
    effects: await countEffects(db),
    teams: await reportTeams(db, double, result.organizations),
    emails: await reportMail(
      db,
      [...result.outcomes.keys(), ...subscriptionsOf(double, result.organizations)],
      mail.double,
    ),
    reconciliation: await reportReconciliation(db, seeded, past),
    differences: (await differencesOf(db, result))
      .filter(({ id }) => !tampered.has(id))
      .map(({ text }) => text),
    audit: {
      holds: audited.holds,
      broken: audited.checks.filter((each) => !each.holds).map((each) => each.check),
      known: audited.checks.reduce((sum, each) => sum + each.known, 0),
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
async function differencesOf(
  db: Database,
  result: SimulationResult,
): Promise<{ readonly id: string; readonly text: string }[]> {
  const rows = await orderResults(db, [...result.outcomes.keys()], 'license')
  const found = new Map(rows.map((row) => [row.order_id, row]))
  const differences: { id: string; text: string }[] = []
  for (const [id, expected] of result.outcomes) {
    const row = found.get(id) ?? { state: 'pending', entitled: false, effects: 0 }
    if (row.state !== expected.state)
      differences.push({
        id,
        text: `order ${id} is ${row.state}, the provider says ${expected.state}`,
      })
    else if (row.entitled !== expected.entitled)
      differences.push({
        id,
        text: `order ${id} ${row.entitled ? 'entitles' : 'does not entitle'}, the provider says otherwise`,
      })
    else if (row.effects !== expected.licenses)
      differences.push({
        id,
        text: `order ${id} has ${row.effects} licenses, the provider says ${expected.licenses}`,
      })
  }
  return differences
}
