/**
 * A small history written by SQL, as the engine would have left it, and the means to add to it. It
 * shares no code with the engine, so that reports are tested against what the tables say.
 */
import { createHash } from 'node:crypto'
import type pg from 'pg'
import { createDatabase, createPool } from '../../src/postgres/pool.ts'
import type { Database, Executor, Statement } from '../../src/postgres/executor.ts'
import { migrate, newestMigration } from '../../src/postgres/migrate.ts'
import { migrations } from '../../src/postgres/migrations.generated.ts'
import {
  createTestDatabase,
  type DatabaseTemplate,
  type TestDatabase,
} from '../support/test-database.ts'

/** A database with the newest schema, environment `test`. */
export const migratedTemplate: DatabaseTemplate = {
  name: `report_${newestMigration}_${createHash('sha1').update(JSON.stringify(migrations)).digest('hex').slice(0, 10)}`,
  async prepare(url) {
    const pool = createPool({ connectionString: url, max: 1, statementTimeoutMs: 60_000 })
    await migrate(createDatabase(pool, 'hookledger'), { environment: 'test' })
    await pool.end()
  },
}

/** An event to be stored. */
export interface StoredEvent {
  readonly id: string
  readonly type: string
  readonly deliveries?: number
  readonly body?: string | null
  readonly receivedAt?: string
}

/** A decision to be recorded; everything that one commit writes for it. */
export interface RecordedChange {
  readonly event: string | null
  readonly kind: string
  readonly order?: string | null
  readonly from?: string | null
  readonly to?: string | null
  readonly final?: boolean
  readonly reason?: string
  readonly evidence?: object
  readonly payment?: { readonly id: string; readonly amount: number }
  readonly effects?: readonly {
    readonly type: string
    readonly reference?: string
    readonly amount?: number
    readonly payment?: string
  }[]
  readonly entitle?: readonly {
    readonly subject: string
    readonly entitlement: string
    readonly active: boolean
  }[]
  /** Writes more in the same transaction. */
  readonly together?: (decision: string, tx: Executor) => Promise<void>
}

/** A source, and the states of the workflow `license`. */
const configured = [
  `insert into hookledger.sources (provider, provider_account, environment) values ('stripe', 'acct_1', 'test')`,
  `insert into hookledger.workflow_states (workflow, state, entitles)
   values ('license', 'pending', false), ('license', 'paid', true), ('license', 'refunded', false), ('license', 'disputed', false)`,
]

/** A history that can be added to, over whatever runs its statements. */
export class LedgerFixture {
  readonly db: Database

  constructor(db: Database) {
    this.db = db
  }

  async sql<R extends object = Record<string, unknown>>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<R[]> {
    return this.db.query<R>({ text, values: values as never })
  }

  /** Stores an event with its body and deliveries; returns its key. */
  async event(event: StoredEvent): Promise<string> {
    const body =
      event.body === undefined ? JSON.stringify({ id: event.id, type: event.type }) : event.body
    const [row] = await this.sql<{ event_key: string }>(
      `with e as (
         insert into hookledger.inbox_events (source_id, event_id, event_type, body_sha256, body_bytes, received_at)
         values (1, $1, $2, sha256(convert_to($3, 'UTF8')), octet_length($3), coalesce($4::timestamptz, now()))
         returning event_key, event_id, received_at, body_sha256),
       d as (insert into hookledger.deliveries (source_id, event_id, received_at, body_sha256)
         select 1, event_id, received_at + n * interval '1 second', body_sha256 from e, generate_series(0, $5::integer - 1) n),
       p as (insert into hookledger.payloads (event_key, received_on, body)
         select event_key, (received_at at time zone 'UTC')::date, convert_to($3, 'UTF8') from e where $6)
       select event_key from e`,
      [
        event.id,
        event.type,
        body ?? '',
        event.receivedAt ?? null,
        event.deliveries ?? 1,
        body !== null,
      ],
    )
    return row?.event_key ?? ''
  }

