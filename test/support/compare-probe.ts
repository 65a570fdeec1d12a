/**
 * A probe whose provider has payments, refunds and disputes that a test changes at will, as a real one does
 * without asking anybody.
 */
import type { Fact, MadeEvent, ProviderRecord, Records } from '../../src/workflow/records.ts'
import {
  createReconcileProbe,
  type ReconcileProbe,
  type ReconcileProbeOptions,
} from './reconcile-probe.ts'

/** A payment at the provider. */
export interface HeldPayment {
  readonly id: string
  order?: string
  /** The name that its event waits for, where it carries no order. */
  waits?: string
  standing: 'paid' | 'unpaid' | 'failed'
  amount: number
  refunded: number
  /** When it was made and last changed, in milliseconds before now. */
  agoMs: number
  changedAgoMs: number
}

/** A refund or a dispute at the provider. */
export interface HeldOther {
  readonly kind: 'refund' | 'dispute'
  readonly id: string
  payment: string
  order: string
  standing: string
  amount: number
  agoMs: number
}

/** A finding as a test looks at it. */
export interface FoundRow {
  readonly kind: string
  readonly class: string
  readonly state: string
  readonly order_id: string | null
  readonly evidence: Readonly<Record<string, unknown>>
  readonly reference: unknown
  readonly closed_because: string | null
  readonly times: number
}

/** The probe. */
export interface CompareProbe extends ReconcileProbe {
  /** Puts a payment at the provider. */
  pays(id: string, over?: Partial<HeldPayment>): HeldPayment
  /** Puts a refund or a dispute there. */
  has(kind: HeldOther['kind'], id: string, over?: Partial<HeldOther>): HeldOther
  /** Takes a record away there. */
  loses(id: string): void
  findings(): Promise<FoundRow[]>
}

const hour = 3_600_000

/** Creates it. */
export async function createCompareProbe(
  options: ReconcileProbeOptions & { readonly namedBy?: Records['namedBy'] } = {},
): Promise<CompareProbe> {
  const payments = new Map<string, HeldPayment>()
  const others = new Map<string, HeldOther>()
  const probe = await createReconcileProbe({
    kinds: [
      { kind: 'event', holds: 'events', reachMs: null },
      { kind: 'payment', holds: 'objects', reachMs: null },
      { kind: 'refund', holds: 'objects', reachMs: null },
      { kind: 'dispute', holds: 'objects', reachMs: null },
    ],
    eventsOf: (record) =>
      record.kind === 'payment' ? eventsOfPayment(record) : eventsOfOther(record),
    factsOf: (record) =>
      record.kind === 'payment' ? [factOfPayment(record)] : [factOfOther(record)],
    ...options,
  })
  const { records } = probe
  if (options.namedBy !== undefined) records.namedBy = options.namedBy
  const held = (): ProviderRecord[] => [
    ...[...payments.values()].map((each) => toRecord('payment', each)),
    ...[...others.values()].map((each) => toRecord(each.kind, each)),
  ]
  // what is asked is what there is at that moment
  const { list, fetch } = records
  const refresh = (): void => {
    const events = records.held.filter(({ kind }) => kind === 'event')
    records.held.splice(0, records.held.length, ...events, ...held())
  }
  records.list = (query) => {
    refresh()
    return list(query)
  }
  records.fetch = (reference, signal) => {
    refresh()
    return fetch(reference, signal)
  }
  return {
    ...probe,
    pays(id, over = {}) {
      const times = { agoMs: hour, changedAgoMs: hour }
      const made = { id, standing: 'paid' as const, amount: 4900, refunded: 0, ...times, ...over }
      payments.set(id, made)
      return made
    },
    has(kind, id, over = {}) {
      const standing = kind === 'refund' ? 'succeeded' : 'open'
      const made = {
        kind,
        id,
        payment: '',
        order: '',
        standing,
        amount: 4900,
        agoMs: hour,
        ...over,
      }
      others.set(id, made)
      return made
    },
    loses(id) {
      payments.delete(id)
      others.delete(id)
    },
    findings: () =>
      probe.rows<FoundRow>(
        `select kind, class, state, order_id, evidence, reference, closed_because, times_seen::int as times
         from findings order by kind, order_id, finding_id`,
      ),
  }
}

function toRecord(kind: string, held: HeldPayment | HeldOther): ProviderRecord {
  const createdAt = new Date(Date.now() - held.agoMs)
  return { kind, id: held.id, createdAt, account: 'acct_1', object: { ...held } }
}

function made(type: string, fact: string, at: Date, body: object): MadeEvent {
  return {
    eventId: `object:${type}:${fact}`,
    eventType: type,
    occurredAt: at,
    apiVersion: null,
    body: { ...body, type },
  }
}

function eventsOfPayment({ object }: ProviderRecord): MadeEvent[] {
  const { id, order, waits, standing, amount, changedAgoMs } = object as unknown as HeldPayment
  if (standing !== 'paid') return []
  const at = new Date(Date.now() - changedAgoMs)
  const body = { id: `object:pay:${id}`, payment: id, learns: id, amount, order, waits }
  return [
    made(
      'pay',
      id,
      at,
      Object.fromEntries(Object.entries(body).filter(([, v]) => v !== undefined)),
    ),
  ]
}

function eventsOfOther({ kind, object, createdAt }: ProviderRecord): MadeEvent[] {
  const { id, payment, order, amount, standing } = object as unknown as HeldOther
  if (kind === 'dispute') return [made('note', id, createdAt, { id, order })]
  return standing === 'succeeded'
    ? [made('refund', id, createdAt, { id, payment, order, amount })]
    : []
}

function factOfPayment({ object }: ProviderRecord): Fact {
  const { id, standing, amount, refunded } = object as unknown as HeldPayment
  const money = { amount: BigInt(amount), refunded: BigInt(refunded), currency: 'USD' }
  return { fact: 'payment', id, standing, ...money }
}

function factOfOther({ kind, object }: ProviderRecord): Fact {
  const { id, payment, standing, amount } = object as unknown as HeldOther
  if (kind === 'dispute')
    return { fact: 'dispute', id, payment, standing: standing as 'open' | 'won' | 'lost' }
  const status = standing as 'pending' | 'succeeded' | 'failed'
  const money = { amount: BigInt(amount), currency: 'USD' }
  return { fact: 'refund', id, payment, standing: status, ...money }
}
