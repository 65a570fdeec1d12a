/**
 * Whether the provider delivers what the workflows need: an endpoint that is switched off, lacks a type or
 * speaks another version of the API loses events without a word, and reconciliation would hide it.
 */
import { finding } from '../workflow/finding-kinds.ts'
import { RecordsError, type EndpointState } from '../workflow/records.ts'
import { accountSource, type CompareContext } from './compare-context.ts'
import type { CompareInput, Discrepancy } from './ports.ts'

/** Null: the provider cannot be asked about its endpoints, or did not answer. */
export async function endpointDiscrepancies(
  ctx: CompareContext,
  { source, signal }: Pick<CompareInput, 'source' | 'signal'>,
): Promise<readonly Discrepancy[] | null> {
  const { records } = source.source
  if (records?.endpoints === undefined) return null
  let endpoints: readonly EndpointState[]
  try {
    endpoints = await records.endpoints(source.account, signal)
  } catch (error) {
    // a key that may not read endpoints is no reason to give up the comparison
    if (error instanceof RecordsError) return null
    throw error
  }
  const handled = [...(ctx.registry.types.get(source.name) ?? [])].sort()
  const problem = endpointProblem(endpoints, handled, records.apiVersion ?? null)
  if (problem === null) return []
  const at = await accountSource(ctx, source, source.account)
  const figures = { source: source.name, account: source.account, problem }
  return [
    {
      draft: finding('endpoint_unfit', `endpoints:${source.account}`, figures),
      source: at.text,
      orderId: null,
      eventKey: null,
      sourceId: at.sourceId,
      reference: null,
    },
  ]
}

/** What is wrong, in words; null: everything that is handled is delivered. */
export function endpointProblem(
  endpoints: readonly EndpointState[],
  handled: readonly string[],
  apiVersion: string | null,
): string | null {
  if (handled.length === 0) return null
  const enabled = endpoints.filter((each) => each.enabled)
  if (enabled.length === 0)
    return endpoints.length === 0
      ? 'the provider delivers to no endpoint'
      : `every endpoint is disabled: ${urlsOf(endpoints)}`
  const delivered = new Set(enabled.flatMap(({ types }) => types ?? []))
  const missing = enabled.some(({ types }) => types === null)
    ? []
    : handled.filter((type) => !delivered.has(type))
  const problems: string[] = []
  if (missing.length > 0) problems.push(`not delivered: ${missing.join(', ')}`)
  const fits = enabled.some(({ apiVersion: own }) => own === null || own === apiVersion)
  if (apiVersion !== null && !fits) {
    const versions = [...new Set(enabled.map(({ apiVersion: own }) => own ?? ''))].sort()
    problems.push(
      `delivered in API version ${versions.join(', ')}, records are read in ${apiVersion}`,
    )
  }
  return problems.length === 0 ? null : problems.join('; ')
}

function urlsOf(endpoints: readonly EndpointState[]): string {
  return endpoints.map(({ url }) => url.replace(/[?#].*$/, '')).join(', ')
}
