/** A dry run, wired. Nothing is registered: a process that only looks must not become the newest. */
import { dryRun, type DryRunControl, type DryRunReport } from '../inbox/dry-run.ts'
import { createLedger } from '../ledger/ledger.ts'
import { createOutboxPort } from '../outbox/outbox-port.ts'
import type { Database } from '../postgres/executor.ts'
import { installation } from '../postgres/migrate.ts'
import { contentOf } from './content.ts'
import type { ResolvedConfig } from './options.ts'
import { sourceLookup } from './sources.ts'

/** Decides history again under this configuration, and tells what would differ. */
export async function runConfiguredDryRun(
  db: Database,
  config: ResolvedConfig,
  since: Date,
  control: DryRunControl,
): Promise<DryRunReport> {
  const installed = await installation(db)
  const { environment, findings, limits, registry, sources, destinations } = config
  return dryRun(
    {
      db,
      ledger: createLedger(db, installed, findings),
      reading: { sources: sourceLookup(sources), parse: (bytes) => contentOf(bytes, limits) },
      registry,
      environment,
      outbox: createOutboxPort(installed.id, destinations),
    },
    since,
    control,
  )
}
