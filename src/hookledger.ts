/**
 * The composition root: options in, the object that users hold out. Nothing else wires parts.
 */
import type Stripe from 'stripe'
import { HookledgerParts } from './compose/parts.ts'
import type { RunOnceResult } from './compose/run-once.ts'
import { endGiven, giveAway } from './compose/doors.ts'
import { linkCustomer, mergeSubjects } from './compose/subjects.ts'
import { onEntitlementsChanged, type EntitlementListener } from './compose/entitlement-changes.ts'
import { createConfirm, type ConfirmRequest } from './compose/confirm.ts'
import type { HookledgerOptions } from './compose/options.ts'
import { HookledgerError } from './core/errors.ts'
import type { Limits } from './core/limits.ts'
import { nearest } from './core/nearest.ts'
import type { Confirmation } from './inbox/confirm.ts'
import { wakeParts } from './inbox/outcome-parts.ts'
import { createRequestReceiver, type ReceiveOptions } from './inbox/receive-request.ts'
import type { IngestOutcome, IngestRequest } from './inbox/receiver.ts'
import { currentEntitlements, type CurrentEntitlement } from './ledger/current-entitlements.ts'
import type { GrantEnding } from './ledger/grant.ts'
import { openOrder } from './ledger/open-order.ts'
import { logSignals } from './observe/log.ts'
import type { Executor, Statement } from './postgres/executor.ts'
import type { StripeEvents } from './providers/stripe-event-types.ts'
import type { GrantEnd, GrantRequest } from './workflow/grant.ts'
import type {
  CustomerLink,
  LinkAnswer,
  MergeAnswer,
  SubjectMerge,
} from './workflow/subject-acts.ts'
import type { Opening as OpenOrder, OpeningAnswer as OpenOrderResult } from './workflow/opening.ts'
import type { AppOperation } from './workflow/outbox-port.ts'
import { defineUntypedWorkflow, type DefineWorkflow } from './workflow/define-workflow.ts'

/**
 * Defines a workflow whose events are typed by their provider where the source is named after it.
 *
 * @throws HookledgerError HKL_WORKFLOW_INVALID naming what is wrong and the nearest known name
 */
export const defineWorkflow: DefineWorkflow<
  { readonly stripe: StripeEvents },
  { readonly stripe: Stripe }
> = defineUntypedWorkflow as never

/** A connection inside the app's own transaction: a `pg` client, or anything with its `query`. */
export interface TransactionLike {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[]; rowCount?: number | null }>
}

/** An order to be opened by the app. */
export interface OpenOrderRequest extends OpenOrder {
  /** The workflow's name. */
  readonly workflow: string
}

/** The outbox as the app uses it. */
export interface Outbox {
  /**
   * Records an operation in the app's own transaction: it is sent once that commits, and never if it does
   * not. `existed`: the same destination and key were recorded before, and it is not sent again.
   *
   * @throws HookledgerError HKL_OUTBOX_CHANGED when this key was recorded with another body
   * @example await hookledger.outbox.add(client, { to: 'email', key: `welcome:${userId}`, body: { … } })
   */
  add(tx: TransactionLike, operation: AppOperation): Promise<'added' | 'existed'>
}

