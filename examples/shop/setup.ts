/** The shop's own tables. A real shop has migrations for them; `hookledger dev` runs this at its start. */
import { setup as setupSaas } from '../saas/credits.ts'
import { setupCredits } from './credit-entries.ts'

/** Makes the tables where they are missing. */
export async function setup(db: { query(text: string): Promise<unknown> }): Promise<void> {
  await db.query('create schema if not exists shop')
  await setupCredits(db)
  await db.query(
    `create table if not exists shop.customers
       (customer_id text primary key, email text, name text, changed_at timestamptz not null)`,
  )
  await setupSaas(db)
}
