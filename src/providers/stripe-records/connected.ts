/**
 * Which account a request to Stripe is for: the one that the key belongs to is never named, a connected one
 * always.
 */

/** Which connected accounts a source admits, and its own. */
export interface ConnectOptions {
  readonly connect?: boolean | readonly string[] | undefined
  /** The source's own account, where it is known. */
  readonly account?: string | undefined
}

/** The account to be named in `Stripe-Account`; null: the key's own. */
export function headerAccount(
  { connect, account: own }: ConnectOptions,
  account: string,
): string | null {
  if (connect === undefined || connect === false || account === own) return null
  const isConnected = connect === true ? /^acct_\w+$/.test(account) : connect.includes(account)
  return isConnected ? account : null
}
