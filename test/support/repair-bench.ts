/**
 * A shop whose provider can be asked, with a provider that keeps payments in memory: what repairs are tested
 * against. Findings are written by hand, as a pass would have written them.
 */
import { randomUUID } from 'node:crypto'
import { stripe, type HookledgerOptions } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { findingId } from '../../src/ledger/findings.ts'
import { custom } from '../../src/outbox/destinations/custom.ts'
import type { Repairs } from '../../src/reconciliation/repair/repairs.ts'
import { checkoutSessionCompleted, refundCreated } from '../../src/testing/stripe-events.ts'
import { paymentIntentId } from '../../src/testing/stripe-ids.ts'
import {
  RecordsError,
  type Fact,
  type MadeEvent,
  type ProviderRecord,
  type Records,
} from '../../src/workflow/records.ts'
import { createShop, shopOptions, shopSecret, type Shop } from './shop.ts'

/** A payment as the provider has it. Minor units of USD. */
export interface HeldPayment {
  readonly order: string
  readonly attempt: number
  readonly email: string
  amount: number
  standing: 'paid' | 'unpaid' | 'failed'
  readonly refunds: { readonly id: string; readonly amount: number }[]
}

/** The provider. */
export class PaymentProvider {
  readonly payments = new Map<string, HeldPayment>()
  /** Refuses to answer while it is set. */
  isDown = false
  /** Answers so many times more, and then no more; null: always. */
  answersLeft: number | null = null

  /** A payment of an order; answers its id. */
  pay(order: string, given: Partial<HeldPayment> = {}): string {
    const attempt = given.attempt ?? 1
    const id = paymentIntentId({ order, attempt })
    const email = `${order}@example.com`
    this.payments.set(id, {
      order,
      attempt,
      email,
      amount: 4900,
      standing: 'paid',
      refunds: [],
      ...given,
    })
    return id
  }

  /** Gives a part of a payment back, or all of it. */
  refund(id: string, amount = this.payments.get(id)?.amount ?? 0): void {
    const { refunds } = this.#held(id)
    refunds.push({ id: `re_${id.slice(3, 12)}_${refunds.length + 1}`, amount })
  }

  /** The records as a source hands them out. */
  records(): Records {
    return {
      kinds: [{ kind: 'payment_intent', holds: 'objects', reachMs: null }],
      accounts: (own) => Promise.resolve([own]),
      list: () => Promise.resolve({ records: [], next: null }),
      fetch: ({ id }) => {
        if (this.answersLeft !== null && this.answersLeft-- === 0) this.isDown = true
        if (this.isDown) return Promise.reject(new RecordsError('unavailable', 'no answer in time'))
        const held = this.payments.get(id)
        return Promise.resolve(held === undefined ? null : recordOf(id, held))
      },
      eventsOf: ({ object }) => madeEvents(object as unknown as HeldPayment),
      factsOf: ({ id, object }) => factsOf(id, object as unknown as HeldPayment),
      referenceOf: (fact, id, account) =>
        fact === 'payment' ? { kind: 'payment_intent', id, account } : null,
      namedBy: ({ kind, value }, account) =>
        kind === 'payment_intent' ? { kind: 'payment_intent', id: value, account } : null,
      refundCall: ({ id, amount }) => ({ refund: id, amount: amount.toString() }),
    }
  }

  #held(id: string): HeldPayment {
    const held = this.payments.get(id)
    if (held === undefined) throw new Error(`no payment ${id}`)
    return held
  }
}

function recordOf(id: string, held: HeldPayment): ProviderRecord {
  return {
    kind: 'payment_intent',
    id,
    createdAt: new Date('2026-01-01T00:00:00Z'),
    account: 'stripe',
    object: { ...held, refunds: [...held.refunds] },
  }
}

function madeEvents({
  order,
  attempt,
  email,
  amount,
  standing,
  refunds,
}: HeldPayment): MadeEvent[] {
  if (standing !== 'paid') return []
  const key = { order, attempt }
  const paid = checkoutSessionCompleted({ ...key, email, amount })
  const made = (event: { id: string; type: string }, fact: string): MadeEvent => ({
    eventId: `object:payment_intent:${order}:${attempt}:${fact}`,
    eventType: event.type,
    occurredAt: new Date('2026-01-01T00:00:00Z'),
    apiVersion: null,
    body: event as unknown as Record<string, unknown>,
  })
  return [
    made(paid, 'paid'),
    ...refunds.map(({ id, amount: back }) => made(refundCreated({ ...key, id, amount: back }), id)),
  ]
}

function factsOf(id: string, { amount, standing, refunds }: HeldPayment): Fact[] {
  const refunded = BigInt(refunds.reduce((sum, each) => sum + each.amount, 0))
  return [
    { fact: 'payment', id, standing, amount: BigInt(amount), currency: 'USD', refunded },
    ...refunds.map((each): Fact => ({
      fact: 'refund',
      id: each.id,
      payment: id,
      standing: 'succeeded',
      amount: BigInt(each.amount),
      currency: 'USD',
    })),
  ]
}

