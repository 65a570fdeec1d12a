/** Where the shop's emails go, and what it may expect there. */
import { custom, http, type Destination } from 'hookledger'

/**
 * A mail service that honors an operation's id for 24 hours and cannot be asked afterwards what it sent: an
 * email whose outcome is unknown is sent again under the same id in that time, and a person's to look at
 * after it. Without a `url` the emails are shown here; `hookledger dev` serves a mail service of its own.
 */
export function emailDestination(url: string | undefined): Destination {
  if (url === undefined || url === '') return shownHere
  return http({
    url,
    // the shop's own choice: trusted wherever it leads, without https too
    allow: URL.canParse(url) ? [new URL(url).host] : [],
    contract: {
      idempotency: 'key',
      retentionMs: 24 * 3_600_000,
      // it answers at once or not at all, and nobody likes to wait for a license
      callMs: 2000,
      leaseMs: 6000,
      firstRetryMs: 250,
      // an outage of hours
      maxAttempts: 18,
    },
  })
}

/** A line on the terminal, which honors no id: at least once. */
const shownHere: Destination = custom({
  contract: { idempotency: 'none' },
  call: async ({ body }) => {
    process.stderr.write(`email: ${JSON.stringify(body)}\n`)
  },
})
