/**
 * Credits are a balance, not access: they live in the app's own table, written in the commit of the effect. Each
 * invoice and each refund is an entry, and an invoice is worth the whole units of what is left of it. A refund
 * that fails counts for nothing, whichever of the two is known first.
 */
import { minorUnitDigits, type ApplyInput } from 'hookledger'

/** Makes the tables where they are missing; a real app has a migration for them. */
export async function setup(db: { query(text: string): Promise<unknown> }): Promise<void> {
  await db.query('create schema if not exists saas')
  await db.query(
    `create table if not exists saas.credit_entries
       (entry text primary key, org text, invoice text, amount bigint not null, unit bigint)`,
  )
  await db.query(
    'create index if not exists credit_entries_org_idx on saas.credit_entries (org, invoice)',
  )
  await db.query(
    `create or replace view saas.credits as
     select org, sum(worth)::bigint as credits from (
       select org, invoice, greatest(sum(amount), 0)::bigint / max(unit) as worth
       from saas.credit_entries where org is not null group by org, invoice) i
     group by org`,
  )
}

/** An invoice is paid. */
export async function addCredits({ db, effect }: ApplyInput): Promise<void> {
  await enter(db, effect, { invoice: effect.reference, sign: 1n })
}

/** A part of an invoice went back, or all of it. */
export async function takeCredits({ db, effect }: ApplyInput): Promise<void> {
  await enter(db, effect, { invoice: String(effect.data['invoice']), sign: -1n })
}

/** It came to us again: the entry counts for nothing, also where it is not there yet. */
export async function keepCredits({ db, effect: { reference } }: ApplyInput): Promise<void> {
  await db.query(
    `insert into saas.credit_entries (entry, amount) values ($1, 0)
     on conflict (entry) do update set amount = 0`,
    [reference],
  )
}

async function enter(
  db: ApplyInput['db'],
  { reference, data, amount, currency }: ApplyInput['effect'],
  { invoice, sign }: { readonly invoice: string; readonly sign: bigint },
): Promise<void> {
  await db.query(
    `insert into saas.credit_entries (entry, org, invoice, amount, unit) values ($1, $2, $3, $4::bigint, $5::bigint)
     on conflict (entry) do nothing`,
    [
      reference,
      data['org'],
      invoice,
      sign * (amount ?? 0n),
      10n ** BigInt(minorUnitDigits(currency ?? '')),
    ],
  )
}