/** A finding as a pass writes it. */
export interface WrittenFinding {
  readonly kind: string
  readonly order?: string | null
  /** The payment that it refers to. */
  readonly payment?: string | null
  readonly evidence?: object
}

/** Source and subject by which a finding has its permanent id: the very one under which a pass would find it. */
function compared(
  provider: PaymentProvider,
  { kind, order = null, payment = null }: WrittenFinding,
): [string, string] {
  if (kind === 'refunded_there') {
    const refund = provider.payments.get(payment ?? '')?.refunds[0]?.id
    return ['stripe:stripe:test', `refund:1:${refund ?? randomUUID()}`]
  }
  if (payment !== null) return ['stripe:stripe:test', `payment:1:${payment}`]
  if (['tampered', 'order_stuck'].includes(kind)) return ['app', `order:${order}`]
  return ['stripe:stripe:test', randomUUID()]
}

/** The options of a shop whose provider can be asked and whose payments can be given back. */
export function repairOptions(
  provider: PaymentProvider,
  sent: unknown[] = [],
): Omit<HookledgerOptions, 'database'> {
  const source = stripe({ environment: 'test', signingSecrets: [shopSecret] })
  return {
    ...shopOptions,
    sources: { stripe: { ...source, records: provider.records() } },
    destinations: {
      ...shopOptions.destinations,
      stripe: {
        ...custom({
          contract: { idempotency: 'key' },
          call: async ({ body }) => {
            sent.push(body)
            return { id: 're_made' }
          },
        }),
        kind: 'stripe',
      },
    },
  }
}

/** What tests of repairs work with. */
export interface RepairBench extends Shop {
  readonly provider: PaymentProvider
  /** Bodies that the destination of refunds was called with. */
  readonly sent: unknown[]
  readonly repairs: Repairs
  /** Delivers what the provider's webhook would say of a payment, and decides it. */
  buy(order: string): Promise<string>
  /** Writes a finding and answers its id. */
  find(finding: WrittenFinding): Promise<string>
  /** The state of an order, and what is active of it. */
  order(
    id: string,
  ): Promise<{ readonly state: string | undefined; readonly active: readonly string[] }>
  /** The state of a finding. */
  finding(id: string): Promise<Record<string, unknown>>
}

/** Creates it. */
export async function createRepairBench(
  options: Partial<HookledgerOptions> = {},
): Promise<RepairBench> {
  const provider = new PaymentProvider()
  const sent: unknown[] = []
  const shop = await createShop({ ...repairOptions(provider, sent), ...options })
  const repairs = await partsOf(shop.hookledger).repairs()
  await shop.rows(
    `insert into sources (provider, provider_account, environment) values ('stripe', 'stripe', 'test') on conflict do nothing`,
  )
  const [{ id: installationId } = { id: '' }] = await shop.rows<{ id: string }>(
    `select installation_id as id from installation`,
  )
  return {
    ...shop,
    provider,
    sent,
    repairs,
    async buy(order) {
      const id = provider.pay(order)
      await shop.deliver(checkoutSessionCompleted({ order, email: `${order}@example.com` }))
      await shop.work()
      return id
    },
    async find({ kind, order = null, payment = null, evidence = {} }) {
      const [row] = await shop.rows<{ id: string }>(
        `insert into findings (finding_id, kind, class, severity, owner, order_id, evidence, due_at, source_id, reference)
         select $5::uuid, $1, 'contradiction', 'high', 'operations', $2, $3::jsonb, now() + interval '1 day',
           s.source_id, case when $4::text is null then null
             else jsonb_build_object('kind', 'payment_intent', 'id', $4::text, 'account', 'stripe') end
         from sources s where s.provider = 'stripe'
         on conflict (finding_id) do update set state = 'open', closed_at = null, closed_because = null returning finding_id as id`,
        [
          kind,
          order,
          JSON.stringify({ order, ...evidence }),
          payment,
          findingId(installationId, kind, ...compared(provider, { kind, order, payment })),
        ],
      )
      return row?.id ?? ''
    },
    async order(id) {
      const [row] = await shop.rows<{ state: string }>(
        `select state from orders where order_id = $1`,
        [id],
      )
      const active = await shop.rows<{ pair: string }>(
        `select subject || ' ' || entitlement as pair from entitlements where order_id = $1 and active order by 1`,
        [id],
      )
      return { state: row?.state, active: active.map(({ pair }) => pair) }
    },
    async finding(id) {
      const [row] = await shop.rows(
        `select f.state, f.closed_because, (select count(*)::int from repairs r where r.finding_id = f.finding_id) as repairs,
           (select count(*)::int from repairs r where r.finding_id = f.finding_id and r.verified_at is not null) as verified
         from findings f where f.finding_id = $1`,
        [id],
      )
      return row ?? {}
    },
  }
}
