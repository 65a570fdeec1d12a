/**
 * How the account is set up at Stripe: which endpoints deliver, and which accounts are connected. Both
 * lists are short and are read to their end.
 */
import { RecordsError, type EndpointState } from '../../workflow/records.ts'
import { textIn, type Json } from './json-fields.ts'
import type { StripeApi } from './stripe-api.ts'

/** More pages of a hundred than any account has; past it the list does not end. */
const mostPages = 1_000

/**
 * Every endpoint of the account, also those that are switched off.
 *
 * @throws RecordsError
 */
export async function webhookEndpoints(
  api: StripeApi,
  signal: AbortSignal,
): Promise<readonly EndpointState[]> {
  const found = await readAll(api, '/v1/webhook_endpoints', signal)
  return found.map((endpoint) => {
    const types = Array.isArray(endpoint['enabled_events'])
      ? endpoint['enabled_events'].filter((type): type is string => typeof type === 'string')
      : []
    return {
      url: textIn(endpoint, 'url') ?? '',
      enabled: textIn(endpoint, 'status') === 'enabled',
      types: types.includes('*') ? null : types,
      apiVersion: textIn(endpoint, 'api_version'),
    }
  })
}

/**
 * The ids of all connected accounts.
 *
 * @throws RecordsError
 */
export async function connectedAccounts(
  api: StripeApi,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const found = await readAll(api, '/v1/accounts', signal)
  return found.map((account) => account.id)
}

async function readAll(
  api: StripeApi,
  path: string,
  signal: AbortSignal,
): Promise<(Json & { readonly id: string })[]> {
  const found = new Map<string, Json & { readonly id: string }>()
  let after: string | undefined
  for (let page = 0; page < mostPages; page++) {
    const query = { limit: 100, starting_after: after }
    const answer = await api.get({ path, account: null, signal, query })
    const { data, has_more: hasMore } = answer ?? {}
    if (!Array.isArray(data)) throw garbage(path, 'the answer is no list')
    for (const item of data as readonly unknown[]) {
      const id = textIn((item ?? {}) as Json, 'id')
      if (id === null || found.has(id)) throw garbage(path, 'the list is not in order')
      found.set(id, { ...(item as Json), id })
      after = id
    }
    if (hasMore !== true) return [...found.values()]
    if (data.length === 0) throw garbage(path, 'an empty page says that there is more')
  }
  throw garbage(path, 'the list does not end')
}

function garbage(path: string, what: string): RecordsError {
  return new RecordsError('garbage', `Stripe, GET ${path}: ${what}`)
}