/** What users hold. Creating it connects to nothing. */
export interface Hookledger {
  /** The limits that hold: what the mounts of a framework take beside `ingest`. */
  readonly limits: Limits
  /** Receives a Fetch-style request: answers 200 only for what is durably stored. Rejects only for a bad configuration. */
  receive(request: Request, options: ReceiveOptions): Promise<Response>
  /** Receives what a route has read already. Rejects only for a bad configuration. */
  ingest(request: IngestRequest): Promise<IngestOutcome>
  /** Opens an order in the app's own transaction. Never throws on an order that exists. */
  openOrder(tx: TransactionLike, order: OpenOrderRequest): Promise<OpenOrderResult>
  /** Operations of the app's own: recorded in its transaction, sent after the commit. */
  readonly outbox: Outbox
  /**
   * Gives something away in the app's own transaction: an order of the built-in workflow `grant`, whose id it
   * answers. Who and why are recorded with it.
   *
   * @throws HookledgerError HKL_GRANT_INVALID saying what is wrong; nothing is written then
   * @example await hookledger.grant(client, { subject: 'user:42', entitlements: ['pro'], reason: 'outage of May 3', actor: 'ada' })
   */
  grant(tx: TransactionLike, grant: GrantRequest): Promise<string>
  /**
   * Ends a grant in the app's own transaction: it entitles to nothing any more.
   *
   * @throws HookledgerError HKL_GRANT_INVALID where no grant has this id
   */
  endGrant(tx: TransactionLike, end: GrantEnd): Promise<GrantEnding>
  /**
   * Says which subject a provider's customer is, in the app's own transaction; events that wait for it are
   * decided once that commits. `existed`: it was linked with this subject before.
   *
   * @throws HookledgerError HKL_SUBJECT_LINKED where another subject is linked and `replace` is not true,
   * HKL_SUBJECT_INVALID saying what is wrong
   * @example await hookledger.linkCustomer(client, { source: 'stripe', customer, subject: `org:${org.id}`, reason: 'checkout', actor: 'app' })
   */
  linkCustomer(tx: TransactionLike, link: CustomerLink): Promise<LinkAnswer>
  /**
   * Makes two subjects one, in the app's own transaction: what `from` has and will be granted is `into`'s
   * from now on. It cannot be taken back.
   *
   * @throws HookledgerError HKL_SUBJECT_INVALID saying what is wrong
   */
  mergeSubjects(tx: TransactionLike, merge: SubjectMerge): Promise<MergeAnswer>
  /**
   * For a success page that is faster than the webhook: asks the provider about one record, decides what it
   * says where that can be done at once, and answers only for the order and the subject that are named.
   *
   * @throws HookledgerError HKL_CONFIRM_INVALID, or HKL_RECONCILE_NO_RECORDS where the source cannot be asked
   * @example await hookledger.confirm({ source: 'stripe', reference: { kind: 'checkout.session', id }, order, subject: `user:${user.id}` })
   */
  confirm(request: ConfirmRequest): Promise<Confirmation>
  /** What a subject may use now; of one that was merged, what the subject that it became may use. */
  entitlements(subject: string): Promise<CurrentEntitlement[]>
  /**
   * Calls a function after the commit of every change of what a subject may use that this process makes or tells
   * of; answers what stops it. It is called once, with nothing repeated: what must reach another system goes
   * through `entitlementChanges: { to }`.
   */
  onEntitlementsChanged(listener: EntitlementListener): () => void
  /** Decides and sends what is due within a budget, for hosts with no long-lived worker. */
  runOnce(options: { readonly budgetMs: number }): Promise<RunOnceResult>
  /** Checks, registers and starts a worker, a dispatcher, a gatherer and a reconciler in this process. */
  start(options?: { readonly loops?: number }): Promise<void>
  /** Stops them, finishing what is in hand within `timeoutMs` (default 10 s), and closes what was opened. */
  stop(options?: { readonly timeoutMs?: number }): Promise<void>
}

const partsByHookledger = new WeakMap<object, HookledgerParts>()

/** The wired parts behind a Hookledger, for its own server, command line and testing kit. */
export function partsOf(hookledger: Hookledger): HookledgerParts {
  const parts = partsByHookledger.get(hookledger)
  if (parts === undefined) {
    throw new HookledgerError(
      'HKL_CONFIG_INVALID',
      'this is not an object made by createHookledger: export it from hookledger.config.ts',
    )
  }
  return parts
}

