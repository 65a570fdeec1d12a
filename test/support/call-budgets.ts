/** How many calls a provider saw within any stretch of time. */
import type { ProviderCall } from './subscription-provider.ts'

/** The most calls within any `windowMs`, of all accounts together and of any one of them. */
export function mostCalls(
  calls: readonly ProviderCall[],
  windowMs: number,
): { readonly ofAll: number; readonly ofOne: number } {
  const byAccount = new Map<string, number[]>()
  for (const { account, atMs } of calls) {
    const list = byAccount.get(account)
    if (list === undefined) byAccount.set(account, [atMs])
    else list.push(atMs)
  }
  const ofOne = Math.max(0, ...[...byAccount.values()].map((times) => mostWithin(times, windowMs)))
  return {
    ofAll: mostWithin(
      calls.map(({ atMs }) => atMs),
      windowMs,
    ),
    ofOne,
  }
}

function mostWithin(times: readonly number[], windowMs: number): number {
  const sorted = [...times].sort((a, b) => a - b)
  let most = 0
  let first = 0
  for (const [last, time] of sorted.entries()) {
    while ((sorted[first] ?? time) <= time - windowMs) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}
