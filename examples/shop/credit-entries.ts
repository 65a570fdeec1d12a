/**
 * The shop's credits: an entry for each invoice and each refund of it, and the balance that they come to. An
 * invoice is worth whole units of what is left of it, so that refunds in parts take back what was credited, and
 * not one more. Whichever entry comes first, and whatever refund fails in the end, the balance is the same.
 */
import { minorUnitDigits, type ApplyInput } from 'hookledger'

/** Makes the tables where they are missing; a real shop has a migration for them. */
export async function setupCredits(db: { query(text: string): Promise<unknown> }): Promise<void> {
  await db.query(
    'create table if not exists shop.accounts (account_id text primary key, credits bigint not null default 0)',
  )
  await db.query(
    `create table if not exists shop.credit_entries
       (entry text primary key, invoice text, account_id text, amount bigint not null, unit bigint)`,
  )
  await db.query(
    'create index if not exists credit_entries_invoice_idx on shop.credit_entries (invoice)',
  )
}

/** An invoice is paid. */
export async function addCredits({ db, effect }: ApplyInput): Promise<void> {
  await enter(db, effect, { invoice: effect.reference, sign: 1n })
}

/** A part of an invoice is given back, or all of it. */
export async function takeCredits({ db, effect }: ApplyInput): Promise<void> {
  await enter(db, effect, { invoice: String(effect.data['invoice']), sign: -1n })
}

/** A refund failed: it counts for nothing, also where it is not there yet. */
export async function keepCredits({ db, effect: { reference } }: ApplyInput): Promise<void> {
  await db.query(
    `with old as (
       select e.invoice, e.amount, e.unit, sum(o.amount) as total, max(o.account_id) as account_id
       from shop.credit_entries e join shop.credit_entries o on o.invoice = e.invoice
       where e.entry = $1 group by e.entry),
     kept as (
       insert into shop.credit_entries (entry, amount) values ($1, 0)
       on conflict (entry) do update set amount = 0)
     update shop.accounts a
     set credits = a.credits + greatest(o.total - o.amount, 0)::bigint / o.unit - greatest(o.total, 0)::bigint / o.unit
     from old o where a.account_id = o.account_id`,
    [reference],
  )
}

/** Adds an entry, and to the balance what the invoice is worth more with it. Its order's lock holds the invoice. */
async function enter(
  db: ApplyInput['db'],
  { reference, data, amount, currency }: ApplyInput['effect'],
  { invoice, sign }: { readonly invoice: string; readonly sign: bigint },
): Promise<void> {
  const unit = 10n ** BigInt(minorUnitDigits(currency ?? ''))
  await db.query(
    `with before as (
       select coalesce(sum(amount), 0) as total, max(account_id) as account_id
       from shop.credit_entries where invoice = $2),
     added as (
       insert into shop.credit_entries (entry, invoice, account_id, amount, unit)
       values ($1, $2, $3, $4::bigint, $5::bigint) on conflict (entry) do nothing
       returning amount, unit, account_id)
     insert into shop.accounts as a (account_id, credits)
     select coalesce(n.account_id, b.account_id),
       greatest(b.total + n.amount, 0)::bigint / n.unit - greatest(b.total, 0)::bigint / n.unit
     from before b, added n where coalesce(n.account_id, b.account_id) is not null
     on conflict (account_id) do update set credits = a.credits + excluded.credits`,
    [reference, invoice, data['account'] ?? null, (sign * (amount ?? 0n)).toString(), `${unit}`],
  )
}
