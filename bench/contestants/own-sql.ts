/**
 * The path on which users bring their own SQL: an effect with `apply`, and a plain handler. Each runs
 * one statement for every event, on a table of the shop's own, inside the engine's transaction.
 */
import { handle } from '../../src/index.ts'
import type pg from 'pg'
import { defineLicense } from '../license.ts'
import { fulfillOne, type Session } from './business-writes.ts'
import { expectAll, type Contestant } from './contestant.ts'
import { hookledger } from './hookledger.ts'
import { pgBoss, type PgBossOptions } from './pg-boss.ts'

async function createCredits(pool: pg.Pool, schema: string): Promise<void> {
  await pool.query(`create schema if not exists shop_bench`)
  await pool.query(`drop table if exists shop_bench.credits`)
  await pool.query(
    `create table shop_bench.credits (account_id text primary key, schema_name text not null default '${schema}', credits bigint not null)`,
  )
}

const addCredits = `insert into shop_bench.credits as c (account_id, credits) values ($1, 49)
  on conflict (account_id) do update set credits = c.credits + excluded.credits`

async function checkCredits(pool: pg.Pool, _schema: string, expected: number): Promise<void> {
  const { rows } = await pool.query<{ n: string }>(
    'select count(*) as n from shop_bench.credits where credits = 49',
  )
  expectAll(Number(rows[0]?.n), expected)
}

/** The license workflow whose effect runs the statement. */
export function ownSqlApply(): Contestant {
  const workflow = defineLicense(async ({ db, order }) => {
    await db.query(addCredits, [order.subject])
  })
  return hookledger({
    name: 'own_sql_apply',
    settings: 'defaults; one statement in the effect’s apply',
    options: { workflows: [workflow] },
    setUp: createCredits,
    check: checkCredits,
  })
}

/** A plain handler that runs the statement. */
export function ownSqlHandler(): Contestant {
  return hookledger({
    name: 'own_sql_handler',
    settings: 'defaults; one statement in a plain handler',
    options: {
      workflows: [],
      handlers: [
        handle('stripe', 'checkout.session.completed', async ({ event, db }) => {
          await db.query(addCredits, [`user:${event.data.object.client_reference_id}`])
        }),
      ],
    },
    setUp: createCredits,
    check: checkCredits,
  })
}

/** pg-boss making the license's writes and running the statement, in one transaction. */
export function pgBossApply(options: Pick<PgBossOptions, 'batch' | 'width' | 'loops'>): Contestant {
  return pgBoss({
    ...options,
    name: 'pg_boss_own_sql',
    setUp: createCredits,
    job: (pool, schema) => (event) =>
      fulfillOne(pool, schema, event, async (client, orderId) => {
        await client.query(addCredits, [`user:${orderId}`])
      }),
    check: checkCredits,
  })
}

/** pg-boss recording a decision and running the statement, in one transaction. */
export function pgBossHandler(
  options: Pick<PgBossOptions, 'batch' | 'width' | 'loops'>,
): Contestant {
  return pgBoss({
    ...options,
    name: 'pg_boss_handler',
    setUp: createCredits,
    job: (pool, schema) => (event) => handleOne(pool, schema, event),
    check: checkCredits,
  })
}

async function handleOne(pool: pg.Pool, s: string, event: Session): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query(
      `insert into ${s}.ledger_decisions (kind, final, reason, evidence, actor)
       values ('handled', true, 'handled checkout.session.completed', $1::jsonb, 'worker')`,
      [JSON.stringify({ event: event.id })],
    )
    await client.query(addCredits, [`user:${event.data.object.client_reference_id}`])
    await client.query('commit')
    client.release()
  } catch (error) {
    client.release(error instanceof Error ? error : true)
    throw error
  }
}