  /** Puts an event into the table of a state. */
  async put(
    key: string,
    state: 'ready' | 'delayed' | 'deferred' | 'ignored' | 'dead' | 'suspects',
    options: { waitsFor?: string; deadline?: string; reason?: string; rearmedBy?: string } = {},
  ): Promise<void> {
    const day = `(select (received_at at time zone 'UTC')::date from hookledger.inbox_events where event_key = $1)`
    const texts = {
      ready: `insert into hookledger.inbox_ready (event_key, received_on) select $1, ${day}`,
      suspects: `insert into hookledger.inbox_suspects (event_key, received_on, attempts) select $1, ${day}, 1`,
      delayed: `insert into hookledger.inbox_delayed (event_key, received_on, attempts, due_at, last_error) select $1, ${day}, 2, now() + interval '1 minute', 'no route'`,
      deferred: `insert into hookledger.inbox_deferred (event_key, received_on, attempts, deadline_at, waits_for, at_deadline) select $1, ${day}, 1, coalesce(nullif('${options.deadline ?? ''}', '')::timestamptz, now() + interval '1 day'), '${options.waitsFor ?? 'payment_intent pi_9'}', 'finding'`,
      ignored: `insert into hookledger.inbox_ignored (event_key, received_on, reason, event_type) select $1, ${day}, '${options.reason ?? 'nothing handles it'}', (select event_type from hookledger.inbox_events where event_key = $1)`,
      dead: `insert into hookledger.inbox_dead (event_key, received_on, reason, attempts, rearmed_by) select $1, ${day}, '${options.reason ?? 'it threw'}', 10, '${options.rearmedBy ?? 'redelivery'}'`,
    }
    await this.sql(texts[state], [key])
    if (state === 'deferred') {
      await this.sql(
        `insert into hookledger.inbox_waits (kind, source_id, name, event_key) values ('payment_intent', 1, 'pi_9', $1)`,
        [key],
      )
    }
    if (state === 'dead' || state === 'ignored' || state === 'deferred') {
      await this.decide({ event: key, kind: state, final: false, reason: `it is ${state}` })
    }
    if (state === 'dead') await this.finding({ kind: 'dead_event', event: key })
  }

  /** Records a decision with all that it changes, in one transaction; returns its id. */
  async decide(change: RecordedChange): Promise<string> {
    return this.db.transaction(async (tx) => {
      const order = change.order ?? null
      if (order !== null) {
        await tx.query({
          text: `insert into hookledger.orders (order_id, workflow, state, provider_account, source_id) values ($1, 'license', $2, 'acct_1', 1)
            on conflict (order_id) do update set state = excluded.state, version = hookledger.orders.version + 1, updated_at = now()`,
          values: [order, change.to ?? 'pending'],
        })
      }
      const [row] = await tx.query<{ decision_id: string }>({
        text: `insert into hookledger.ledger_decisions (event_key, order_id, workflow, kind, final, from_state, to_state, entitles, reason, evidence, workflow_version, actor, attempts)
          values ($1, $2, $3, $4, $5, $6, $7, (select entitles from hookledger.workflow_states where workflow = $3 and state = $7), $8, $9::text::jsonb, $10, 'worker-1', 1)
          returning decision_id`,
        values: [
          change.event,
          order,
          order === null ? null : 'license',
          change.kind,
          change.final ?? true,
          change.from ?? null,
          change.to ?? null,
          change.reason ?? 'it says so',
          JSON.stringify({
            ...(change.effects === undefined
              ? {}
              : { effects: change.effects.map((effect) => [effect.type, effect.reference ?? '']) }),
            ...(change.payment !== undefined && { payment: change.payment.id }),
            ...change.evidence,
          }),
          order === null ? null : 'v1',
        ],
      })
      const id = row?.decision_id ?? ''
      await writeChange(tx, change, order ?? '', id)
      await change.together?.(id, tx)
      return id
    })
  }

  async name(kind: string, name: string, order: string | null): Promise<void> {
    await this.sql(
      `insert into hookledger.order_names (source_id, kind, name, order_id) values (1, $1, $2, $3)`,
      [kind, name, order],
    )
  }

  /** Opens a finding; returns its id. */
  async finding(options: {
    kind: string
    class?: string
    order?: string | null
    event?: string | null
    due?: string
    state?: string
    evidence?: object
  }): Promise<string> {
    const [row] = await this.sql<{ finding_id: string }>(
      `insert into hookledger.findings (finding_id, class, kind, severity, owner, order_id, event_key, evidence, due_at, state,
         dismissed_until, dismissed_evidence)
       values (gen_random_uuid(), $1, $2, 'high', 'ops', $3, $4, $5::text::jsonb, now() + $6::interval, $7,
         case when $7 = 'dismissed' then now() + interval '1 month' end, case when $7 = 'dismissed' then $5::text::jsonb end)
       returning finding_id`,
      [
        options.class ?? 'contradiction',
        options.kind,
        options.order ?? null,
        options.event ?? null,
        JSON.stringify(options.evidence ?? {}),
        options.due ?? '1 day',
        options.state ?? 'open',
      ],
    )
    return row?.finding_id ?? ''
  }

