/**
 * A provider's API as `fetch` and `gather` use it, and what a failed call through it means. A source that has
 * one gives it; nothing here knows a provider.
 */

/** What a failed call means. */
export type FetchFailure =
  /** The provider knows no such object (any more): an answer, and not a failure to be repeated. */
  | { readonly kind: 'gone' }
  /** 429, 5xx, no connection, no answer in time: later. */
  | { readonly kind: 'later'; readonly retryAfterMs: number | null; readonly isRateLimit: boolean }
  /** The key is missing, wrong or lacks a right: a person must act. */
  | { readonly kind: 'refused' }
  /** Nothing that is known: perhaps a fault of the code that asks. Later, and told. */
  | { readonly kind: 'unknown' }

/** How a source's API is called. */
export interface ProviderApi {
  /**
   * A client for one request or a few, bound to the account. Its calls end by the signal and are never
   * repeated behind anybody's back.
   */
  client(account: string, signal: AbortSignal): unknown
  /** What a failure of a call through `client` means; never throws. The text is without payload and key. */
  failureOf(error: unknown): FetchFailure & { readonly text: string }
}
