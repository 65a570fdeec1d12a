/**
 * Comparison, wired: it reads the ledger without locks, decides on copies by what the worker decides by, and
 * writes findings by the ledger's own statements.
 */
import type { Signals } from '../core/signals.ts'
import { foldBatch, namesOf, settleAll } from '../inbox/plan-batch.ts'
import { customersFor } from './customers-for.ts'
import { closedPart, findingId, findingsPart } from '../ledger/findings.ts'
import { createLedger } from '../ledger/ledger.ts'
import { readOrders } from '../ledger/read-orders.ts'
import type { Database } from '../postgres/executor.ts'
import type { Installation } from '../postgres/migrate.ts'
import { createComparison } from '../reconciliation/compare.ts'
import { createFindingsWriter } from '../reconciliation/findings.ts'
import type {
  Comparison,
  FindingsSql,
  FindingsWriter,
  LedgerReads,
  Preview,
} from '../reconciliation/ports.ts'
import { createPreview } from '../reconciliation/preview.ts'
import type { ResolvedConfig } from './options.ts'
import { outboxWrites } from './outbox-writes.ts'

/** What it is wired from. */
export interface ComparisonParts {
  readonly db: Database
  readonly installed: Installation
  readonly config: ResolvedConfig
  readonly signals: Signals
}

/** Comparison, with what it and others compare by. */
export interface WiredComparison {
  readonly comparison: Comparison
  readonly preview: Preview
  readonly findings: FindingsWriter
  readonly reads: LedgerReads
}

/** Wires it. */
export function comparisonOf(parts: ComparisonParts): WiredComparison {
  const { db, installed, config, signals } = parts
  const { registry, environment, limits } = config
  const reads = ledgerReads(parts)
  const sql = findingsSql(parts)
  const { outbox, addOperation } = outboxWrites(db.schema, installed.id, config.destinations)
  const findings = createFindingsWriter(db.schema, sql)
  const preview = createPreview({
    db,
    ledger: reads,
    planning: {
      namesOf,
      settleAll,
      foldBatch,
      withCustomers: (tx, claims) => customersFor(db, tx, claims),
    },
    findings: sql,
    registry,
    environment,
    outbox,
  })
  const comparison = createComparison({
    db,
    ledger: reads,
    preview,
    findings,
    registry,
    environment,
    sources: [...config.sources.values()],
    settings: config.reconcileByHand,
    identityRetentionDays: limits.identityRetentionDays,
    dueMs: config.findings.dueMs,
    lockTimeoutMs: limits.lockTimeoutMs,
    signals,
    escalation: config.escalation,
    addOperation,
  })
  return { comparison, preview, findings, reads }
}

function ledgerReads({ db, installed, config }: ComparisonParts): LedgerReads {
  const ledger = createLedger(db, installed, config.findings)
  return {
    readOrders: (tx, ids) => readOrders(db.schema, tx, ids),
    lookupNames: (tx, names) => ledger.lookupNames(tx, names),
    payers: (tx, payments) => ledger.payers(tx, payments),
    nameKey: (name) => ledger.nameKey(name),
    derive: (orderId, name) => ledger.derive(orderId, name),
  }
}

function findingsSql({ db, installed, config }: ComparisonParts): FindingsSql {
  return {
    id: (kind, source, about) => findingId(installed.id, kind, source, about),
    found: (found) => findingsPart(db.schema, installed.id, config.findings, found),
    closed: (ids, because) => closedPart(db.schema, ids, because),
  }
}