  /** Order 1001: paid (delivered three times), confirmed by a second event, refunded in part. */
  async cleanHistory(): Promise<{ paid: string; grant: string; refund: string }> {
    const subject = 'email:ada@example.com'
    const paid = await this.event({
      id: 'evt_paid',
      type: 'checkout.session.completed',
      deliveries: 3,
    })
    const confirmed = await this.event({ id: 'evt_intent', type: 'payment_intent.succeeded' })
    const refunded = await this.event({ id: 'evt_refund', type: 'refund.created' })
    const grant = await this.decide({
      event: paid,
      kind: 'fulfilled',
      order: '1001',
      from: 'pending',
      to: 'paid',
      reason: 'pending to paid: license',
      payment: { id: 'pi_1', amount: 4900 },
      effects: [{ type: 'license' }],
      evidence: { granted: [`${subject} pro`] },
      entitle: [{ subject, entitlement: 'pro', active: true }],
    })
    await this.name('payment_intent', 'pi_1', '1001')
    await this.decide({
      event: confirmed,
      kind: 'absorbed',
      order: '1001',
      from: 'paid',
      to: 'paid',
      reason: 'license had happened',
    })
    const refund = await this.decide({
      event: refunded,
      kind: 'moved',
      order: '1001',
      from: 'paid',
      to: 'paid',
      reason: 'stays paid: refund re_1',
      effects: [{ type: 'refund', reference: 're_1', amount: 900, payment: 'pi_1' }],
    })
    return { paid, grant, refund }
  }
}

async function writeChange(
  tx: Executor,
  change: RecordedChange,
  order: string,
  id: string,
): Promise<void> {
  if (change.payment !== undefined) {
    await tx.query({
      text: `insert into hookledger.ledger_payments (source_id, payment_id, order_id, amount, currency, applied, decision_id) values (1, $1, $2, $3, 'USD', $4, $5)`,
      values: [change.payment.id, order, change.payment.amount, change.kind !== 'contradicted', id],
    })
  }
  for (const effect of change.effects ?? []) {
    await tx.query({
      text: `insert into hookledger.fulfillment_effects (order_id, effect_type, effect_reference, decision_id, amount, currency, payment_id) values ($1, $2, $3, $4, $5, $6, $7)`,
      values: [
        order,
        effect.type,
        effect.reference ?? '',
        id,
        effect.amount ?? null,
        effect.amount === undefined ? null : 'USD',
        effect.payment ?? null,
      ],
    })
  }
  for (const row of change.entitle ?? []) {
    await tx.query({
      text: `insert into hookledger.entitlements (order_id, subject, entitlement, active, granted_by, changed_by) values ($1, $2, $3, $4, $5, $5)
        on conflict (order_id, subject, entitlement) do update set active = excluded.active, changed_by = excluded.changed_by,
          granted_by = case when excluded.active then excluded.granted_by else hookledger.entitlements.granted_by end`,
      values: [order, row.subject, row.entitlement, row.active, id],
    })
  }
}

/** A database with the newest schema, one source and one workflow. */
export class LedgerDatabase {
  readonly pool: pg.Pool
  readonly #database: TestDatabase

  private constructor(database: TestDatabase) {
    this.#database = database
    this.pool = database.pool({ max: 6 })
  }

  static async create(): Promise<LedgerDatabase> {
    const created = new LedgerDatabase(await createTestDatabase({ template: migratedTemplate }))
    for (const statement of configured) await created.pool.query(statement)
    return created
  }

  get url(): string {
    return this.#database.url
  }

  /** A fixture whose statements commit. */
  committing(): LedgerFixture {
    return new LedgerFixture(createDatabase(this.pool, 'hookledger'))
  }

  /** A fixture in one transaction that `end` rolls back; its transactions are savepoints. */
  async trying(): Promise<{ readonly fixture: LedgerFixture; end(): Promise<void> }> {
    const client = await this.pool.connect()
    await client.query('begin')
    return {
      fixture: new LedgerFixture(oneConnection(client)),
      async end() {
        await client.query('rollback')
        client.release()
      },
    }
  }

  async drop(): Promise<void> {
    await this.#database.drop()
  }
}

/** A connection as a database; one statement at a time, whoever asks. */
function oneConnection(client: pg.PoolClient): Database {
  let last: Promise<unknown> = Promise.resolve()
  const query = <R extends object>({ text, values }: Statement): Promise<R[]> => {
    const next = last.then(
      async () => (await client.query(text, values === undefined ? [] : [...values])).rows as R[],
    )
    last = next.catch(() => {})
    return next
  }
  return {
    schema: '"hookledger".',
    schemaName: 'hookledger',
    query,
    async transaction(work, options = {}) {
      await query({ text: 'savepoint step' })
      try {
        if (options.setup !== undefined) await client.query(options.setup)
        const result = await work({
          query,
          execute: async (statement) => ({ rows: await query(statement), rowCount: 0 }),
        } as Executor)
        await query({ text: 'release savepoint step' })
        return result
      } catch (error) {
        await client.query('rollback to savepoint step')
        throw error
      }
    },
  }
}