/** Creates Hookledger from one configuration, for the app and the command line alike. */
export function createHookledger(options: HookledgerOptions): Hookledger {
  const parts = new HookledgerParts(options)
  if (options.log !== undefined) logSignals(parts.signals, options.log)
  let worker: Awaited<ReturnType<HookledgerParts['worker']>> | undefined
  let dispatcher: Awaited<ReturnType<HookledgerParts['dispatcher']>> | undefined
  let gatherer: Awaited<ReturnType<HookledgerParts['gatherer']>> | undefined
  let reconciler: Awaited<ReturnType<HookledgerParts['reconciler']>> | undefined
  let heartbeat: ReturnType<HookledgerParts['heartbeat']> | undefined
  const outbox: Outbox = Object.freeze({
    add: (tx: TransactionLike, operation: AppOperation) =>
      parts.addOperation(appExecutor(tx), operation),
  })
  const hookledger: Hookledger = Object.freeze({
    get limits() {
      return parts.config.limits
    },
    receive: (request: Request, receiving: ReceiveOptions) =>
      createRequestReceiver({
        receiver: parts.receiver(),
        limits: parts.config.limits,
        workOff: (keys) => parts.workOff(keys),
      })(request, receiving),
    ingest: (request: IngestRequest) => parts.receiver().ingest(request),
    openOrder: (tx: TransactionLike, order: OpenOrderRequest) => open(parts, tx, order),
    outbox,
    grant: (tx: TransactionLike, grant: GrantRequest) =>
      giveAway(parts.database(), appExecutor(tx), grant),
    endGrant: (tx: TransactionLike, end: GrantEnd) =>
      endGiven(parts.database(), appExecutor(tx), end),
    linkCustomer: (tx: TransactionLike, link: CustomerLink) =>
      linkCustomer({ db: parts.database(), config: parts.config }, appExecutor(tx), link),
    mergeSubjects: (tx: TransactionLike, merge: SubjectMerge) =>
      mergeSubjects(parts.database(), appExecutor(tx), merge),
    confirm: createConfirm(parts),
    entitlements: (subject: string) => currentEntitlements(parts.database(), subject),
    onEntitlementsChanged: (listener: EntitlementListener) => listening(parts, listener),
    runOnce: (budget: { readonly budgetMs: number }) => parts.runOnce(budget),
    start: async (starting: { readonly loops?: number } = {}) => {
      if (worker !== undefined) return
      await parts.register()
      worker = await parts.worker(starting)
      dispatcher = await parts.dispatcher()
      gatherer = parts.asksProviders ? await parts.gatherer() : undefined
      reconciler = await parts.reconciler()
      await worker.start()
      dispatcher.start()
      gatherer?.start()
      reconciler.start()
      heartbeat = parts.heartbeat(
        parts.asksProviders
          ? ['work', 'gather', 'dispatch', 'reconcile']
          : ['work', 'dispatch', 'reconcile'],
      )
      heartbeat.start()
    },
    stop: async (stopping: { readonly timeoutMs?: number } = {}) => {
      const timeoutMs = stopping.timeoutMs ?? 10_000
      await Promise.all([
        worker?.stop(timeoutMs),
        dispatcher?.stop(timeoutMs),
        gatherer?.stop(timeoutMs),
        reconciler?.stop(timeoutMs),
      ])
      await heartbeat?.stop()
      worker = undefined
      dispatcher = undefined
      gatherer = undefined
      reconciler = undefined
      heartbeat = undefined
      await parts.close()
    },
  })
  partsByHookledger.set(hookledger, parts)
  const { entitlementChanges } = options
  if (typeof entitlementChanges === 'function') listening(parts, entitlementChanges)
  return hookledger
}

function listening(parts: HookledgerParts, listener: EntitlementListener): () => void {
  const { signals } = parts
  return onEntitlementsChanged({ db: () => parts.database(), signals }, listener)
}

async function open(
  parts: HookledgerParts,
  tx: TransactionLike,
  order: OpenOrderRequest,
): Promise<OpenOrderResult> {
  const { workflows, findings } = parts.config
  const workflow = workflows.find((each) => each.name === order.workflow)
  if (workflow === undefined) {
    const near = nearest(
      order.workflow,
      workflows.map((each) => each.name),
    )
    throw new HookledgerError(
      'HKL_CONFIG_UNKNOWN_NAME',
      `unknown workflow "${order.workflow}"${near === null ? '' : `, did you mean "${near}"?`}`,
    )
  }
  const db = parts.database()
  const executor = appExecutor(tx)
  const { id: installationId } = await parts.installation(executor)
  await parts.registration.knowStates(executor, workflow)
  return openOrder(
    {
      db,
      installationId,
      policy: findings,
      wake: (names) => wakeParts(db.schema, names),
      actor: 'app',
    },
    executor,
    workflow,
    order,
  )
}

/** The app's own transaction as an executor: only text and values, which every client understands. */
function appExecutor(tx: TransactionLike): Executor {
  const execute = async <R extends object>({
    text,
    values,
  }: Statement): Promise<{ rows: R[]; rowCount: number }> => {
    const result = await tx.query(text, values === undefined ? [] : [...values])
    return { rows: result.rows as R[], rowCount: result.rowCount ?? 0 }
  }
  return {
    execute,
    query: async <R extends object>(statement: Statement) => (await execute<R>(statement)).rows,
  }
}
