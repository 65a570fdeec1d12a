/**
 * The public face: names only.
 */
export { PermanentError, RetryAfter, HookledgerError, type ErrorCode } from './core/errors.ts'
export { money, wholeUnits, minorUnitDigits, formatMoney, type Money } from './core/money.ts'
export type { Limits } from './core/limits.ts'
export {
  createHookledger,
  defineWorkflow,
  type Hookledger,
  type OpenOrderRequest,
  type TransactionLike,
} from './hookledger.ts'
export type { LogTarget } from './observe/log.ts'
export type { HookledgerOptions, FindingOptions } from './compose/options.ts'
export type { RunOnceResult } from './compose/parts.ts'
export type { OpeningAnswer as OpenOrderResult } from './workflow/opening.ts'
export type { CurrentEntitlement } from './ledger/current-entitlements.ts'
export type { IngestOutcome, IngestRequest } from './inbox/receiver.ts'
export { stripe, type StripeOptions } from './providers/stripe.ts'
export { standardWebhooks } from './providers/standard-webhooks.ts'
export type { Source, EventNames, EventBody } from './providers/provider.ts'
export {
  contradict,
  defer,
  effect,
  fulfill,
  move,
  reverse,
  skip,
  state,
  type Decision,
} from './workflow/decision.ts'
export {
  byName,
  idOf,
  name,
  names,
  notOurs,
  orderId,
  waitFor,
  type Resolution,
} from './workflow/resolution.ts'
export type { Effect, Entitlement, Name, Order, Payment } from './workflow/order.ts'
export type { ReceivedEvent, UntypedBody, Environment } from './workflow/event.ts'
export type {
  ApplyInput,
  DecideInput,
  History,
  UserExecutor,
  Workflow,
} from './workflow/workflow.ts'
export { handle } from './compose/handle.ts'
