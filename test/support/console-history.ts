/**
 * What a console is looked at with: an order that was paid, confirmed and refunded, events in every state,
 * operations in every state, a pass with its findings and a repair, and acts of people.
 */
import { randomUUID } from 'node:crypto'
import { createHookledger, stripe, type Hookledger } from 'hookledger'
import type pg from 'pg'
import { credits } from '../../examples/shop/credits.ts'
import { license } from '../../examples/shop/license.ts'
import { custom } from '../../src/outbox/destinations/custom.ts'
import { partsOf } from '../../src/hookledger.ts'
import { LedgerDatabase, type LedgerFixture } from '../report/ledger-fixture.ts'
import { outboxHistory, type OutboxHistory } from '../report/outbox-fixture.ts'
import { reconciledHistory, type ReconciledHistory } from '../report/reconciliation-fixture.ts'
import { startApi } from './console-api.ts'

/** A history with a Hookledger over it. */
export interface ConsoleHistory {
  readonly hookledger: Hookledger
  readonly pool: pg.Pool
  readonly fixture: LedgerFixture
  readonly outbox: OutboxHistory
  readonly reconciled: ReconciledHistory
  /** An open finding of order 1001. */
  readonly finding: string
  /** A value for each parameter of a path: something that is there. */
  readonly parameters: Readonly<Record<string, string>>
  close(): Promise<void>
}

/** Records the history in a database of its own. */
export async function createConsoleHistory(
  options: Partial<Parameters<typeof createHookledger>[0]> = {},
): Promise<ConsoleHistory> {
  const database = await LedgerDatabase.create()
  const fixture = database.committing()
  await fixture.cleanHistory()
  const states = ['ready', 'delayed', 'deferred', 'ignored', 'dead', 'suspects'] as const
  for (const state of states)
    await fixture.put(await fixture.event({ id: `evt_${state}`, type: 'refund.updated' }), state)
  const outbox = await outboxHistory(fixture)
  const reconciled = await reconciledHistory(fixture)
  const finding = await fixture.finding({
    kind: 'paid_twice',
    order: '1001',
    evidence: { payment: 'pi_2', amount: 4900 },
    due: '-1 day',
  })
  await fixture.sql(
    `insert into hookledger.rejections (source, reason, times) values ('stripe', 'mismatch', 3)`,
  )
  await fixture.sql(
    `insert into hookledger.operator_acts (act, target, reason, actor) values ('replay', 'event:evt_dead', 'they fixed it', 'ada')`,
  )
  const hookledger = createHookledger({
    environment: 'test',
    sources: {
      stripe: stripe({ environment: 'test', signingSecrets: ['whsec_0123456789abcdef'] }),
    },
    destinations: {
      email: custom({ contract: { idempotency: 'key' }, call: async () => ({ id: 'email_1' }) }),
    },
    workflows: [license, credits],
    ...options,
    database: database.url,
  })
  // as the process that serves the console does
  await partsOf(hookledger).register()
  const bulkId = randomUUID()
  const api = await startApi(hookledger)
  await api.post('/bulk', {
    bulk_id: bulkId,
    act: 'replay',
    filter: { states: ['dead', 'ignored'] },
    reason: 'the workflow was mended',
  })
  return {
    hookledger,
    pool: database.pool,
    fixture,
    outbox,
    reconciled,
    finding,
    parameters: {
      order_id: '1001',
      subject: 'email:ada@example.com',
      source: 'stripe:acct_1:test',
      event_id: 'evt_paid',
      operation_id: outbox.sent,
      finding_id: finding,
      name: 'license',
      bulk_id: bulkId,
      session_id: '00000000-0000-4000-8000-000000000000',
    },
    async close() {
      await hookledger.stop()
      await database.drop()
    },
  }
}

/** A path of the table of routes with its parameters filled in. */
export function pathWith(path: string, parameters: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = parameters[name]
    if (value === undefined) throw new Error(`no value for {${name}} of ${path}`)
    return encodeURIComponent(value)
  })
}
