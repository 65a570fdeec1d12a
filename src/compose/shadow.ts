/**
 * Compares what workflows in shadow would give with what the app itself gives, and ends a shadow. The app's
 * answer comes from a function of the configuration, run in a read-only transaction.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { HookledgerError } from '../core/errors.ts'
import { userExecutor } from '../inbox/user-executor.ts'
import {
  closeShadow,
  endShadowBatch,
  openShadows,
  recordShadowEnd,
  shadowEntitlements,
  shadowSubjects,
} from '../ledger/shadow.ts'
import { replaceDifferences, storeComparison } from '../ledger/shadow-differences.ts'
import type { Database } from '../postgres/executor.ts'
import { sqlstateOf } from '../postgres/sqlstate.ts'
import { shadowDifferences, type ShadowAnswer } from '../workflow/shadow-difference.ts'
import type { AppEntitlement, AppEntitlements, ResolvedConfig } from './options.ts'

/** What a comparison came to. */
export interface ShadowComparison {
  readonly workflows: readonly string[]
  readonly subjects: number
  readonly differences: number
  /** Subjects whose orders changed a moment ago: left to the next comparison. */
  readonly tooYoung: number
}

const atOnce = 500

/**
 * Compares all subjects of workflows in shadow, page by page, and stores where the two differ.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID where nothing is in shadow or the app does not answer what it should
 */
export async function compareShadow(
  db: Database,
  config: ResolvedConfig,
  onProgress: (subjects: number) => void = () => {},
): Promise<ShadowComparison> {
  const workflows = await openShadows(db)
  if (workflows.length === 0)
    throw invalid(`nothing is in shadow: name a workflow in shadow: ['…'], and start`)
  const { appEntitlements } = config
  if (appEntitlements === undefined)
    throw invalid('the configuration does not say what the app gives: add appEntitlements')
  const counts = { subjects: 0, differences: 0, tooYoung: 0 }
  let after = ''
  for (;;) {
    const page = await shadowSubjects(db, after, atOnce)
    const last = page.at(-1)?.subject
    if (last === undefined) break
    const old = page.filter((each) => !each.isYoung).map((each) => each.subject)
    const here = await shadowEntitlements(db, old)
    const there = old.length === 0 ? [] : await appAnswers(db, appEntitlements, old)
    const found = shadowDifferences(here, there)
    await replaceDifferences(db, { after, until: last, judged: old }, found)
    counts.subjects += old.length
    counts.tooYoung += page.length - old.length
    counts.differences += found.length
    onProgress(counts.subjects)
    after = last
  }
  // what is stored about subjects behind the last one is about nothing in shadow any more
  await replaceDifferences(db, { after, until: '\u{10ffff}', judged: [] }, [])
  await storeComparison(db, counts)
  return { workflows, ...counts }
}

async function appAnswers(
  db: Database,
  appEntitlements: AppEntitlements,
  subjects: readonly string[],
): Promise<ShadowAnswer[]> {
  const asked = new Set(subjects)
  const rows: unknown = await db.transaction(
    async (tx) => {
      const held = userExecutor(tx)
      const answer = await appEntitlements({
        db: { query: (text, values) => held.query(text, values) },
        subjects,
      })
      await held.answered()
      held.throwFailure()
      held.close()
      return answer
    },
    { setup: 'set transaction read only' },
  )
  if (!Array.isArray(rows)) throw invalid('appEntitlements must answer a list of rows')
  return (rows as readonly AppEntitlement[])
    .map(checkedAnswer)
    .filter(({ subject }) => asked.has(subject))
}

function checkedAnswer(row: AppEntitlement): ShadowAnswer {
  const { subject, entitlement, quantity, validUntil } = row ?? {}
  if (typeof subject !== 'string' || typeof entitlement !== 'string')
    throw invalid('a row of appEntitlements needs the texts subject and entitlement')
  if (validUntil !== undefined && validUntil !== null && !(validUntil instanceof Date))
    throw invalid('validUntil of a row of appEntitlements must be a Date or null')
  return {
    subject,
    entitlement,
    quantity: quantity === undefined || quantity === null ? undefined : exact(quantity),
    validUntil,
  }
}

function exact(quantity: number | bigint | string): bigint {
  try {
    return BigInt(quantity)
  } catch {
    throw invalid('quantity of a row of appEntitlements must be an integer')
  }
}

/** What ending a shadow did; the keys are what `--json` prints. */
export interface ShadowEndReport {
  readonly workflow: string
  readonly orders: number
  readonly entitlements: number
  readonly complete: boolean
}

/**
 * Lets what a workflow stated in shadow count from now on, in batches. It can be repeated: also after an
 * interruption, and for what an older process still decided in shadow.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID while the configuration names it in shadow, HKL_NOT_FOUND where it
 * never was
 */
export async function endShadow(
  db: Database,
  config: ResolvedConfig,
  name: string,
  by: { readonly reason: string; readonly actor: string },
  control: {
    readonly signal?: AbortSignal
    readonly onProgress?: (orders: number) => void
  } = {},
): Promise<ShadowEndReport> {
  const workflow = config.registry.workflows.get(name)
  if (workflow === undefined)
    throw new HookledgerError('HKL_CONFIG_UNKNOWN_NAME', `unknown workflow "${name}"`)
  if (workflow.shadowOf !== undefined)
    throw invalid(`take "${name}" out of shadow in the configuration first, and start with that`)
  const [known] = await db.query({
    text: `select 1 from ${db.schema}shadow_workflows where workflow = $1`,
    values: [name],
  })
  if (known === undefined)
    throw new HookledgerError('HKL_NOT_FOUND', `workflow "${name}" was never in shadow`)
  const counts = { orders: 0, entitlements: 0 }
  for (let isFirst = true; ; isFirst = false) {
    if (control.signal?.aborted === true) return { workflow: name, ...counts, complete: false }
    const done = await patiently(() =>
      db.transaction(
        async (tx) => {
          if (isFirst) await recordShadowEnd(db, tx, name, by)
          return endShadowBatch(db, tx, workflow, by, atOnce)
        },
        { setup: `set local lock_timeout = '500ms'` },
      ),
    )
    counts.orders += done.orders
    counts.entitlements += done.entitlements
    if (done.orders === 0) break
    control.onProgress?.(counts.orders)
  }
  await closeShadow(db, name)
  return { workflow: name, ...counts, complete: true }
}

/** How long somebody may hold an order before the end is given up, in milliseconds. */
const patienceMs = 30_000

async function patiently<T>(work: () => Promise<T>): Promise<T> {
  const until = performance.now() + patienceMs
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      const passes = ['55P03', '40P01', '40001'].includes(sqlstateOf(error) ?? '')
      if (!passes || performance.now() > until) throw error
      await sleep(Math.min(1000, 50 * attempt))
    }
  }
}

function invalid(message: string): HookledgerError {
  return new HookledgerError('HKL_CONFIG_INVALID', message)
}
