/**
 * Stripe's own records: events of thirty days for what was never delivered, objects as they are now for
 * what events cannot tell. Nothing here writes to Stripe, and an answer that cannot be true never passes.
 */
import type { Environment } from '../../workflow/event.ts'
import type {
  EndpointState,
  Fact,
  ProviderRecord,
  RecordKind,
  RecordPage,
  RecordQuery,
  RecordReference,
  Records,
} from '../../workflow/records.ts'
import { RecordsError } from '../../workflow/records.ts'
import { headerAccount, type ConnectOptions } from './connected.ts'
import { textIn } from './json-fields.ts'
import { StripeApi } from './stripe-api.ts'
import { stripeEventsOf } from './stripe-events-of.ts'
import { factsOfStripe } from './stripe-facts.ts'
import { expansionsOf, kindOfId, kindsIn, stripeKind, type StripeKind } from './stripe-kinds.ts'
import { checkedObject, listStripe, type StripeObject } from './stripe-list.ts'
import { connectedAccounts, webhookEndpoints } from './stripe-setup.ts'

/** How to ask Stripe. */
export interface StripeRecordsOptions extends ConnectOptions {
  readonly base: string
  readonly key: string
  /** The version of the API in which objects are asked for; the SDK's. */
  readonly apiVersion?: string | undefined
  /** The environment that the key must belong to, where it is known. */
  readonly environment?: Environment | undefined
}

/** How long one request may take, in milliseconds. */
const callMs = 30_000

/** Stripe's records through the API. */
export function stripeRecords(options: StripeRecordsOptions): Records {
  const { base, key, apiVersion, environment } = options
  const api = new StripeApi({ base, key, apiVersion, callMs })
  const header = (account: string): string | null => headerAccount(options, account)
  const toRecord = (kind: StripeKind, object: StripeObject, account: string): ProviderRecord => {
    checkEnvironment(object, environment)
    return {
      kind: kind.kind,
      id: object.id,
      createdAt: new Date(object.created * 1000),
      // an event that names its account belongs there, whichever list it came from
      account: (kind.kind === 'event' ? textIn(object, 'account') : null) ?? account,
      object,
    }
  }
  return Object.freeze({
    get kinds(): readonly RecordKind[] {
      return kindsIn(api.version).map(({ kind, holds, reachMs }) => ({ kind, holds, reachMs }))
    },
    get apiVersion(): string | undefined {
      return api.version
    },
    async accounts(own: string, signal: AbortSignal): Promise<readonly string[]> {
      const { connect } = options
      if (connect === undefined || connect === false) return [own]
      const others = connect === true ? await connectedAccounts(api, signal) : connect
      return [...new Set([own, ...others])]
    },
    async list(query: RecordQuery): Promise<RecordPage> {
      const kind = knownKind(query.kind)
      const stripeAccount = header(query.account)
      const { objects, next } = await listStripe(api, kind, { ...query, stripeAccount })
      return { records: objects.map((object) => toRecord(kind, object, query.account)), next }
    },
    async fetch(reference: RecordReference, signal: AbortSignal): Promise<ProviderRecord | null> {
      const kind = knownKind(reference.kind)
      const { id, account } = reference
      const object = await api.get({
        path: kind.path,
        id,
        account: header(account),
        signal,
        query: { expand: expansionsOf(kind, api.version) },
      })
      if (object === null) return null
      const checked = checkedObject(kind, object)
      if (checked.id !== id) throw new RecordsError('garbage', `Stripe: another record than ${id}`)
      return toRecord(kind, checked, account)
    },
    eventsOf: (record: ProviderRecord) =>
      stripeEventsOf(record, {
        apiVersion: api.version ?? null,
        stripeAccount: header(record.account),
      }),
    factsOf: factsOfStripe,
    referenceOf: (_fact: Fact['fact'], id: string, account: string) => referenceOf(id, account),
    namedBy: (name: { readonly value: string }, account: string) =>
      referenceOf(name.value, account),
    endpoints: (_own: string, signal: AbortSignal): Promise<readonly EndpointState[]> =>
      webhookEndpoints(api, signal),
    refundCall,
  })
}

function referenceOf(id: string, account: string): RecordReference | null {
  const kind = kindOfId(id)
  return kind === undefined ? null : { kind, id, account }
}

function knownKind(name: string): StripeKind {
  const kind = stripeKind(name)
  if (kind === undefined) throw new RecordsError('refused', `Stripe has no records of kind ${name}`)
  return kind
}

/** A key of the other environment would show another world, in which nothing of ours exists. */
function checkEnvironment(object: StripeObject, environment: Environment | undefined): void {
  const { livemode } = object
  if (environment === undefined || typeof livemode !== 'boolean') return
  const found: Environment = livemode ? 'live' : 'test'
  if (found === environment) return
  throw new RecordsError(
    'refused',
    `Stripe: apiKey belongs to the ${found} environment; give a key of the ${environment} one`,
  )
}

function refundCall(payment: {
  readonly id: string
  readonly amount: bigint
  readonly account?: string | undefined
}): unknown {
  const kind = kindOfId(payment.id)
  if (kind !== 'payment_intent' && kind !== 'charge') return null
  return {
    call: 'refunds.create',
    params: { [kind]: payment.id, amount: Number(payment.amount) },
    ...(payment.account !== undefined && { account: payment.account }),
  }
}
