/**
 * Tells that what a subject may use has changed: by a signal in the process that tells, and where it is
 * configured by an operation, recorded in the commit that takes the change off its list. So the operation of a
 * change is recorded once, whatever is killed in between; the signal is not repeated.
 */
import type { EntitlementsChanged, Signals } from '../core/signals.ts'
import { anyEntitlementNews, noteEnds } from '../ledger/entitlement-ends.ts'
import { presentSubjects } from '../ledger/merge-subjects.ts'
import { takeChanges, type ToldChange } from '../ledger/tell-changes.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import type { AppOperation } from '../workflow/outbox-port.ts'
import { invalid, requireKnown } from './config-problem.ts'

/** A subject that may use something else than before. */
export type EntitlementChange = EntitlementsChanged

/** Called after the commit of each change that this process makes or tells of, once and without being awaited. */
export type EntitlementListener = (change: EntitlementChange) => unknown

/**
 * Who is told of changes: a destination, which gets an operation a change from whichever process, or a function of
 * this process.
 */
export type EntitlementChangesOption = { readonly to: string } | EntitlementListener

/** The option with its parts apart. */
export interface ResolvedEntitlementChanges {
  /** Null: no operation is recorded. */
  readonly to: string | null
  readonly listener: EntitlementListener | null
}

/**
 * Checks the option.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID or HKL_CONFIG_UNKNOWN_NAME
 */
export function resolveEntitlementChanges(
  option: EntitlementChangesOption | undefined,
  destinations: Iterable<string>,
): ResolvedEntitlementChanges {
  if (option === undefined) return { to: null, listener: null }
  if (typeof option === 'function') return { to: null, listener: option }
  if (typeof option !== 'object' || option === null || typeof option.to !== 'string')
    throw invalid("entitlementChanges must be { to: 'destination' } or a function")
  for (const key of Object.keys(option)) requireKnown('option of entitlementChanges', key, ['to'])
  requireKnown('destination of entitlementChanges', option.to, destinations)
  return { to: option.to, listener: null }
}

/** What telling needs. */
export interface TellingContext {
  readonly db: Database
  readonly to: string | null
  readonly signals: Signals
  readonly addOperation: (tx: Executor, operation: AppOperation) => Promise<'added' | 'existed'>
}

/** Notes what ended by the clock and tells of what is noted; resolves with how many were told. */
export async function tellEntitlementChanges(context: TellingContext): Promise<number> {
  const { db, to, signals, addOperation } = context
  if (!(await anyEntitlementNews(db))) return 0
  await noteEnds(db)
  const told = await db.transaction(async (tx) => {
    const changes = await takeChanges(db, tx)
    if (to !== null) for (const change of changes) await addOperation(tx, operationOf(change, to))
    return changes
  })
  if (to !== null && told.length > 0)
    signals.emit('outbox.operations.recorded', { destinations: [to] })
  for (const { subject, orderId, because } of told)
    // an event's change was told by the worker that decided it
    if (because !== 'event') signals.emit('entitlements.changed', { subject, orderId, because })
  return told.length
}

function operationOf(change: ToldChange, to: string): AppOperation {
  const { orderId, decisionId, ended } = change
  return {
    to,
    key: `entitlements:${change.changeId}`,
    ...(orderId !== null && { order: orderId }),
    body: {
      type: 'entitlements.changed',
      subject: change.subject,
      merged_into: change.mergedInto,
      because: change.because,
      order: orderId,
      decision: decisionId?.toString() ?? null,
      ended: ended && { entitlement: ended.entitlement, at: ended.at.toISOString() },
      entitlements: change.entitlements.map(({ entitlement, quantity, validUntil }) => ({
        entitlement,
        quantity,
        valid_until: validUntil?.toISOString() ?? null,
      })),
      version: change.version.toString(),
    },
  }
}

/**
 * Calls a function of the app's for every change that this process makes or tells of, with the subject as it is
 * now. Answers what stops it. What the function throws is nobody's failure.
 */
export function onEntitlementsChanged(
  { db, signals }: { readonly db: () => Database; readonly signals: Signals },
  listener: EntitlementListener,
): () => void {
  return signals.on('entitlements.changed', (change) => {
    void told(db, change, listener)
  })
}

async function told(
  db: () => Database,
  change: EntitlementsChanged,
  listener: EntitlementListener,
): Promise<void> {
  try {
    await listener({ ...change, subject: await presentSubject(db, change) })
  } catch {
    // a listener can neither delay nor break what it is told of
  }
}

/** A subject that was merged away by this very change is told under its own name. */
async function presentSubject(
  db: () => Database,
  { subject, because }: EntitlementsChanged,
): Promise<string> {
  if (because === 'merge') return subject
  try {
    const database = db()
    return (await presentSubjects(database, database, [subject])).get(subject) ?? subject
  } catch {
    // told under its old name rather than not at all
    return subject
  }
}
