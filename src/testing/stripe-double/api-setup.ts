/**
 * The reading side of how an account is set up: the endpoints that Stripe delivers to, and the accounts
 * that are connected to the platform.
 */
import { missing } from './api-error.ts'
import type { Parameters } from './form-parameters.ts'
import { page, pageParameters, type ListSource, type Page } from './list-pages.ts'
import { apiVersion, type StoredObject } from './object-kinds.ts'
import type { ObjectState } from './object-state.ts'
import { allowOnly } from './parameter-readers.ts'

/** A webhook endpoint of the account that the API key belongs to. */
export interface DoubleEndpoint {
  /** `we_…`; made from its place in the list when absent. */
  readonly id?: string
  readonly url: string
  /** `enabled` when absent. */
  readonly status?: 'enabled' | 'disabled'
  /** `['*']` when absent. */
  readonly enabledEvents?: readonly string[]
  /** The version whose shapes it delivers; the double's own when absent, null for the account's default. */
  readonly apiVersion?: string | null
}

/** What reading the setup needs to know. */
export interface SetupView {
  readonly state: ObjectState
  /** The account of the call, and the one that the key belongs to. */
  readonly account: string
  readonly owner: string
  readonly livemode: boolean
  readonly endpoints: readonly DoubleEndpoint[]
}

/** The answer to a read of `/v1/webhook_endpoints` or `/v1/accounts`; undefined for any other path. */
export function readSetup(
  view: SetupView,
  path: string,
  parameters: Parameters,
): object | undefined {
  const [, version, name, id, ...rest] = path.split('/')
  if (version !== 'v1' || rest.length > 0) return undefined
  if (name !== 'webhook_endpoints' && name !== 'accounts') return undefined
  const objects = name === 'accounts' ? connected(view) : endpoints(view)
  if (id === undefined) return listed(`/v1/${name}`, objects, parameters)
  allowOnly(parameters, [])
  const found = objects.find((object) => object.id === decodeURIComponent(id))
  if (!found) throw missing(name.slice(0, -1), id, 'id')
  return found
}

interface SetupObject {
  readonly id: string
  readonly object: string
  readonly created: number
}

function endpoints({ account, owner, livemode, endpoints: given }: SetupView): SetupObject[] {
  if (account !== owner) return []
  return given.map((endpoint, at) => ({
    id: endpoint.id ?? `we_1Simulated${String(at).padStart(4, '0')}`,
    object: 'webhook_endpoint',
    api_version: endpoint.apiVersion === undefined ? apiVersion : endpoint.apiVersion,
    application: null,
    created: at,
    description: null,
    enabled_events: [...(endpoint.enabledEvents ?? ['*'])],
    livemode,
    metadata: {},
    status: endpoint.status ?? 'enabled',
    url: endpoint.url,
  }))
}

function connected({ state, account, owner }: SetupView): SetupObject[] {
  if (account !== owner) return []
  return state
    .accounts()
    .filter((id) => id !== owner)
    .map((id, at) => ({
      id,
      object: 'account',
      charges_enabled: true,
      country: 'US',
      created: at,
      default_currency: 'usd',
      details_submitted: true,
      metadata: {},
      payouts_enabled: true,
      type: 'standard',
    }))
}

/** Newest first, by the same pages as every other list. */
function listed(
  url: string,
  objects: readonly SetupObject[],
  parameters: Parameters,
): Page<object> {
  allowOnly(parameters, pageParameters)
  const source: ListSource<StoredObject> = {
    url,
    kind: url.slice('/v1/'.length, -1),
    // The pages read no more of an object than its id and time.
    records: objects.map((object, at) => ({
      object: object as unknown as StoredObject,
      sequence: at,
      createdMs: object.created * 1000,
    })),
    positionOf: (id) => {
      const at = objects.findIndex((object) => object.id === id)
      return at === -1 ? undefined : at
    },
    shows: () => true,
    matches: () => true,
  }
  return page(source, parameters)
}
