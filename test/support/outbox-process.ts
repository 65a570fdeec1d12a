/** Starts outbox-driver.ts in a process of its own. */
import { fileURLToPath } from 'node:url'
import { startScript, type Driver } from './failpoint-process.ts'
import type { Opponent, OutboxProof } from './outbox-proof.ts'
import type { OutboxDriverSettings } from './outbox-driver.ts'

const script = fileURLToPath(new URL('./outbox-driver.ts', import.meta.url))

/** A dispatcher over the database of a bench, with the same destinations. */
export async function startDispatcher(
  bench: OutboxProof,
  opponents: Readonly<Record<string, Opponent>>,
  { plan = '', skewMs = 0 }: { readonly plan?: string; readonly skewMs?: number } = {},
): Promise<Driver> {
  const settings: OutboxDriverSettings = {
    databaseUrl: bench.probe.database.url,
    destinations: Object.fromEntries(
      Object.entries(opponents).map(([name, { adversary, declared }]) => [
        name,
        { ...declared, url: adversary.url },
      ]),
    ),
    skewMs,
  }
  return startScript(script, settings, plan)
}
