/** An inbox with events in it, stored through the library's own door. */
import { createDatabase } from '../../src/postgres/pool.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { partsOf, type Hookledger } from '../../src/hookledger.ts'
import { signStripe } from '../../src/testing/sign.ts'
import type { CheckoutEvent } from '../checkout-events.ts'
import { benchHookledger, benchSecret } from '../license.ts'
import { inParallel, type Round } from './contestant.ts'

/** A migrated schema with everything registered. */
export async function migrateInbox(
  { pool, schema }: Pick<Round, 'pool' | 'schema'>,
  options: Parameters<typeof benchHookledger>[2] = {},
): Promise<Hookledger> {
  await migrate(createDatabase(pool, schema), { environment: 'test' })
  const hookledger = benchHookledger(pool, schema, options)
  await partsOf(hookledger).register()
  return hookledger
}

/** Delivers all events. @throws Error unless each one is stored. */
export async function fillInbox(
  hookledger: Hookledger,
  events: readonly CheckoutEvent[],
): Promise<void> {
  await inParallel(events, 200, async ({ body }) => {
    const headers = signStripe(body, benchSecret)
    const { status } = await hookledger.ingest({ source: 'stripe', headers, rawBody: body })
    if (status !== 200) throw new Error(`an event was answered ${status}`)
  })
}
