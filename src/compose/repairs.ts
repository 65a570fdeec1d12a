/** Wires repairs to the ledger, the inbox, the outbox and the sources that can be asked. */
import { HookledgerError } from '../core/errors.ts'
import type { Signals } from '../core/signals.ts'
import { EventFailure } from '../inbox/batch-failure.ts'
import { wakeParts } from '../inbox/outcome-parts.ts'
import { ownSource, storeOwnEvent } from '../inbox/own-event.ts'
import { runEffectSql } from '../inbox/run-user-sql.ts'
import { createLedger, type Ledger } from '../ledger/ledger.ts'
import { readOrders } from '../ledger/read-orders.ts'
import { registerStates } from '../ledger/register.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { installation } from '../postgres/migrate.ts'
import { appOperationId } from '../postgres/permanent-id.ts'
import type { AskedSource, RepairContext } from '../reconciliation/repair/ports.ts'
import { createRepairs, type Repairs } from '../reconciliation/repair/repairs.ts'
import { grantWorkflow } from '../workflow/grant-workflow.ts'
import type { OrderLedger } from '../workflow/order.ts'
import type { Outcome } from '../workflow/outcome.ts'
import type { ResolvedConfig } from './options.ts'
import { outboxWrites } from './outbox-writes.ts'
import { emitOutcomes } from './outcome-signals.ts'
import { createRepairFold } from './repair-fold.ts'
import { repairHolds } from './repair-holds.ts'
import { sourceLookup } from './sources.ts'

export { differences } from '../workflow/difference.ts'
export type { ChoiceOffer, RepairPlan } from '../reconciliation/repair/plan.ts'
export type { GivenPlan, RepairReport, Repairs } from '../reconciliation/repair/repairs.ts'

/** What repairs are made of. */
export interface RepairParts {
  readonly db: Database
  readonly config: ResolvedConfig
  readonly signals: Signals
}

/** How long one call to a provider may take, in milliseconds. */
const callMs = 20_000

/** The repairs of one configuration. */
export async function repairsOf(parts: RepairParts): Promise<Repairs> {
  const { db, config, signals } = parts
  const installed = await installation(db)
  const ledger = createLedger(db, installed, config.findings)
  const writes = outboxWrites(db.schema, installed.id, config.destinations)
  const { limits, environment, registry } = config
  const asking = { db, source: sourceOf(config), callMs }
  const context: RepairContext = {
    ...asking,
    installationId: installed.id,
    environment,
    workflows: new Map([...registry.workflows, [grantWorkflow.name, grantWorkflow]]),
    destinations: config.destinations,
    orders: async (tx, ids, writes) =>
      writes
        ? ledger.lockOrders(tx, ids, [])
        : { ledgers: await readOrders(db.schema, tx, ids), held: new Set<string>() },
    fold: createRepairFold({
      db,
      ledger,
      readOrders: (tx, ids) => readOrders(db.schema, tx, ids),
      workflows: [...registry.workflows.values()],
      environment,
      sources: config.sources,
      outbox: writes.outbox,
    }),
    payer: (tx, sourceId, id) => payerOf(ledger, tx, sourceId, id),
    writeNames: (tx, names) => ledger.writeNames(tx, names),
    storeEvent: (tx, event) => storeOwnEvent(db, tx, environment, { ...event, via: 'repair' }),
    apply: (tx, batch, added) => ledger.apply(tx, batch, added),
    wake: (names) => wakeParts(db.schema, names),
    operations: (drafts) => (drafts.length === 0 ? [] : writes.operations(drafts)),
    operationId: (destination, key) => appOperationId(installed.id, destination, key),
    addOperation: writes.addOperation,
    runEffects: (tx, outcome, orders) => runEffects(parts, tx, outcome, orders),
    knowStates: (tx, workflow) => registerStates(db, tx, workflow),
    told: (outcome, destinations) => {
      tell(signals, outcome, destinations)
    },
    holds: repairHolds({ db, installed, config, signals }, asking),
    lockTimeoutMs: limits.lockTimeoutMs,
    statementTimeoutMs: limits.statementTimeoutMs,
  }
  return createRepairs(context)
}

function sourceOf({ sources }: ResolvedConfig): RepairContext['source'] {
  const lookup = sourceLookup(sources)
  return (row): AskedSource | null => {
    const { identity, accountAllowed } = lookup.identify(row)
    const configured = identity.name === null ? undefined : sources.get(identity.name)
    if (configured === undefined || !accountAllowed || row.environment !== configured.environment)
      return null
    const { name, account, source } = configured
    const records = source.problem === undefined ? (source.records ?? null) : null
    return { name, provider: source.provider, account, records }
  }
}

async function payerOf(
  ledger: Ledger,
  tx: Executor,
  sourceId: number,
  id: string,
): Promise<string | null> {
  return (await ledger.payers(tx, [{ sourceId, id }])).get(`${sourceId}\n${id}`) ?? null
}

/** The effects' own SQL; what it throws undoes all of the repair. */
async function runEffects(
  { config }: RepairParts,
  tx: Executor,
  outcome: Outcome,
  orders: ReadonlyMap<string, OrderLedger>,
): Promise<void> {
  try {
    const settled = [{ row: heldRow(outcome), outcome, waits: [] }]
    await runEffectSql(tx, settled, config.registry, orders, config.limits.watchdogMs)
  } catch (error) {
    if (!(error instanceof EventFailure)) throw error
    const { cause } = error
    throw new HookledgerError(
      'HKL_REPAIR_IMPOSSIBLE',
      `the SQL of an effect failed, and nothing was applied: ${cause instanceof Error ? cause.message : 'it did not say why'}`,
      { cause },
    )
  }
}

/** What the inbox calls the row of an event in work; a repair's event never was on the ready list. */
function heldRow({ event }: Outcome): Parameters<typeof runEffectSql>[1][number]['row'] {
  return {
    key: event.key,
    receivedOn: '',
    attempts: 0,
    deadlineAt: null,
    waitsFor: null,
    overdue: false,
  }
}

function tell(signals: Signals, outcome: Outcome, destinations: readonly string[]): void {
  if (destinations.length > 0) signals.emit('outbox.operations.recorded', { destinations })
  emitOutcomes(signals, [
    {
      row: heldRow(outcome),
      outcome: {
        ...outcome,
        event: { ...outcome.event, source: { ...outcome.event.source, name: ownSource } },
      },
      waits: [],
    },
  ])
}
