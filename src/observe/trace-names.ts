/**
 * Every name that spans carry. OpenTelemetry's conventions for messaging (1.45) are not stable yet, so the strings
 * stand here and nowhere else.
 */

/** Attributes of the conventions. */
export const messaging: Readonly<
  Record<
    | 'system'
    | 'operationName'
    | 'operationType'
    | 'destination'
    | 'messageId'
    | 'batchCount'
    | 'errorType'
    | 'httpStatus',
    string
  >
> = {
  system: 'messaging.system',
  operationName: 'messaging.operation.name',
  operationType: 'messaging.operation.type',
  destination: 'messaging.destination.name',
  messageId: 'messaging.message.id',
  batchCount: 'messaging.batch.message_count',
  errorType: 'error.type',
  httpStatus: 'http.response.status_code',
}

/** Attributes of our own. */
export const own: Readonly<Record<'orderId' | 'outcome' | 'attempt', string>> = {
  orderId: 'hookledger.order.id',
  /** A kind of decision, `retried`, `asked`, `stored`, `duplicate`, or what came of a call. */
  outcome: 'hookledger.outcome',
  attempt: 'hookledger.attempt',
}

/** The value of `messaging.system`, and the name of the tracer. */
export const system = 'hookledger'
