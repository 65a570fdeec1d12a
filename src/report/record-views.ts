/**
 * The rows of a record, as `--json` prints them: the names of the views' columns, amounts exact, times
 * as ISO text.
 */
import type { Count, IsoTime } from './row-values.ts'

/** An order as it is now. */
export interface OrderView {
  readonly order_id: string
  readonly workflow: string
  readonly state: string
  readonly entitles: boolean
  readonly subject: string | null
  readonly expected_amount: bigint | null
  readonly currency: string | null
  readonly provider_account: string | null
  readonly version: Count
  readonly opened_at: IsoTime
  readonly updated_at: IsoTime
  readonly names: readonly { readonly kind: string; readonly name: string }[]
}

/** An event with its deliveries and what it waits for. */
export interface EventView {
  readonly event_key: string
  readonly source: string
  readonly event_id: string
  readonly event_type: string
  readonly via: string
  readonly state: string
  readonly attempts: Count
  readonly last_error: string | null
  readonly received_at: IsoTime
  readonly occurred_at: IsoTime | null
  readonly deliveries: Count
  readonly last_delivered_at: IsoTime | null
  /** How many different bodies came under this id; the first one counts. */
  readonly bodies: Count
  readonly waits_for: string | null
  readonly deadline_at: IsoTime | null
  readonly next_attempt_at: IsoTime | null
}

/** A decision. */
export interface DecisionView {
  readonly decision_id: string
  readonly event_key: string | null
  readonly order_id: string | null
  readonly kind: string
  readonly final: boolean
  readonly from_state: string | null
  readonly to_state: string | null
  readonly reason: string
  readonly evidence: unknown
  readonly workflow_version: string | null
  readonly actor: string
  readonly attempts: Count
  readonly decided_at: IsoTime
}

/** A payment. */
export interface PaymentView {
  readonly payment_id: string
  readonly amount: bigint | null
  readonly currency: string
  readonly applied: boolean
  readonly decision_id: string
  readonly recorded_at: IsoTime
}

/** An effect; a reversal is a row of its own. */
export interface EffectView {
  readonly effect_type: string
  readonly effect_reference: string
  readonly amount: bigint | null
  readonly currency: string | null
  readonly payment_id: string | null
  readonly data: unknown
  readonly decision_id: string
  readonly recorded_at: IsoTime
}

/** An entitlement; `stated` and not `active` means that the order's state does not entitle. */
export interface EntitlementView {
  readonly subject: string
  readonly entitlement: string
  readonly quantity: bigint | null
  readonly valid_until: IsoTime | null
  readonly active: boolean
  readonly stated: boolean
  readonly granted_by: string | null
  readonly changed_by: string
}

/** What an operator did. */
export interface ActView {
  readonly act: string
  readonly target: string
  readonly reason: string
  readonly actor: string
  readonly acted_at: IsoTime
}

/** A call to the outside, or a lookup of one, and what came of it. Never what was sent or answered. */
export interface AttemptView {
  readonly number: Count
  /** `call`, or `lookup`: the destination was asked whether it was done. */
  readonly kind: string
  readonly key_generation: Count
  readonly dispatcher: string
  readonly started_at: IsoTime
  /** Null while it is under way, and for ever where its dispatcher died. */
  readonly outcome: string | null
  readonly status: Count | null
  readonly error: string | null
  /** The answer came after its lease was lost. */
  readonly late: boolean
  readonly answered_at: IsoTime | null
}

/** An operation: one call to the outside, however often it is tried. Never its request. */
export interface OperationView {
  readonly operation_id: string
  /** Its number, in order of being recorded: what lists continue after. */
  readonly sequence: string
  readonly destination: string
  readonly name: string
  readonly order_id: string | null
  readonly effect_type: string | null
  readonly effect_reference: string | null
  readonly decision_id: string | null
  readonly state: string
  /** `once`, or `at_least_once` where the destination honors no id. */
  readonly promise: string
  /** What the destination is to recognize it by at present. */
  readonly key: string
  readonly key_generation: Count
  readonly attempts: Count
  readonly created_at: IsoTime
  readonly next_attempt_at: IsoTime | null
  readonly first_attempt_at: IsoTime | null
  /** Until when the same key may be sent again; null before the first call, or where no id is honored. */
  readonly key_until: IsoTime | null
  readonly uncertain_since: IsoTime | null
  readonly leased_until: IsoTime | null
  readonly leased_by: string | null
  readonly last_error: string | null
  readonly receipt: unknown
  readonly while_states: readonly string[] | null
  readonly request_sha256: string
  readonly request_bytes: Count
  /** Whether its request is still kept: without one it cannot be sent again. */
  readonly has_request: boolean
  readonly finished_at: IsoTime | null
  /** What it is blocked by: null unless its destination takes the operations of an order in sequence. */
  readonly blocked_by: BlockingOperation | null
}

/** The first unfinished operation of an order, which those after it wait for. */
export interface BlockingOperation {
  readonly operation_id: string
  readonly name: string
  readonly destination: string
  readonly effect_reference: string | null
  readonly state: string
  /** Whether nothing goes on until a person decides about it. */
  readonly asks: boolean
}

/** An operation with what was tried, the newest last. */
export interface OperationRecord extends OperationView {
  readonly tries: readonly AttemptView[]
}
