/**
 * What Hookledger tells of itself. Subscribers (logs, metrics, a worker in the same process) can
 * neither delay nor break the path that tells: a subscriber that throws is ignored.
 */

/** Every signal, and what it carries. Never a body, a header or a secret. */
export interface SignalMap {
  /** Deliveries were stored; `events` are new ones. A worker in the same process wakes on it. */
  'inbox.events.stored': { readonly events: number; readonly duplicates: number }
  /** A request was answered without being stored. */
  'inbox.request.rejected': {
    readonly source: string
    readonly reason: string
    readonly status: number
  }
  /** A request was answered, stored or not. */
  'inbox.request.answered': {
    readonly source: string
    readonly verdict: 'stored' | 'duplicate' | 'refused'
  }
  /** An event has an outcome. */
  'inbox.event.decided': EventOutcome
  /** Events failed, and are tried again. */
  'inbox.events.retried': { readonly events: number }
  /** A worker ran a batch. */
  'inbox.batch.finished': { readonly events: number; readonly durationMs: number }
  /** Something went wrong in the background and is tried again. */
  'worker.loop.failed': { readonly loop: string; readonly message: string }
  /** A request to the operator API failed for a reason that its answer does not tell. */
  'api.request.failed': {
    readonly requestId: string
    readonly route: string
    readonly message: string
  }
  /** Somebody signed in to the console, or could not. */
  'console.sign_in.ended': {
    readonly actor: string | null
    readonly outcome: 'signed_in' | 'refused' | 'failed' | 'throttled'
    readonly reason: string
  }
  /** Whoever held leases died or was too late with them; the work goes on elsewhere. */
  'worker.leases.expired': {
    /** `work`: batches whose worker died in them. */
    readonly role: 'work' | 'dispatch' | 'gather'
    readonly leases: number
  }
  /** The net caught what a wake-up should have: tests require none. */
  'inbox.wait.rescued': { readonly events: number }
  /** Operations were recorded for these destinations; a dispatcher in the same process wakes on it. */
  'outbox.operations.recorded': { readonly destinations: readonly string[] }
  /** Events that waited for an operation are ready; a worker in the same process wakes on it. */
  'outbox.events.woken': { readonly events: number }
  /** An operation ended. */
  'outbox.operation.ended': OperationEnd
  /** An attempt did not end its operation. */
  'outbox.attempt.failed': FailedAttempt
  /** Nobody but a person can say what became of an operation. */
  'outbox.operation.stuck': {
    readonly operationId: string
    readonly destination: string
    readonly orderId: string | null
    readonly attempts: number
    readonly reason: string
  }
  /** A destination failed so often in a row that it is left alone for a while. */
  'outbox.destination.paused': {
    readonly destination: string
    readonly failures: number
    readonly forMs: number
  }
  /** It answers again. */
  'outbox.destination.resumed': { readonly destination: string }
  /** Events wait for an answer of the provider; a gatherer in the same process wakes on it. */
  'gather.answers.wanted': { readonly events: number }
  /** Answers were stored, and so many events are ready; a worker in the same process wakes on it. */
  'gather.answers.stored': { readonly answers: number; readonly events: number }
  /** A request to a provider failed; it is made again. */
  'gather.request.failed': FailedRequest
  /** A source, or an account of it, failed so often in a row that it is left alone for a while. */
  'gather.source.paused': {
    readonly source: string
    /** Null: the source as a whole. */
    readonly account: string | null
    readonly failures: number
    readonly forMs: number
  }
  /** It answers again. */
  'gather.source.resumed': { readonly source: string; readonly account: string | null }
  /** Events that never arrived were put into the inbox; a worker in the same process wakes on it. */
  'reconcile.events.injected': { readonly source: string; readonly events: number }
  /** A pass over one source ended. */
  'reconcile.run.ended': ReconcileRunEnd
  /** A finding is past its due date; told once a step. */
  'findings.overdue': OverdueFinding
  /** What a subject may use has changed, by a commit. */
  'entitlements.changed': EntitlementsChanged
  /** A warning of the start checks. */
  'config.warned': { readonly message: string }
}

