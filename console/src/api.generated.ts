/** Made by scripts/make-console-types.ts from the table of routes. */
export interface Api {
  /** What people did and looked at, by whom and why. */
  'GET /acts': {
    params: Record<string, never>
    query: {
      readonly cursor?: string | undefined
      readonly limit?: number | undefined
      readonly actor?: string | undefined
      readonly act?: string | undefined
      readonly target?: string | undefined
      readonly from?: string | undefined
      readonly to?: string | undefined
    }
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly act_id: string
        readonly act: string
        readonly target: string
        readonly reason: string
        readonly actor: string
        readonly database_role: string
        readonly acted_at: string
      })[]
      readonly next: string | null
    }
  }
  /** Bulk acts, the newest first. */
  'GET /bulk': {
    params: Record<string, never>
    query: {
      readonly cursor?: string | undefined
      readonly limit?: number | undefined
      readonly state?: "planned" | "waiting_approval" | "running" | "done" | "failed" | "canceled" | "rejected" | undefined
    }
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly bulk_id: string
        readonly act: "replay" | "retry" | "discard" | "assign" | "dismiss" | "repair"
        readonly filter: Readonly<Record<string, unknown>>
        readonly details: Readonly<Record<string, unknown>>
        readonly count: number
        readonly state: "planned" | "waiting_approval" | "running" | "done" | "failed" | "canceled" | "rejected"
        readonly reason: string
        readonly actor: string
        readonly needs_approval: boolean
        readonly planned_at: string
        readonly started_at: string | null
        readonly approved_by: string | null
        readonly approved_at: string | null
        readonly ended_by: string | null
        readonly finished_at: string | null
        readonly done: number
        readonly unchanged: number
        readonly failed: number
        readonly pending: number
        readonly confirm: string
      })[]
      readonly next: string | null
    }
  }
  /** One bulk act: what was planned, and how far it has come. */
  'GET /bulk/{bulk_id}': {
    params: {
      readonly bulk_id: string
    }
    query: Record<string, never>
    body: undefined
    answer: {
      readonly bulk_id: string
      readonly act: "replay" | "retry" | "discard" | "assign" | "dismiss" | "repair"
      readonly filter: Readonly<Record<string, unknown>>
      readonly details: Readonly<Record<string, unknown>>
      readonly count: number
      readonly state: "planned" | "waiting_approval" | "running" | "done" | "failed" | "canceled" | "rejected"
      readonly reason: string
      readonly actor: string
      readonly needs_approval: boolean
      readonly planned_at: string
      readonly started_at: string | null
      readonly approved_by: string | null
      readonly approved_at: string | null
      readonly ended_by: string | null
      readonly finished_at: string | null
      readonly done: number
      readonly unchanged: number
      readonly failed: number
      readonly pending: number
      readonly confirm: string
      readonly sample: readonly ({
        readonly number: number
        readonly target: string
        readonly reference: {
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        } | null
        readonly title: string
        readonly was: string
        readonly state: "pending" | "done" | "unchanged" | "failed"
        readonly code: string | null
        readonly message: string | null
        readonly answered_at: string | null
      })[]
    }
  }
  /** The targets of a bulk act, and what became of each. */
  'GET /bulk/{bulk_id}/items': {
    params: {
      readonly bulk_id: string
    }
    query: {
      readonly cursor?: string | undefined
      readonly limit?: number | undefined
      readonly state?: "pending" | "done" | "unchanged" | "failed" | undefined
    }
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly number: number
        readonly target: string
        readonly reference: {
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        } | null
        readonly title: string
        readonly was: string
        readonly state: "pending" | "done" | "unchanged" | "failed"
        readonly code: string | null
        readonly message: string | null
        readonly answered_at: string | null
      })[]
      readonly next: string | null
    }
  }
  /** How far the providers' records have been looked at. */
  'GET /checkpoints': {
    params: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly source: string
        readonly kind: string
        readonly through: string
        readonly age_ms: number
        readonly moved_at: string
        readonly in_work: boolean
        readonly deep_at: string | null
      })[]
    }
  }
  /** What was decided, with reasons, the newest first. */
  'GET /decisions': {
    params: Record<string, never>
    query: {
      readonly cursor?: string | undefined
      readonly limit?: number | undefined
      readonly kind?: string | undefined
      readonly order_id?: string | undefined
      readonly workflow?: string | undefined
    }
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly decision_id: string
        readonly kind: string
        readonly final: boolean
        readonly order_id: string | null
        readonly workflow: string | null
        readonly from_state: string | null
        readonly to_state: string | null
        readonly reason: string
        readonly actor: string
        readonly source: string | null
        readonly event_id: string | null
        readonly event_type: string | null
        readonly decided_at: string
      })[]
      readonly next: string | null
    }
  }
  /** Every request that was let in, also those that brought what was known. */
  'GET /deliveries': {
    params: Record<string, never>
    query: {
      readonly cursor?: string | undefined
      readonly limit?: number | undefined
      readonly verdict?: "new" | "duplicate" | undefined
      readonly source?: string | undefined
      readonly from?: string | undefined
      readonly to?: string | undefined
    }
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly delivery_id: string
        readonly source: string
        readonly event_id: string
        readonly event_type: string | null
        readonly verdict: "new" | "duplicate"
        readonly body_sha256: string
        readonly received_at: string
      })[]
      readonly next: string | null
    }
  }
  /** Effects: each once, with the decision that made it and how many later ones found it there. */
  'GET /effects': {
    params: Record<string, never>
    query: {
      readonly cursor?: string | undefined
      readonly limit?: number | undefined
      readonly order_id?: string | undefined
      readonly type?: string | undefined
      readonly reference?: string | undefined
    }
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly order_id: string
        readonly effect_type: string
        readonly effect_reference: string
        readonly amount: string | null
        readonly currency: string | null
        readonly payment_id: string | null
        readonly data: unknown
        readonly decision_id: string
        readonly absorbed: string
        readonly recorded_at: string
      })[]
      readonly next: string | null
    }
  }
  /** Who may use what because of which order, by subject. */
  'GET /entitlements': {
    params: Record<string, never>
    query: {
      readonly cursor?: string | undefined
      readonly limit?: number | undefined
      readonly subject?: string | undefined
      readonly entitlement?: string | undefined
      readonly order_id?: string | undefined
      readonly in_force?: "true" | "false" | undefined
    }
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly subject: string
        readonly entitlement: string
        readonly order_id: string
        readonly quantity: string | null
        readonly valid_until: string | null
        readonly in_force: boolean
        readonly granted_by: string | null
        readonly changed_by: string
      })[]
      readonly next: string | null
    }
  }
  /** The inbox: every event, once, the newest first. */
  'GET /events': {
    params: Record<string, never>
    query: {
      readonly cursor?: string | undefined
      readonly limit?: number | undefined
      readonly state?: "pending" | "deferred" | "dead" | "processed" | "ignored" | undefined
      readonly source?: string | undefined
      readonly type?: string | undefined
      readonly order_id?: string | undefined
      readonly text?: string | undefined
      readonly from?: string | undefined
      readonly to?: string | undefined
    }
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly event_key: string
        readonly source: string
        readonly event_id: string
        readonly event_type: string
        readonly via: string
        readonly state: string
        readonly attempts: number
        readonly deliveries: number
        readonly order_id: string | null
        readonly last_error: string | null
        readonly waits_for: string | null
        readonly received_at: string
        readonly deadline_at: string | null
        readonly next_attempt_at: string | null
      })[]
      readonly next: string | null
    }
  }
  /** How many events are in each state. */
  'GET /events/counts': {
    params: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: {
      readonly counts: readonly ({
        readonly state: "pending" | "deferred" | "dead" | "processed" | "ignored"
        readonly events: number
      })[]
    }
  }
  /** Everything about an event, but its body. */
  'GET /events/{source}/{event_id}': {
    params: {
      readonly source: string
      readonly event_id: string
    }
    query: Record<string, never>
    body: undefined
    answer: {
      readonly event: {
        readonly event_key: string
        readonly source: string
        readonly event_id: string
        readonly event_type: string
        readonly via: string
        readonly state: string
        readonly attempts: number
        readonly last_error: string | null
        readonly received_at: string
        readonly occurred_at: string | null
        readonly deliveries: number
        readonly last_delivered_at: string | null
        readonly bodies: number
        readonly waits_for: string | null
        readonly deadline_at: string | null
        readonly next_attempt_at: string | null
      }
      readonly head: {
        readonly order_id: string | null
        readonly api_version: string | null
        readonly body_sha256: string
        readonly body_bytes: number
        readonly has_body: boolean
        readonly rearmed_by: string | null
        readonly rearmed_at: string | null
        readonly in_work: boolean
      }
      readonly verdict: string
      readonly deliveries: readonly ({
        readonly delivery_id: string
        readonly received_at: string
        readonly body_sha256: string
        readonly same_body: boolean
      })[]
      readonly waits: readonly ({
        readonly kind: string
        readonly name: string
        readonly source: string | null
        readonly about: {
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        } | null
      })[]
      readonly decisions: readonly ({
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
        readonly attempts: number
        readonly decided_at: string
      })[]
      readonly effects: readonly ({
        readonly effect_type: string
        readonly effect_reference: string
        readonly amount: string | null
        readonly currency: string | null
        readonly payment_id: string | null
        readonly data: unknown
        readonly decision_id: string
        readonly recorded_at: string
      })[]
      readonly operations: readonly ({
        readonly operation_id: string
        readonly sequence: string
        readonly destination: string
        readonly name: string
        readonly order_id: string | null
        readonly effect_type: string | null
        readonly effect_reference: string | null
        readonly decision_id: string | null
        readonly state: string
        readonly promise: string
        readonly promise_text: string
        readonly key: string
        readonly key_generation: number
        readonly attempts: number
        readonly created_at: string
        readonly next_attempt_at: string | null
        readonly first_attempt_at: string | null
        readonly key_until: string | null
        readonly uncertain_since: string | null
        readonly leased_until: string | null
        readonly leased_by: string | null
        readonly last_error: string | null
        readonly receipt: unknown
        readonly while_states: readonly (string)[] | null
        readonly request_sha256: string
        readonly request_bytes: number
        readonly has_request: boolean
        readonly finished_at: string | null
        readonly blocked_by: {
          readonly operation_id: string
          readonly name: string
          readonly destination: string
          readonly effect_reference: string | null
          readonly state: string
          readonly asks: boolean
        } | null
        readonly tries: readonly ({
          readonly number: number
          readonly kind: string
          readonly key_generation: number
          readonly dispatcher: string
          readonly started_at: string
          readonly outcome: string | null
          readonly status: number | null
          readonly error: string | null
          readonly late: boolean
          readonly answered_at: string | null
        })[]
        readonly next: {
          readonly at: string | null
          readonly text: string
          readonly asks: boolean
        }
      })[]
      readonly findings: readonly ({
        readonly finding_id: string
        readonly class: string
        readonly kind: string
        readonly severity: string
        readonly state: string
        readonly owner: string
        readonly order_id: string | null
        readonly event_key: string | null
        readonly event_id: string | null
        readonly event_type: string | null
        readonly evidence: unknown
        readonly record: {
          readonly kind: string
          readonly id: string
          readonly account: string | null
        } | null
        readonly due_at: string
        readonly overdue: boolean
        readonly first_seen_at: string
        readonly last_seen_at: string
        readonly closed_at: string | null
        readonly closed_because: string | null
        readonly dismissed_until: string | null
        readonly times_seen: number
      })[]
      readonly looks: readonly ({
        readonly source: string
        readonly kind: string
        readonly object_id: string
        readonly sent: string
        readonly answered: string
        readonly applied: string
        readonly decision_id: string | null
        readonly answered_at: string | null
        readonly waiting: number
        readonly asked_at: string | null
        readonly next_request_at: string | null
        readonly attempts: number
        readonly last_error: string | null
      })[]
      readonly answers: readonly ({
        readonly evidence_id: string
        readonly source: string
        readonly kind: string
        readonly object_id: string
        readonly number: string
        readonly is_found: boolean
        readonly is_late: boolean
        readonly requested_at: string
        readonly fetched_at: string
        readonly body_sha256: string
        readonly body_bytes: number
      })[]
      readonly caused_by: {
        readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
        readonly id: string
      } | null
      readonly timeline: readonly ({
        readonly at: string
        readonly what: "arrived" | "redelivered" | "decided" | "recorded" | "called" | "looked" | "found" | "repaired" | "verified" | "closed" | "acted"
        readonly text: string
        readonly details: readonly (string)[]
        readonly event_id: string | null
        readonly decision_id: string | null
        readonly links: readonly ({
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        })[]
        readonly figures: readonly ({
          readonly name: string
          readonly amount: string
          readonly currency: string
        })[]
      })[]
    }
  }
  /** The same as CSV, up to 10000 rows. What people did and looked at, by whom and why. */
  'GET /export/acts.csv': {
    params: Record<string, never>
    query: {
      readonly actor?: string | undefined
      readonly act?: string | undefined
      readonly target?: string | undefined
      readonly from?: string | undefined
      readonly to?: string | undefined
    }
    body: undefined
    answer: string
  }
  /** The same as CSV, up to 10000 rows. What was decided, with reasons, the newest first. */
  'GET /export/decisions.csv': {
    params: Record<string, never>
    query: {
      readonly kind?: string | undefined
      readonly order_id?: string | undefined
      readonly workflow?: string | undefined
    }
    body: undefined
    answer: string
  }
  /** The same as CSV, up to 10000 rows. Every request that was let in, also those that brought what was known. */
  'GET /export/deliveries.csv': {
    params: Record<string, never>
    query: {
      readonly verdict?: "new" | "duplicate" | undefined
      readonly source?: string | undefined
      readonly from?: string | undefined
      readonly to?: string | undefined
    }
    body: undefined
    answer: string
  }
  /** The same as CSV, up to 10000 rows. Effects: each once, with the decision that made it and how many later ones found it there. */
  'GET /export/effects.csv': {
    params: Record<string, never>
    query: {
      readonly order_id?: string | undefined
      readonly type?: string | undefined
      readonly reference?: string | undefined
    }
    body: undefined
    answer: string
  }
  /** The same as CSV, up to 10000 rows. Who may use what because of which order, by subject. */
  'GET /export/entitlements.csv': {
    params: Record<string, never>
    query: {
      readonly subject?: string | undefined
      readonly entitlement?: string | undefined
      readonly order_id?: string | undefined
      readonly in_force?: "true" | "false" | undefined
    }
    body: undefined
    answer: string
  }
  /** The same as CSV, up to 10000 rows. The inbox: every event, once, the newest first. */
  'GET /export/events.csv': {
    params: Record<string, never>
    query: {
      readonly state?: "pending" | "deferred" | "dead" | "processed" | "ignored" | undefined
      readonly source?: string | undefined
      readonly type?: string | undefined
      readonly order_id?: string | undefined
      readonly text?: string | undefined
      readonly from?: string | undefined
      readonly to?: string | undefined
    }
    body: undefined
    answer: string
  }
  /** The same as CSV, up to 10000 rows. Discrepancies: those that are open by when they are due. */
  'GET /export/findings.csv': {
    params: Record<string, never>
    query: {
      readonly state?: "unfinished" | "open" | "repairing" | "closed" | "dismissed" | undefined
      readonly class?: "lag" | "contradiction" | undefined
      readonly kind?: string | undefined
      readonly owner?: string | undefined
      readonly order_id?: string | undefined
      readonly overdue?: "true" | "false" | undefined
    }
    body: undefined
    answer: string
  }
  /** The same as CSV, up to 10000 rows. The outbox: calls to the outside, the newest first. */
  'GET /export/operations.csv': {
    params: Record<string, never>
    query: {
      readonly destination?: string | undefined
      readonly state?: "unfinished" | "pending" | "sending" | "sent" | "uncertain" | "dead" | "canceled" | "discarded" | undefined
      readonly order_id?: string | undefined
    }
    body: undefined
    answer: string
  }
  /** The same as CSV, up to 10000 rows. Orders, those opened last first. */
  'GET /export/orders.csv': {
    params: Record<string, never>
    query: {
      readonly workflow?: string | undefined
      readonly state?: string | undefined
      readonly subject?: string | undefined
      readonly text?: string | undefined
      readonly from?: string | undefined
      readonly to?: string | undefined
    }
    body: undefined
    answer: string
  }
  /** The same as CSV, up to 10000 rows. Payments, applied or contradicted. */
  'GET /export/payments.csv': {
    params: Record<string, never>
    query: {
      readonly order_id?: string | undefined
      readonly applied?: "true" | "false" | undefined
    }
    body: undefined
    answer: string
  }
  /** The same as CSV, up to 10000 rows. Requests that were answered with an error and stored nothing, by the minute. */
  'GET /export/rejections.csv': {
    params: Record<string, never>
    query: {
      readonly source?: string | undefined
      readonly reason?: string | undefined
      readonly from?: string | undefined
      readonly to?: string | undefined
    }
    body: undefined
    answer: string
  }
  /** The same as CSV, up to 10000 rows. Passes over the providers' own records. */
  'GET /export/runs.csv': {
    params: Record<string, never>
    query: {
      readonly source?: string | undefined
      readonly state?: string | undefined
    }
    body: undefined
    answer: string
  }
  /** Discrepancies: those that are open by when they are due. */
  'GET /findings': {
    params: Record<string, never>
    query: {
      readonly cursor?: string | undefined
      readonly limit?: number | undefined
      readonly state?: "unfinished" | "open" | "repairing" | "closed" | "dismissed" | undefined
      readonly class?: "lag" | "contradiction" | undefined
      readonly kind?: string | undefined
      readonly owner?: string | undefined
      readonly order_id?: string | undefined
      readonly overdue?: "true" | "false" | undefined
    }
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly finding_id: string
        readonly class: string
        readonly kind: string
        readonly severity: string
        readonly state: string
        readonly owner: string
        readonly order_id: string | null
        readonly event_key: string | null
        readonly event_id: string | null
        readonly event_type: string | null
        readonly evidence: unknown
        readonly record: {
          readonly kind: string
          readonly id: string
          readonly account: string
        } | null
        readonly due_at: string
        readonly overdue: boolean
        readonly first_seen_at: string
        readonly last_seen_at: string
        readonly closed_at: string | null
        readonly closed_because: string | null
        readonly dismissed_until: string | null
        readonly times_seen: number
      })[]
      readonly next: string | null
    }
  }
  /** Everything about a finding, with what may be done about it. */
  'GET /findings/{finding_id}': {
    params: {
      readonly finding_id: string
    }
    query: Record<string, never>
    body: undefined
    answer: {
      readonly finding: {
        readonly finding_id: string
        readonly class: string
        readonly kind: string
        readonly severity: string
        readonly state: string
        readonly owner: string
        readonly order_id: string | null
        readonly event_key: string | null
        readonly event_id: string | null
        readonly event_type: string | null
        readonly evidence: unknown
        readonly record: {
          readonly kind: string
          readonly id: string
          readonly account: string | null
        } | null
        readonly due_at: string
        readonly overdue: boolean
        readonly first_seen_at: string
        readonly last_seen_at: string
        readonly closed_at: string | null
        readonly closed_because: string | null
        readonly dismissed_until: string | null
        readonly times_seen: number
      }
      readonly event: {
        readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
        readonly id: string
      } | null
      readonly repairs: readonly ({
        readonly repair_id: string
        readonly finding_id: string
        readonly finding_kind: string
        readonly order_id: string | null
        readonly plan: unknown
        readonly reason: string
        readonly actor: string
        readonly database_role: string
        readonly previous_state: unknown
        readonly new_state: unknown
        readonly decision_id: string | null
        readonly applied_at: string
        readonly verified_at: string | null
      })[]
      readonly acts: readonly ({
        readonly act: string
        readonly target: string
        readonly reason: string
        readonly actor: string
        readonly acted_at: string
      })[]
      readonly allowed: readonly ("repair" | "assign" | "dismiss")[]
      readonly timeline: readonly ({
        readonly at: string
        readonly what: "arrived" | "redelivered" | "decided" | "recorded" | "called" | "looked" | "found" | "repaired" | "verified" | "closed" | "acted"
        readonly text: string
        readonly details: readonly (string)[]
        readonly event_id: string | null
        readonly decision_id: string | null
        readonly links: readonly ({
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        })[]
        readonly figures: readonly ({
          readonly name: string
          readonly amount: string
          readonly currency: string
        })[]
      })[]
    }
  }
  /** What a repair of a finding would change; asks the provider, and changes nothing. */
  'GET /findings/{finding_id}/plan': {
    params: {
      readonly finding_id: string
    }
    query: {
      readonly choice?: string | undefined
      readonly to?: string | undefined
    }
    body: undefined
    answer: {
      readonly finding_id: string
      readonly outcome: "plan" | "agreed" | "choose"
      readonly plan: {
        readonly plan_id: string
        readonly finding_id: string
        readonly kind: string
        readonly choice: string
        readonly order: {
          readonly order_id: string
          readonly workflow: string
          readonly from: string | null
          readonly to: string
          readonly decided: string | null
          readonly version: string
          readonly subject: {
            readonly from: string | null
            readonly to: string | null
          } | null
          readonly expected: {
            readonly from: {
              readonly amount: string
              readonly currency: string
            } | null
            readonly to: {
              readonly amount: string
              readonly currency: string
            } | null
          } | null
        } | null
        readonly payments: readonly ({
          readonly amount: string
          readonly currency: string
          readonly payment_id: string
          readonly known: boolean
        })[]
        readonly voided: readonly (string)[]
        readonly effects: readonly ({
          readonly effect_type: string
          readonly effect_reference: string
          readonly amount: string | null
          readonly currency: string | null
          readonly payment_id: string | null
          readonly data: unknown
        })[]
        readonly entitle: readonly ({
          readonly subject: string
          readonly entitlement: string
          readonly quantity: number
          readonly valid_until: string | null
          readonly active: boolean
        })[] | null
        readonly granted: readonly (string)[]
        readonly revoked: readonly (string)[]
        readonly operations: readonly ({
          readonly operation_id: string
          readonly destination: string
          readonly name: string
          readonly effect_type: string | null
          readonly effect_reference: string | null
        })[]
        readonly refund: {
          readonly amount: string
          readonly currency: string
          readonly payment: string
          readonly account: string
        } | null
        readonly records: readonly ({
          readonly kind: string
          readonly id: string
          readonly account: string
          readonly says: string
        })[]
        readonly summary: readonly (string)[]
      } | null
      readonly why: string | null
      readonly choices: readonly ({
        readonly choice: string
        readonly does: string
      })[]
      readonly confirm: string
    }
  }
  /** This document. */
  'GET /openapi.json': {
    params: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: {
      readonly openapi: string
    }
  }
  /** The outbox: calls to the outside, the newest first. */
  'GET /operations': {
    params: Record<string, never>
    query: {
      readonly cursor?: string | undefined
      readonly limit?: number | undefined
      readonly destination?: string | undefined
      readonly state?: "unfinished" | "pending" | "sending" | "sent" | "uncertain" | "dead" | "canceled" | "discarded" | undefined
      readonly order_id?: string | undefined
    }
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly operation_id: string
        readonly sequence: string
        readonly destination: string
        readonly name: string
        readonly order_id: string | null
        readonly effect_type: string | null
        readonly effect_reference: string | null
        readonly decision_id: string | null
        readonly state: string
        readonly promise: string
        readonly key: string
        readonly key_generation: number
        readonly attempts: number
        readonly created_at: string
        readonly next_attempt_at: string | null
        readonly first_attempt_at: string | null
        readonly key_until: string | null
        readonly uncertain_since: string | null
        readonly leased_until: string | null
        readonly leased_by: string | null
        readonly last_error: string | null
        readonly receipt: unknown
        readonly while_states: readonly (string)[] | null
        readonly request_sha256: string
        readonly request_bytes: number
        readonly has_request: boolean
        readonly finished_at: string | null
        readonly blocked_by: {
          readonly operation_id: string
          readonly name: string
          readonly destination: string
          readonly effect_reference: string | null
          readonly state: string
          readonly asks: boolean
        } | null
      })[]
      readonly next: string | null
    }
  }
  /** Everything about an operation, but what was sent and answered. */
  'GET /operations/{operation_id}': {
    params: {
      readonly operation_id: string
    }
    query: Record<string, never>
    body: undefined
    answer: {
      readonly operation: {
        readonly operation_id: string
        readonly sequence: string
        readonly destination: string
        readonly name: string
        readonly order_id: string | null
        readonly effect_type: string | null
        readonly effect_reference: string | null
        readonly decision_id: string | null
        readonly state: string
        readonly promise: string
        readonly promise_text: string
        readonly key: string
        readonly key_generation: number
        readonly attempts: number
        readonly created_at: string
        readonly next_attempt_at: string | null
        readonly first_attempt_at: string | null
        readonly key_until: string | null
        readonly uncertain_since: string | null
        readonly leased_until: string | null
        readonly leased_by: string | null
        readonly last_error: string | null
        readonly receipt: unknown
        readonly while_states: readonly (string)[] | null
        readonly request_sha256: string
        readonly request_bytes: number
        readonly has_request: boolean
        readonly finished_at: string | null
        readonly blocked_by: {
          readonly operation_id: string
          readonly name: string
          readonly destination: string
          readonly effect_reference: string | null
          readonly state: string
          readonly asks: boolean
        } | null
        readonly tries: readonly ({
          readonly number: number
          readonly kind: string
          readonly key_generation: number
          readonly dispatcher: string
          readonly started_at: string
          readonly outcome: string | null
          readonly status: number | null
          readonly error: string | null
          readonly late: boolean
          readonly answered_at: string | null
        })[]
        readonly next: {
          readonly at: string | null
          readonly text: string
          readonly asks: boolean
        }
      }
      readonly caused: readonly ({
        readonly event_id: string
        readonly event_type: string
        readonly decision_id: string
        readonly kind: string
      })[]
      readonly findings: readonly ({
        readonly finding_id: string
        readonly class: string
        readonly kind: string
        readonly severity: string
        readonly state: string
        readonly owner: string
        readonly order_id: string | null
        readonly event_key: string | null
        readonly event_id: string | null
        readonly event_type: string | null
        readonly evidence: unknown
        readonly record: {
          readonly kind: string
          readonly id: string
          readonly account: string | null
        } | null
        readonly due_at: string
        readonly overdue: boolean
        readonly first_seen_at: string
        readonly last_seen_at: string
        readonly closed_at: string | null
        readonly closed_because: string | null
        readonly dismissed_until: string | null
        readonly times_seen: number
      })[]
      readonly timeline: readonly ({
        readonly at: string
        readonly what: "arrived" | "redelivered" | "decided" | "recorded" | "called" | "looked" | "found" | "repaired" | "verified" | "closed" | "acted"
        readonly text: string
        readonly details: readonly (string)[]
        readonly event_id: string | null
        readonly decision_id: string | null
        readonly links: readonly ({
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        })[]
        readonly figures: readonly ({
          readonly name: string
          readonly amount: string
          readonly currency: string
        })[]
      })[]
    }
  }
  /** Orders, those opened last first. */
  'GET /orders': {
    params: Record<string, never>
    query: {
      readonly cursor?: string | undefined
      readonly limit?: number | undefined
      readonly workflow?: string | undefined
      readonly state?: string | undefined
      readonly subject?: string | undefined
      readonly text?: string | undefined
      readonly from?: string | undefined
      readonly to?: string | undefined
    }
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly order_id: string
        readonly workflow: string
        readonly state: string
        readonly entitles: boolean
        readonly subject: string | null
        readonly expected_amount: string | null
        readonly currency: string | null
        readonly opened_at: string
        readonly updated_at: string
      })[]
      readonly next: string | null
    }
  }
  /** Everything about an order, as one story and as rows. */
  'GET /orders/{order_id}': {
    params: {
      readonly order_id: string
    }
    query: Record<string, never>
    body: undefined
    answer: {
      readonly order_id: string
      readonly order: {
        readonly order_id: string
        readonly workflow: string
        readonly state: string
        readonly entitles: boolean
        readonly subject: string | null
        readonly expected_amount: string | null
        readonly currency: string | null
        readonly provider_account: string | null
        readonly version: number
        readonly opened_at: string
        readonly updated_at: string
        readonly names: readonly ({
          readonly kind: string
          readonly name: string
        })[]
      } | null
      readonly why: {
        readonly state: string
        readonly since: string | null
        readonly text: string
        readonly decision_id: string | null
        readonly event: {
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        } | null
      } | null
      readonly refused: readonly ({
        readonly at: string
        readonly decision_id: string
        readonly event: {
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        } | null
        readonly event_type: string | null
        readonly verdict: "refused" | "waits"
        readonly from_state: string | null
        readonly to_state: string | null
        readonly reason: string
        readonly finding_ids: readonly (string)[]
      })[]
      readonly open: readonly ({
        readonly about: {
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        } | null
        readonly text: string
        readonly at: string | null
        readonly asks: boolean
      })[]
      readonly timeline: readonly ({
        readonly at: string
        readonly what: "arrived" | "redelivered" | "decided" | "recorded" | "called" | "looked" | "found" | "repaired" | "verified" | "closed" | "acted"
        readonly text: string
        readonly details: readonly (string)[]
        readonly event_id: string | null
        readonly decision_id: string | null
        readonly links: readonly ({
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        })[]
        readonly figures: readonly ({
          readonly name: string
          readonly amount: string
          readonly currency: string
        })[]
      })[]
      readonly events: readonly ({
        readonly event_key: string
        readonly source: string
        readonly event_id: string
        readonly event_type: string
        readonly via: string
        readonly state: string
        readonly attempts: number
        readonly last_error: string | null
        readonly received_at: string
        readonly occurred_at: string | null
        readonly deliveries: number
        readonly last_delivered_at: string | null
        readonly bodies: number
        readonly waits_for: string | null
        readonly deadline_at: string | null
        readonly next_attempt_at: string | null
      })[]
      readonly decisions: readonly ({
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
        readonly attempts: number
        readonly decided_at: string
      })[]
      readonly payments: readonly ({
        readonly payment_id: string
        readonly amount: string | null
        readonly currency: string
        readonly applied: boolean
        readonly decision_id: string
        readonly recorded_at: string
      })[]
      readonly effects: readonly ({
        readonly effect_type: string
        readonly effect_reference: string
        readonly amount: string | null
        readonly currency: string | null
        readonly payment_id: string | null
        readonly data: unknown
        readonly decision_id: string
        readonly recorded_at: string
      })[]
      readonly entitlements: readonly ({
        readonly subject: string
        readonly entitlement: string
        readonly quantity: string | null
        readonly valid_until: string | null
        readonly active: boolean
        readonly stated: boolean
        readonly granted_by: string | null
        readonly changed_by: string
      })[]
      readonly operations: readonly ({
        readonly operation_id: string
        readonly sequence: string
        readonly destination: string
        readonly name: string
        readonly order_id: string | null
        readonly effect_type: string | null
        readonly effect_reference: string | null
        readonly decision_id: string | null
        readonly state: string
        readonly promise: string
        readonly promise_text: string
        readonly key: string
        readonly key_generation: number
        readonly attempts: number
        readonly created_at: string
        readonly next_attempt_at: string | null
        readonly first_attempt_at: string | null
        readonly key_until: string | null
        readonly uncertain_since: string | null
        readonly leased_until: string | null
        readonly leased_by: string | null
        readonly last_error: string | null
        readonly receipt: unknown
        readonly while_states: readonly (string)[] | null
        readonly request_sha256: string
        readonly request_bytes: number
        readonly has_request: boolean
        readonly finished_at: string | null
        readonly blocked_by: {
          readonly operation_id: string
          readonly name: string
          readonly destination: string
          readonly effect_reference: string | null
          readonly state: string
          readonly asks: boolean
        } | null
        readonly tries: readonly ({
          readonly number: number
          readonly kind: string
          readonly key_generation: number
          readonly dispatcher: string
          readonly started_at: string
          readonly outcome: string | null
          readonly status: number | null
          readonly error: string | null
          readonly late: boolean
          readonly answered_at: string | null
        })[]
        readonly next: {
          readonly at: string | null
          readonly text: string
          readonly asks: boolean
        }
      })[]
      readonly findings: readonly ({
        readonly finding_id: string
        readonly class: string
        readonly kind: string
        readonly severity: string
        readonly state: string
        readonly owner: string
        readonly order_id: string | null
        readonly event_key: string | null
        readonly event_id: string | null
        readonly event_type: string | null
        readonly evidence: unknown
        readonly record: {
          readonly kind: string
          readonly id: string
          readonly account: string | null
        } | null
        readonly due_at: string
        readonly overdue: boolean
        readonly first_seen_at: string
        readonly last_seen_at: string
        readonly closed_at: string | null
        readonly closed_because: string | null
        readonly dismissed_until: string | null
        readonly times_seen: number
      })[]
      readonly repairs: readonly ({
        readonly repair_id: string
        readonly finding_id: string
        readonly finding_kind: string
        readonly order_id: string | null
        readonly plan: unknown
        readonly reason: string
        readonly actor: string
        readonly database_role: string
        readonly previous_state: unknown
        readonly new_state: unknown
        readonly decision_id: string | null
        readonly applied_at: string
        readonly verified_at: string | null
      })[]
      readonly acts: readonly ({
        readonly act: string
        readonly target: string
        readonly reason: string
        readonly actor: string
        readonly acted_at: string
      })[]
      readonly looks: readonly ({
        readonly source: string
        readonly kind: string
        readonly object_id: string
        readonly sent: string
        readonly answered: string
        readonly applied: string
        readonly decision_id: string | null
        readonly answered_at: string | null
        readonly waiting: number
        readonly asked_at: string | null
        readonly next_request_at: string | null
        readonly attempts: number
        readonly last_error: string | null
      })[]
      readonly answers: readonly ({
        readonly evidence_id: string
        readonly source: string
        readonly kind: string
        readonly object_id: string
        readonly number: string
        readonly is_found: boolean
        readonly is_late: boolean
        readonly requested_at: string
        readonly fetched_at: string
        readonly body_sha256: string
        readonly body_bytes: number
      })[]
      readonly runs: readonly ({
        readonly run_id: string
        readonly source: string
        readonly how: string
        readonly actor: string
        readonly state: string
        readonly coverage: unknown
        readonly calls: number
        readonly injected: number
        readonly opened: number
        readonly closed: number
        readonly repaired: number
        readonly error: string | null
        readonly started_at: string
        readonly seen_at: string
        readonly finished_at: string | null
      })[]
      readonly omitted_decisions: number
    }
  }
  /** The states and transitions of its workflow, with the way that the order took. */
  'GET /orders/{order_id}/graph': {
    params: {
      readonly order_id: string
    }
    query: Record<string, never>
    body: undefined
    answer: {
      readonly workflow: string
      readonly is_configured: boolean
      readonly initial: string | null
      readonly current: string
      readonly states: readonly ({
        readonly state: string
        readonly entitles: boolean
        readonly is_initial: boolean
        readonly is_current: boolean
        readonly is_declared: boolean
        readonly visits: number
        readonly stays: number
      })[]
      readonly transitions: readonly ({
        readonly from: string
        readonly to: string
        readonly is_declared: boolean
        readonly taken: number
        readonly last_at: string | null
        readonly refused: number
      })[]
      readonly path: readonly ({
        readonly at: string
        readonly from: string | null
        readonly to: string
        readonly decision_id: string
        readonly kind: string
        readonly event: {
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        } | null
      })[]
      readonly omitted_steps: number
    }
  }
  /** Whether every paid customer is served, and if not, what to do first. */
  'GET /overview': {
    params: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: {
      readonly at: string
      readonly served: "yes" | "no"
      readonly verdict: string
      readonly unserved: {
        readonly count: number
        readonly orders: number
        readonly events: number
        readonly items: readonly ({
          readonly about: {
            readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
            readonly id: string
          }
          readonly order_id: string | null
          readonly subject: string | null
          readonly why: string
          readonly since: string
        })[]
      }
      readonly first: {
        readonly code: string
        readonly text: string
        readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow" | null
        readonly id: string | null
      } | null
      readonly todo: readonly ({
        readonly code: string
        readonly text: string
        readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow" | null
        readonly id: string | null
      })[]
      readonly stages: readonly ({
        readonly stage: "inbox" | "waiting" | "gathering" | "outbox" | "findings" | "reconciliation"
        readonly unfinished: number
        readonly oldest_age_ms: number | null
        readonly dead: number
        readonly overdue: number
        readonly uncertain: number
      })[]
      readonly last_minute: {
        readonly received: number
        readonly decided: number
        readonly duplicates: number
        readonly failed: number
        readonly sent: number
        readonly rejected: number
      }
      readonly last_day: {
        readonly received: number
        readonly decided: number
        readonly duplicates: number
        readonly failed: number
        readonly sent: number
        readonly rejected: number
      }
      readonly duplicates_absorbed: number
      readonly decided_last_minute: number
      readonly asking: number
      readonly findings: {
        readonly open: number
        readonly overdue: number
        readonly lag: number
        readonly contradiction: number
        readonly by_kind: readonly ({
          readonly class: string
          readonly kind: string
          readonly open: number
          readonly overdue: number
        })[]
      }
      readonly destinations: readonly ({
        readonly destination: string
        readonly promise: string | null
        readonly pending: number
        readonly due: number
        readonly oldest_due_age_ms: number | null
        readonly sending: number
        readonly uncertain: number
        readonly dead: number
        readonly asking: number
        readonly failures: number
        readonly closed_until: string | null
      })[]
      readonly gathering: {
        readonly requests: number
        readonly failing: number
        readonly oldest_age_ms: number | null
        readonly last_error: string | null
        readonly paused: readonly ({
          readonly budget: string
          readonly until: string
          readonly failures: number
        })[]
      } | null
      readonly checkpoints: readonly ({
        readonly source: string
        readonly kind: string
        readonly through: string
        readonly age_ms: number
        readonly moved_at: string
        readonly in_work: boolean
        readonly deep_at: string | null
      })[]
      readonly runs: readonly ({
        readonly run_id: string
        readonly source: string
        readonly how: string
        readonly actor: string
        readonly state: string
        readonly coverage: unknown
        readonly calls: number
        readonly injected: number
        readonly opened: number
        readonly closed: number
        readonly repaired: number
        readonly error: string | null
        readonly started_at: string
        readonly seen_at: string
        readonly finished_at: string | null
      })[]
      readonly repairs: {
        readonly applied: number
        readonly unverified: number
        readonly oldest_unverified_age_ms: number | null
      }
      readonly processes: readonly ({
        readonly process_id: string
        readonly host: string
        readonly pid: number
        readonly roles: readonly (string)[]
        readonly version: string
        readonly started_at: string
        readonly seen_at: string
        readonly alive: boolean
      })[]
      readonly schema: {
        readonly name: string
        readonly environment: string
        readonly migration: number
        readonly newest: number
        readonly drift: "none" | "older" | "newer"
        readonly partitions_until: string | null
      }
      readonly rejections: readonly ({
        readonly source: string
        readonly reason: string
        readonly times: number
        readonly last_at: string
      })[]
      readonly shadow: {
        readonly workflows: readonly ({
          readonly workflow: string
          readonly since: string
        })[]
        readonly last: {
          readonly compared_at: string
          readonly subjects: number
          readonly differences: number
          readonly too_young: number
        } | null
      } | null
    }
  }
  /** What happened over an hour, a day or a week, bucket by bucket; none is left out. */
  'GET /overview/series': {
    params: Record<string, never>
    query: {
      readonly window?: "1h" | "24h" | "7d" | undefined
    }
    body: undefined
    answer: {
      readonly window: "1h" | "24h" | "7d"
      readonly buckets: readonly ({
        readonly at: string
        readonly received: number
        readonly decided: number
        readonly duplicates: number
        readonly failed: number
        readonly sent: number
        readonly rejected: number
      })[]
    }
  }
  /** Payments, applied or contradicted. */
  'GET /payments': {
    params: Record<string, never>
    query: {
      readonly cursor?: string | undefined
      readonly limit?: number | undefined
      readonly order_id?: string | undefined
      readonly applied?: "true" | "false" | undefined
    }
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly source: string
        readonly payment_id: string
        readonly order_id: string
        readonly amount: string | null
        readonly currency: string
        readonly applied: boolean
        readonly decision_id: string
        readonly recorded_at: string
      })[]
      readonly next: string | null
    }
  }
  /** Checks every promise by a query, as `hookledger audit` does. Reads whole tables: an answer is kept for a minute. */
  'GET /promises': {
    params: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: {
      readonly asked_at: string
      readonly holds: boolean
      readonly promises: readonly ({
        readonly promise: string
        readonly name: string
        readonly holds: boolean
        readonly checks: readonly ({
          readonly promise: "P1" | "P2" | "P3" | "P4" | "P5" | "P6" | "P7" | "P8"
          readonly check: string
          readonly holds: boolean
          readonly says: string
          readonly violations: number
          readonly known: number
          readonly examples: readonly ({
            readonly key: string
            readonly detail: string
          })[]
          readonly skipped: string | null
          readonly duration_ms: number
        })[]
      })[]
    }
  }
  /** Requests that were answered with an error and stored nothing, by the minute. */
  'GET /rejections': {
    params: Record<string, never>
    query: {
      readonly cursor?: string | undefined
      readonly limit?: number | undefined
      readonly source?: string | undefined
      readonly reason?: string | undefined
      readonly from?: string | undefined
      readonly to?: string | undefined
    }
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly rejection_id: string
        readonly source: string
        readonly reason: string
        readonly means: string
        readonly next: string
        readonly times: number
        readonly first_at: string
        readonly last_at: string
      })[]
      readonly next: string | null
    }
  }
  /** Passes over the providers' own records. */
  'GET /runs': {
    params: Record<string, never>
    query: {
      readonly cursor?: string | undefined
      readonly limit?: number | undefined
      readonly source?: string | undefined
      readonly state?: string | undefined
    }
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly run_id: string
        readonly source: string
        readonly how: string
        readonly actor: string
        readonly state: string
        readonly coverage: unknown
        readonly calls: number
        readonly injected: number
        readonly opened: number
        readonly closed: number
        readonly repaired: number
        readonly error: string | null
        readonly started_at: string
        readonly seen_at: string
        readonly finished_at: string | null
      })[]
      readonly next: string | null
    }
  }
  /** What an id or a name of any kind leads to. */
  'GET /search': {
    params: Record<string, never>
    query: {
      readonly q: string
    }
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly kind: "order" | "event" | "operation" | "finding" | "subject"
        readonly id: string
        readonly title: string
        readonly where: string
      })[]
    }
  }
  /** Who asks, what they may do, and how to sign in. */
  'GET /session': {
    params: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: {
      readonly actor: string | null
      readonly roles: readonly ("viewer" | "operator" | "approver" | "privacy" | "admin")[]
      readonly permissions: readonly (string)[]
      readonly csrf: string | null
      readonly door: "oidc" | "app" | "loopback"
      readonly sign_in_path: string | null
      readonly environment: "live" | "test"
      readonly schema: string
      readonly approval: {
        readonly bulk_from: number | null
      }
    }
  }
  /** Who is signed in. */
  'GET /sessions': {
    params: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: {
      readonly items: readonly ({
        readonly session_id: string
        readonly actor: string
        readonly roles: readonly ("viewer" | "operator" | "approver" | "privacy" | "admin")[]
        readonly began_at: string
        readonly last_seen_at: string
        readonly expires_at: string
      })[]
    }
  }
  /** What a subject may use now and because of what, its orders, customers and merges. */
  'GET /subjects/{subject}': {
    params: {
      readonly subject: string
    }
    query: Record<string, never>
    body: undefined
    answer: {
      readonly subject: string
      readonly present: string
      readonly merged: readonly (string)[]
      readonly may_use: readonly ({
        readonly entitlement: string
        readonly quantity: string
        readonly valid_until: string | null
        readonly combine: string
      })[]
      readonly grounds: readonly ({
        readonly subject: string
        readonly entitlement: string
        readonly order_id: string
        readonly workflow: string
        readonly order_state: string
        readonly entitles: boolean
        readonly in_force: boolean
        readonly quantity: string | null
        readonly valid_until: string | null
        readonly granted: {
          readonly decision_id: string
          readonly kind: string
          readonly reason: string
          readonly decided_at: string
          readonly event: {
            readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
            readonly id: string
          } | null
        } | null
        readonly changed: {
          readonly decision_id: string
          readonly kind: string
          readonly reason: string
          readonly decided_at: string
          readonly event: {
            readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
            readonly id: string
          } | null
        } | null
      })[]
      readonly orders: readonly ({
        readonly order_id: string
        readonly workflow: string
        readonly state: string
        readonly entitles: boolean
        readonly opened_at: string
        readonly updated_at: string
      })[]
      readonly findings: readonly ({
        readonly finding_id: string
        readonly kind: string
        readonly state: string
        readonly owner: string
        readonly due_at: string
        readonly order_id: string
      })[]
      readonly customers: readonly ({
        readonly source: string
        readonly customer_id: string
        readonly linked_at: string | null
      })[]
      readonly acts: readonly ({
        readonly act: string
        readonly target: string
        readonly reason: string
        readonly actor: string
        readonly acted_at: string
        readonly subject: string
        readonly source: string | null
      })[]
      readonly is_cut: boolean
    }
  }
  /** The workflows of the configuration, and those that only orders know. */
  'GET /workflows': {
    params: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: {
      readonly workflows: readonly ({
        readonly workflow: string
        readonly is_configured: boolean
        readonly in_shadow: boolean
        readonly orders: string
      })[]
    }
  }
  /** One workflow: its states with their orders, its transitions, the versions that ran. */
  'GET /workflows/{name}': {
    params: {
      readonly name: string
    }
    query: Record<string, never>
    body: undefined
    answer: {
      readonly workflow: string
      readonly is_configured: boolean
      readonly in_shadow: boolean
      readonly initial: string | null
      readonly opens: string | null
      readonly sources: readonly (string)[]
      readonly states: readonly ({
        readonly state: string
        readonly entitles: boolean
        readonly is_initial: boolean
        readonly is_declared: boolean
        readonly orders: string
      })[]
      readonly transitions: readonly ({
        readonly from: string
        readonly to: string
      })[]
      readonly histories: number | null
      readonly versions: readonly ({
        readonly version: string
        readonly is_current: boolean
        readonly event_types: readonly (string)[]
        readonly effect_types: readonly (string)[]
        readonly first_registered_at: string
        readonly last_registered_at: string
        readonly retired_at: string | null
      })[]
    }
  }
  /** Plans a bulk act: freezes what it is about, and does nothing of it. */
  'POST /bulk': {
    params: Record<string, never>
    query: Record<string, never>
    body: {
      readonly bulk_id: string
      readonly reason: string
      readonly act: "replay"
      readonly filter: {
        readonly states?: readonly ("dead" | "ignored" | "deferred" | "delayed")[] | undefined
        readonly types?: readonly (string)[] | undefined
        readonly source?: string | null | undefined
        readonly from?: string | null | undefined
        readonly to?: string | null | undefined
      }
      readonly details?: Record<string, never> | undefined
    } | {
      readonly bulk_id: string
      readonly reason: string
      readonly act: "retry"
      readonly filter: {
        readonly states?: readonly ("dead" | "uncertain")[] | undefined
        readonly destination?: string | null | undefined
        readonly order_id?: string | null | undefined
        readonly from?: string | null | undefined
        readonly to?: string | null | undefined
      }
      readonly details?: Record<string, never> | undefined
    } | {
      readonly bulk_id: string
      readonly reason: string
      readonly act: "discard"
      readonly filter: {
        readonly states?: readonly ("dead" | "uncertain")[] | undefined
        readonly destination?: string | null | undefined
        readonly order_id?: string | null | undefined
        readonly from?: string | null | undefined
        readonly to?: string | null | undefined
      }
      readonly details?: Record<string, never> | undefined
    } | {
      readonly bulk_id: string
      readonly reason: string
      readonly act: "assign"
      readonly filter: {
        readonly states?: readonly ("open" | "repairing" | "dismissed")[] | undefined
        readonly kind?: string | null | undefined
        readonly class?: "lag" | "contradiction" | null | undefined
        readonly owner?: string | null | undefined
        readonly order_id?: string | null | undefined
        readonly overdue?: boolean | undefined
      }
      readonly details: {
        readonly owner: string
      }
    } | {
      readonly bulk_id: string
      readonly reason: string
      readonly act: "dismiss"
      readonly filter: {
        readonly states?: readonly ("open" | "repairing" | "dismissed")[] | undefined
        readonly kind?: string | null | undefined
        readonly class?: "lag" | "contradiction" | null | undefined
        readonly owner?: string | null | undefined
        readonly order_id?: string | null | undefined
        readonly overdue?: boolean | undefined
      }
      readonly details: {
        readonly until: string
      }
    } | {
      readonly bulk_id: string
      readonly reason: string
      readonly act: "repair"
      readonly filter: {
        readonly states?: readonly ("open" | "repairing" | "dismissed")[] | undefined
        readonly kind?: string | null | undefined
        readonly class?: "lag" | "contradiction" | null | undefined
        readonly owner?: string | null | undefined
        readonly order_id?: string | null | undefined
        readonly overdue?: boolean | undefined
      }
      readonly details: {
        readonly choice?: "provider" | "restore" | "accept" | "keep" | null | undefined
      }
    }
    answer: {
      readonly bulk_id: string
      readonly act: "replay" | "retry" | "discard" | "assign" | "dismiss" | "repair"
      readonly filter: Readonly<Record<string, unknown>>
      readonly details: Readonly<Record<string, unknown>>
      readonly count: number
      readonly state: "planned" | "waiting_approval" | "running" | "done" | "failed" | "canceled" | "rejected"
      readonly reason: string
      readonly actor: string
      readonly needs_approval: boolean
      readonly planned_at: string
      readonly started_at: string | null
      readonly approved_by: string | null
      readonly approved_at: string | null
      readonly ended_by: string | null
      readonly finished_at: string | null
      readonly done: number
      readonly unchanged: number
      readonly failed: number
      readonly pending: number
      readonly confirm: string
      readonly sample: readonly ({
        readonly number: number
        readonly target: string
        readonly reference: {
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        } | null
        readonly title: string
        readonly was: string
        readonly state: "pending" | "done" | "unchanged" | "failed"
        readonly code: string | null
        readonly message: string | null
        readonly answered_at: string | null
      })[]
    }
  }
  /** Approves somebody else's bulk act, which runs then; `confirm` is the number of targets. */
  'POST /bulk/{bulk_id}/approve': {
    params: {
      readonly bulk_id: string
    }
    query: Record<string, never>
    body: {
      readonly reason: string
      readonly confirm: string
    }
    answer: {
      readonly bulk_id: string
      readonly act: "replay" | "retry" | "discard" | "assign" | "dismiss" | "repair"
      readonly filter: Readonly<Record<string, unknown>>
      readonly details: Readonly<Record<string, unknown>>
      readonly count: number
      readonly state: "planned" | "waiting_approval" | "running" | "done" | "failed" | "canceled" | "rejected"
      readonly reason: string
      readonly actor: string
      readonly needs_approval: boolean
      readonly planned_at: string
      readonly started_at: string | null
      readonly approved_by: string | null
      readonly approved_at: string | null
      readonly ended_by: string | null
      readonly finished_at: string | null
      readonly done: number
      readonly unchanged: number
      readonly failed: number
      readonly pending: number
      readonly confirm: string
      readonly sample: readonly ({
        readonly number: number
        readonly target: string
        readonly reference: {
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        } | null
        readonly title: string
        readonly was: string
        readonly state: "pending" | "done" | "unchanged" | "failed"
        readonly code: string | null
        readonly message: string | null
        readonly answered_at: string | null
      })[]
    }
  }
  /** Cancels a bulk act: what is done stays done, what is left is not begun. */
  'POST /bulk/{bulk_id}/cancel': {
    params: {
      readonly bulk_id: string
    }
    query: Record<string, never>
    body: {
      readonly reason: string
    }
    answer: {
      readonly bulk_id: string
      readonly act: "replay" | "retry" | "discard" | "assign" | "dismiss" | "repair"
      readonly filter: Readonly<Record<string, unknown>>
      readonly details: Readonly<Record<string, unknown>>
      readonly count: number
      readonly state: "planned" | "waiting_approval" | "running" | "done" | "failed" | "canceled" | "rejected"
      readonly reason: string
      readonly actor: string
      readonly needs_approval: boolean
      readonly planned_at: string
      readonly started_at: string | null
      readonly approved_by: string | null
      readonly approved_at: string | null
      readonly ended_by: string | null
      readonly finished_at: string | null
      readonly done: number
      readonly unchanged: number
      readonly failed: number
      readonly pending: number
      readonly confirm: string
      readonly sample: readonly ({
        readonly number: number
        readonly target: string
        readonly reference: {
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        } | null
        readonly title: string
        readonly was: string
        readonly state: "pending" | "done" | "unchanged" | "failed"
        readonly code: string | null
        readonly message: string | null
        readonly answered_at: string | null
      })[]
    }
  }
  /** Rejects a bulk act that waits for approval. */
  'POST /bulk/{bulk_id}/reject': {
    params: {
      readonly bulk_id: string
    }
    query: Record<string, never>
    body: {
      readonly reason: string
    }
    answer: {
      readonly bulk_id: string
      readonly act: "replay" | "retry" | "discard" | "assign" | "dismiss" | "repair"
      readonly filter: Readonly<Record<string, unknown>>
      readonly details: Readonly<Record<string, unknown>>
      readonly count: number
      readonly state: "planned" | "waiting_approval" | "running" | "done" | "failed" | "canceled" | "rejected"
      readonly reason: string
      readonly actor: string
      readonly needs_approval: boolean
      readonly planned_at: string
      readonly started_at: string | null
      readonly approved_by: string | null
      readonly approved_at: string | null
      readonly ended_by: string | null
      readonly finished_at: string | null
      readonly done: number
      readonly unchanged: number
      readonly failed: number
      readonly pending: number
      readonly confirm: string
      readonly sample: readonly ({
        readonly number: number
        readonly target: string
        readonly reference: {
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        } | null
        readonly title: string
        readonly was: string
        readonly state: "pending" | "done" | "unchanged" | "failed"
        readonly code: string | null
        readonly message: string | null
        readonly answered_at: string | null
      })[]
    }
  }
  /** Starts what oneself has planned; `confirm` is the number of targets. */
  'POST /bulk/{bulk_id}/start': {
    params: {
      readonly bulk_id: string
    }
    query: Record<string, never>
    body: {
      readonly reason: string
      readonly confirm: string
    }
    answer: {
      readonly bulk_id: string
      readonly act: "replay" | "retry" | "discard" | "assign" | "dismiss" | "repair"
      readonly filter: Readonly<Record<string, unknown>>
      readonly details: Readonly<Record<string, unknown>>
      readonly count: number
      readonly state: "planned" | "waiting_approval" | "running" | "done" | "failed" | "canceled" | "rejected"
      readonly reason: string
      readonly actor: string
      readonly needs_approval: boolean
      readonly planned_at: string
      readonly started_at: string | null
      readonly approved_by: string | null
      readonly approved_at: string | null
      readonly ended_by: string | null
      readonly finished_at: string | null
      readonly done: number
      readonly unchanged: number
      readonly failed: number
      readonly pending: number
      readonly confirm: string
      readonly sample: readonly ({
        readonly number: number
        readonly target: string
        readonly reference: {
          readonly kind: "order" | "event" | "operation" | "finding" | "subject" | "workflow"
          readonly id: string
        } | null
        readonly title: string
        readonly was: string
        readonly state: "pending" | "done" | "unchanged" | "failed"
        readonly code: string | null
        readonly message: string | null
        readonly answered_at: string | null
      })[]
    }
  }
  /** Says whose a provider's customer is; `confirm` is the subject, typed again. */
  'POST /customers/link': {
    params: Record<string, never>
    query: Record<string, never>
    body: {
      readonly source: string
      readonly account?: string | undefined
      readonly customer: string
      readonly subject: string
      readonly replace?: boolean | undefined
      readonly reason: string
      readonly confirm: string
    }
    answer: {
      readonly outcome: "linked" | "existed"
    }
  }
  /** Decides an event anew exactly as the plan of this id says, or not at all; `confirm` is the order. */
  'POST /events/{source}/{event_id}/redecide': {
    params: {
      readonly source: string
      readonly event_id: string
    }
    query: Record<string, never>
    body: {
      readonly plan_id: string
      readonly reason: string
      readonly confirm: string
    }
    answer: {
      readonly outcome: "redecided" | "recorded"
      readonly decision_id: string
      readonly order_id: string | null
    }
  }
  /** What deciding an event anew would change; reads its body, which is recorded, and changes nothing. */
  'POST /events/{source}/{event_id}/redecide/plan': {
    params: {
      readonly source: string
      readonly event_id: string
    }
    query: Record<string, never>
    body: {
      readonly reason: string
    }
    answer: {
      readonly outcome: "plan" | "recorded"
      readonly plan: {
        readonly plan_id: string
        readonly event: {
          readonly id: string
          readonly type: string
          readonly source: string
        }
        readonly supersedes: {
          readonly decision_id: string
          readonly kind: string
          readonly reason: string
        }
        readonly kind: string
        readonly because: string
        readonly workflow_version: string | null
        readonly order: {
          readonly id: string
          readonly workflow: string | null
          readonly from: string | null
          readonly to: string | null
          readonly version: string
        }
        readonly payment: {
          readonly amount: string
          readonly currency: string
          readonly id: string
          readonly applied: boolean
        } | null
        readonly effects: readonly ({
          readonly type: string
          readonly reference: string
          readonly amount: string | null
          readonly currency: string | null
        })[]
        readonly granted: readonly (string)[]
        readonly revoked: readonly (string)[]
        readonly operations: readonly ({
          readonly operation_id: string
          readonly destination: string
          readonly name: string
        })[]
        readonly findings: readonly (string)[]
        readonly closes: readonly (string)[]
      } | null
      readonly decision: {
        readonly decision_id: string
        readonly kind: string
        readonly order_id: string | null
        readonly from_state: string | null
        readonly to_state: string | null
        readonly reason: string
        readonly decided_at: string
      } | null
      readonly confirm: string | null
    }
  }
  /** Sends an event down the same path again; one with a final decision answers with it. */
  'POST /events/{source}/{event_id}/replay': {
    params: {
      readonly source: string
      readonly event_id: string
    }
    query: Record<string, never>
    body: {
      readonly reason: string
    }
    answer: {
      readonly source: string
      readonly event_id: string
      readonly outcome: "replayed" | "recorded" | "pending"
      readonly from: string | null
      readonly decision: {
        readonly decision_id: string
        readonly kind: string
        readonly order_id: string | null
        readonly from_state: string | null
        readonly to_state: string | null
        readonly reason: string
        readonly decided_at: string
      } | null
    }
  }
  /** Does exactly what the plan of this id says, or nothing; asked twice it is done once. `confirm` is the order, or the kind of the finding where it has none. */
  'POST /findings/{finding_id}/apply': {
    params: {
      readonly finding_id: string
    }
    query: Record<string, never>
    body: {
      readonly plan_id: string | null
      readonly choice?: string | null | undefined
      readonly reason: string
      readonly confirm: string
    }
    answer: {
      readonly outcome: "applied" | "recorded" | "agreed"
      readonly finding_id: string
      readonly finding: "repairing" | "closed" | "dismissed"
      readonly verified_at: string | null
      readonly repair_id: string | null
      readonly choice: string | null
      readonly order_id: string | null
      readonly from: string | null
      readonly to: string | null
      readonly decision_id: string | null
      readonly reason: string | null
      readonly actor: string | null
      readonly applied_at: string | null
      readonly operations: readonly (string)[]
      readonly problem: string | null
    }
  }
  /** Gives a finding to somebody. */
  'POST /findings/{finding_id}/assign': {
    params: {
      readonly finding_id: string
    }
    query: Record<string, never>
    body: {
      readonly owner: string
      readonly reason: string
    }
    answer: {
      readonly finding_id: string
      readonly outcome: "done" | "unchanged"
      readonly state: string
      readonly owner: string
      readonly dismissed_until: string | null
    }
  }
  /** Says that a finding is fine as it is, until a day; other figures open it again. */
  'POST /findings/{finding_id}/dismiss': {
    params: {
      readonly finding_id: string
    }
    query: Record<string, never>
    body: {
      readonly until: string
      readonly reason: string
    }
    answer: {
      readonly finding_id: string
      readonly outcome: "done" | "unchanged"
      readonly state: string
      readonly owner: string
      readonly dismissed_until: string | null
    }
  }
  /** Gives something away; under the same id it is given once. `confirm` is the subject, typed again. */
  'POST /grants': {
    params: Record<string, never>
    query: Record<string, never>
    body: {
      readonly id: string
      readonly subject: string
      readonly entitlements: readonly ({
        readonly entitlement: string
        readonly quantity?: number | undefined
      })[]
      readonly until?: string | null | undefined
      readonly reason: string
      readonly confirm: string
    }
    answer: {
      readonly order_id: string
      readonly subject: string
    }
  }
  /** Ends what was given away; `confirm` is the id of its order, typed again. */
  'POST /grants/{order_id}/end': {
    params: {
      readonly order_id: string
    }
    query: Record<string, never>
    body: {
      readonly reason: string
      readonly confirm: string
    }
    answer: {
      readonly order_id: string
      readonly outcome: "ended" | "already_ended"
    }
  }
  /** Ends an operation without sending it; `confirm` is its order, or its destination where it has none. */
  'POST /operations/{operation_id}/discard': {
    params: {
      readonly operation_id: string
    }
    query: Record<string, never>
    body: {
      readonly reason: string
      readonly confirm: string
    }
    answer: {
      readonly operation_id: string
      readonly destination: string
      readonly order_id: string | null
      readonly outcome: "done" | "unchanged"
      readonly from: string
      readonly to: string
      readonly key_generation: number
      readonly attempts: number
    }
  }
  /** Records whether an operation was done; `confirm` is its order, or its destination where it has none. */
  'POST /operations/{operation_id}/resolve': {
    params: {
      readonly operation_id: string
    }
    query: Record<string, never>
    body: {
      readonly as: "sent" | "not_done"
      readonly reason: string
      readonly confirm: string
    }
    answer: {
      readonly operation_id: string
      readonly destination: string
      readonly order_id: string | null
      readonly outcome: "done" | "unchanged"
      readonly from: string
      readonly to: string
      readonly key_generation: number
      readonly attempts: number
    }
  }
  /** Sends a dead or uncertain operation again. */
  'POST /operations/{operation_id}/retry': {
    params: {
      readonly operation_id: string
    }
    query: Record<string, never>
    body: {
      readonly reason: string
    }
    answer: {
      readonly operation_id: string
      readonly destination: string
      readonly order_id: string | null
      readonly outcome: "done" | "unchanged"
      readonly from: string
      readonly to: string
      readonly key_generation: number
      readonly attempts: number
    }
  }
  /** The body of an event, exactly as it arrived; the reading is recorded. */
  'POST /reveal/event': {
    params: Record<string, never>
    query: Record<string, never>
    body: {
      readonly source: string
      readonly event_id: string
      readonly reason: string
    }
    answer: {
      readonly base64: string
      readonly length: number
      readonly sha256: string
    }
  }
  /** A provider's answer that was decided from; the reading is recorded. */
  'POST /reveal/evidence': {
    params: Record<string, never>
    query: Record<string, never>
    body: {
      readonly evidence_id: string
      readonly reason: string
    }
    answer: {
      readonly base64: string
      readonly length: number
      readonly sha256: string
    }
  }
  /** The request of an operation and what was answered; the reading is recorded. */
  'POST /reveal/operation': {
    params: Record<string, never>
    query: Record<string, never>
    body: {
      readonly operation_id: string
      readonly reason: string
    }
    answer: {
      readonly parts: readonly ({
        readonly base64: string
        readonly length: number
        readonly sha256: string
        readonly part: "request" | "answer"
        readonly number: number
      })[]
    }
  }
  /** Signs out, here and in the database. */
  'POST /session/end': {
    params: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: {
      readonly ended: boolean
    }
  }
  /** Ends somebody's session. */
  'POST /sessions/{session_id}/end': {
    params: {
      readonly session_id: string
    }
    query: Record<string, never>
    body: Record<string, never>
    answer: {
      readonly ended: boolean
    }
  }
  /** Erases a subject for good; `confirm` is the subject, typed again. */
  'POST /subjects/{subject}/erase': {
    params: {
      readonly subject: string
    }
    query: Record<string, never>
    body: {
      readonly reason: string
      readonly confirm: string
      readonly also?: readonly (string)[] | undefined
      readonly give_up?: boolean | undefined
    }
    answer: {
      readonly applied: boolean
      readonly pseudonym: string | null
      readonly act_id: string | null
      readonly subjects: readonly (string)[]
      readonly order_ids: readonly (string)[]
      readonly orders: number
      readonly events: number
      readonly bodies: number
      readonly evidence: number
      readonly requests: number
      readonly answers: number
      readonly decisions: number
      readonly active: readonly ({
        readonly order_id: string
        readonly entitlement: string
      })[]
      readonly kept_ids: readonly (string)[]
      readonly unfinished: readonly ({
        readonly kind: "event" | "operation" | "change"
        readonly id: string
        readonly state: string
        readonly can_give_up: boolean
      })[]
      readonly confirm: string
    }
  }
  /** What erasing a subject would do; changes nothing. */
  'POST /subjects/{subject}/erase/plan': {
    params: {
      readonly subject: string
    }
    query: Record<string, never>
    body: {
      readonly also?: readonly (string)[] | undefined
    }
    answer: {
      readonly applied: boolean
      readonly pseudonym: string | null
      readonly act_id: string | null
      readonly subjects: readonly (string)[]
      readonly order_ids: readonly (string)[]
      readonly orders: number
      readonly events: number
      readonly bodies: number
      readonly evidence: number
      readonly requests: number
      readonly answers: number
      readonly decisions: number
      readonly active: readonly ({
        readonly order_id: string
        readonly entitlement: string
      })[]
      readonly kept_ids: readonly (string)[]
      readonly unfinished: readonly ({
        readonly kind: "event" | "operation" | "change"
        readonly id: string
        readonly state: string
        readonly can_give_up: boolean
      })[]
      readonly confirm: string
    }
  }
  /** Makes a subject another one, for good; `confirm` is the subject, typed again. */
  'POST /subjects/{subject}/merge': {
    params: {
      readonly subject: string
    }
    query: Record<string, never>
    body: {
      readonly into: string
      readonly reason: string
      readonly confirm: string
    }
    answer: {
      readonly outcome: "merged" | "existed"
    }
  }
}
