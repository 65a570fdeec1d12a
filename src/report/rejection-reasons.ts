/** Why a request is refused, and what to do about it: for whoever reads the list of rejections. */

/** What a reason means. */
export interface RejectionReason {
  readonly means: string
  readonly next: string
}

const reasons: Readonly<Record<string, RejectionReason>> = {
  mismatch: {
    means: 'The signature does not fit the body.',
    next: 'If the provider sends it: the signing secret is another one, or something in front changes the body. Else somebody tries the door.',
  },
  missing: {
    means: 'There is no signature.',
    next: 'Nothing to do unless your provider should have signed it: then look at its endpoint settings.',
  },
  malformed: {
    means: 'The signature is not in the form that the provider uses.',
    next: 'Check that the address belongs to this source, and that no proxy joins or cuts headers.',
  },
  too_old: {
    means: 'It was signed too long ago.',
    next: 'Many of them: compare the clock of this host, and look for a queue in front. A replayed request looks the same.',
  },
  too_new: {
    means: 'It was signed in the future.',
    next: 'Compare the clock of this host with the time of day.',
  },
  unknown_source: {
    means: 'No source of this name is configured.',
    next: 'Compare the address at the provider with the names in the configuration.',
  },
  too_large: {
    means: 'The body is larger than the limit.',
    next: 'Raise limits.bodyBytes if your provider sends such bodies.',
  },
  too_slow: {
    means: 'The body did not come in time.',
    next: 'Look at the network in front; the provider sends it again.',
  },
  aborted: {
    means: 'The sender went away before the body was complete.',
    next: 'Look at timeouts in front of this server; the provider sends it again.',
  },
  body_consumed: {
    means: 'Something had read the body before Hookledger did.',
    next: 'Mount Hookledger before express.json() and the like: the signature is over the raw bytes.',
  },
  not_bytes: {
    means: 'ingest() was not given the raw bytes.',
    next: 'Pass the body as a Uint8Array, exactly as it came.',
  },
  content_encoding: {
    means: 'The body was compressed.',
    next: 'Ask the sender for plain bodies; providers send them plain.',
  },
  method: {
    means: 'It was no POST.',
    next: 'Nothing to do: a visitor, or a check of the address.',
  },
  unavailable: {
    means: 'It could not be stored: the database did not answer.',
    next: 'The provider sends it again; look at the database.',
  },
  unstorable: {
    means: 'The database refuses to store it.',
    next: 'Look at the log of this time: it names the fault.',
  },
}

/** What is known of a reason; a reason that is not known is told as it is. */
export function rejectionReason(reason: string): RejectionReason {
  return reasons[reason] ?? { means: reason.replaceAll('_', ' '), next: '' }
}
