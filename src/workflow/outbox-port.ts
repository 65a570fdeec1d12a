/**
 * What deciding needs of the outbox: which destinations there are, and the exact request of an operation,
 * made once and never again. Plain data and pure functions; the root hands the real one in.
 */

/** What an effect asks to be sent, with everything that makes its permanent id. */
export interface OperationRequest {
  readonly orderId: string
  readonly effectType: string
  readonly effectReference: string
  readonly destination: string
  readonly name: string
  readonly body: unknown
  /** The states of the order in which it still makes sense; null: whatever becomes of the order. */
  readonly whileStates: readonly string[] | null
}

/** An operation as the commit of its effect writes it. */
export interface OperationDraft {
  readonly operationId: string
  readonly destination: string
  readonly orderId: string
  readonly effectType: string
  readonly effectReference: string
  readonly name: string
  /** The exact bytes; they are never made again. */
  readonly request: Uint8Array
  readonly whileStates: readonly string[] | null
}

/** The outbox, as far as deciding is concerned. */
export interface OutboxPort {
  known(destination: string): boolean
  names(): readonly string[]
  /**
   * The operation, with its request encoded. Pure: the same request gives the same draft.
   *
   * @throws PermanentError for a body that the destination cannot encode
   */
  draft(request: OperationRequest): OperationDraft
}

/** An operation that the app itself asks for, outside of any effect. */
export interface AppOperation<Destination extends string = string> {
  readonly to: Destination
  /** What makes it once: the same destination and key are the same operation for ever. */
  readonly key: string
  readonly body: unknown
  /** The order that it belongs to, for `explain`. */
  readonly order?: string | undefined
}

/** What a plain handler sends through: what it adds commits with what it writes. */
export interface HandlerOutbox {
  /**
   * Records an operation. `existed`: the same was recorded before, and it is not sent again.
   *
   * @throws HookledgerError HKL_OUTBOX_CHANGED when this key was recorded with another body
   */
  add(operation: AppOperation): Promise<'added' | 'existed'>
}
