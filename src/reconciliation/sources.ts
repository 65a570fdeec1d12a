/** The numbers under which accounts of a provider stand in the database, made where they are missing. */
import type { Database, Executor } from '../postgres/executor.ts'
import type { ConfiguredSourceLike } from './ports.ts'

/** Account → its number. */
export async function sourceIds(
  db: Database,
  { source: { provider }, environment }: ConfiguredSourceLike,
  accounts: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const known = await readIds(db, provider, environment, accounts)
  if (accounts.every((account) => known.has(account))) return known
  // the anti-join comes first because a conflict burns one of two billion numbers
  await db.query({
    text: `insert into ${db.schema}sources (provider, provider_account, environment)
      select $1, i.account, $2 from unnest($3::text[]) i(account)
      where not exists (
        select from ${db.schema}sources s
        where s.provider = $1 and s.provider_account = i.account and s.environment = $2)
      order by 2
      on conflict (provider, provider_account, environment) do nothing`,
    values: [provider, environment, accounts],
  })
  return readIds(db, provider, environment, accounts)
}

async function readIds(
  db: Database,
  provider: string,
  environment: string,
  accounts: readonly string[],
): Promise<Map<string, number>> {
  const rows = await db.query<{ account: string; source_id: number }>({
    text: `select provider_account as account, source_id from ${db.schema}sources
      where provider = $1 and environment = $2 and provider_account = any ($3::text[])`,
    values: [provider, environment, accounts],
  })
  return new Map(rows.map((row) => [row.account, row.source_id]))
}

/** The time by which windows are cut: the database's. */
export async function databaseNow(tx: Pick<Executor, 'query'>): Promise<Date> {
  const [row] = await tx.query<{ ms: string }>({
    text: `select floor(extract(epoch from clock_timestamp()) * 1000)::bigint::text as ms`,
  })
  return new Date(Number(row?.ms))
}