/** One line of the log: what became of an event. */
export interface EventOutcome {
  readonly eventId: string
  readonly eventType: string
  readonly source: string
  readonly outcome: string
  readonly reason: string
  readonly orderId: string | null
  readonly workflow: string | null
  readonly from: string | null
  readonly to: string | null
  readonly effects: readonly string[]
  readonly granted: readonly string[]
  readonly revoked: readonly string[]
  readonly findings: readonly string[]
  /** For a waiting event: what for, and until when. */
  readonly waitsFor: string | null
  readonly until: Date | null
  readonly attempts: number
  /** Milliseconds from the first delivery to this outcome, by the worker's reading of the database clock. */
  readonly ageMs: number
  /** The trace in which it was decided, where traces are on. */
  readonly traceId?: string
}

/** What became of an operation for good. */
export interface OperationEnd {
  readonly operationId: string
  readonly destination: string
  readonly outcome: 'sent' | 'dead' | 'canceled' | 'discarded'
  readonly orderId: string | null
  readonly attempts: number
  /** The HTTP status of the answer that ended it. */
  readonly status: number | null
  /** Milliseconds from its recording to its end, by the database's clock up to the last lease. */
  readonly ageMs: number
  /** Why, where it was not sent. */
  readonly reason: string | null
}

/** An attempt after which its operation goes on. */
export interface FailedAttempt {
  readonly operationId: string
  readonly destination: string
  readonly kind: 'call' | 'lookup'
  readonly outcome: 'retry' | 'uncertain' | 'absent' | 'no_answer' | 'refused'
  readonly orderId: string | null
  readonly attempts: number
  readonly status: number | null
  readonly error: string | null
  /** Milliseconds until the next attempt; null: a person is asked. */
  readonly nextInMs: number | null
}

/** A request to a provider that failed. */
export interface FailedRequest {
  /** The source's name in the configuration. */
  readonly source: string
  readonly account: string
  /** `subscription sub_1`. */
  readonly about: string
  readonly orderId: string
  readonly kind: 'later' | 'refused' | 'unknown'
  readonly attempts: number
  readonly error: string
  /** Milliseconds until the next attempt. */
  readonly nextInMs: number
}

/** What a pass over one source came to. */
export interface ReconcileRunEnd {
  readonly runId: string
  readonly source: string
  readonly how: 'scheduled' | 'deep' | 'manual' | 'range'
  readonly state: 'complete' | 'incomplete' | 'failed'
  /** Why it is not complete. */
  readonly error: string | null
  readonly calls: number
  readonly records: number
  readonly injected: number
  /** Findings opened, or open again. */
  readonly opened: number
  readonly closed: number
  readonly repaired: number
  readonly durationMs: number
}

/** A finding past its due date. */
export interface OverdueFinding {
  readonly findingId: string
  readonly kind: string
  readonly severity: string
  readonly owner: string
  readonly orderId: string | null
  readonly dueAt: Date
  /** Which step of being overdue it is, from 1. */
  readonly step: number
}

/** A subject that may use something else than before. */
export interface EntitlementsChanged {
  /** As the decision names it: `entitlements()` answers for what it was merged into since. */
  readonly subject: string
  /** Whose decision, or whose end, it was; null for a merge. */
  readonly orderId: string | null
  readonly because:
    'event' | 'repair' | 'redecide' | 'grant' | 'adopt' | 'shadow' | 'merge' | 'expiry'
}

/** A name of a signal. */
export type SignalName = keyof SignalMap

/** Where signals are emitted and listened to. */
export interface Signals {
  emit<N extends SignalName>(name: N, detail: SignalMap[N]): void
  /** Listens; call what it returns to stop. */
  on<N extends SignalName>(name: N, listener: (detail: SignalMap[N]) => void): () => void
  /** Whether anybody listens: lets a hot path skip building the detail. */
  has(name: SignalName): boolean
}

/** A new set of signals with no listener. */
export function createSignals(): Signals {
  const listeners = new Map<SignalName, Set<(detail: never) => void>>()
  return {
    emit(name, detail) {
      for (const listener of listeners.get(name) ?? []) {
        try {
          listener(detail as never)
        } catch {
          // a subscriber must not break what it watches
        }
      }
    },
    on(name, listener) {
      const set = listeners.get(name) ?? new Set()
      listeners.set(name, set)
      set.add(listener as (detail: never) => void)
      return () => {
        set.delete(listener as (detail: never) => void)
      }
    },
    has: (name) => (listeners.get(name)?.size ?? 0) > 0,
  }
}
