/**
 * Confirming, wired: what the app says is checked, the source is found, and pages that ask the same at the
 * same moment share one answer.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Signals } from '../core/signals.ts'
import { confirmOrder, type Confirmation, type ConfirmQuestion } from '../inbox/confirm.ts'
import type { WorkContext } from '../inbox/work-batch.ts'
import { nearest } from '../core/nearest.ts'
import { keyText } from '../workflow/checked-text.ts'
import type { RecordReference, Records } from '../workflow/records.ts'
import type { ConfiguredSource, ResolvedConfig } from './options.ts'

/** What a success page asks. */
export interface ConfirmRequest {
  /** The source's name in the configuration. */
  readonly source: string
  /** The record at the provider: `{ kind: 'checkout.session', id: sessionId }`. */
  readonly reference: {
    readonly kind: string
    readonly id: string
    /** A Connect account; the source's own without it. */
    readonly account?: string | undefined
  }
  /** The app's own id of the order that it must belong to. */
  readonly order: string
  /** Whose order it must be: who is signed in. */
  readonly subject: string
  /** Milliseconds for all of it. Default 5000. */
  readonly timeoutMs?: number | undefined
}

/** What confirming needs of the composition root. */
export interface ConfirmParts {
  readonly config: ResolvedConfig
  readonly signals: Signals
  contexts(): Promise<{ readonly work: WorkContext }>
  workOff(keys: readonly bigint[]): Promise<void>
  /** Whether any workflow asks providers before it decides. */
  readonly asksProviders: boolean
  gatherNow(keys: readonly bigint[], budgetMs: number): Promise<boolean>
}

/** The one function of the success page. */
export type Confirm = (request: ConfirmRequest) => Promise<Confirmation>

const defaultTimeoutMs = 5000
const longestTimeoutMs = 60_000

/** Creates it. */
export function createConfirm(parts: ConfirmParts): Confirm {
  const underway = new Map<string, Promise<Confirmation>>()
  return async (request) => {
    const question = questionOf(parts.config, request)
    const { namespace, reference, order, subject, timeoutMs } = question
    const key = JSON.stringify([namespace, reference, order, subject, timeoutMs])
    const shared = underway.get(key)
    if (shared !== undefined) return shared
    const asking = run(parts, question).finally(() => underway.delete(key))
    underway.set(key, asking)
    return asking
  }
}

async function run(parts: ConfirmParts, question: ConfirmQuestion): Promise<Confirmation> {
  const { work } = await parts.contexts()
  const { db, ledger, reading, registry, signals } = work
  const workOff = async (keys: readonly bigint[], until: number): Promise<void> => {
    await parts.workOff(keys)
    if (!parts.asksProviders) return
    const budgetMs = Math.max(0, until - performance.now())
    if (await parts.gatherNow(keys, budgetMs)) await parts.workOff(keys)
  }
  return confirmOrder({ db, ledger, reading, registry, signals, workOff }, question)
}

/** @throws HookledgerError HKL_CONFIRM_INVALID naming what is wrong, HKL_RECONCILE_NO_RECORDS */
function questionOf(config: ResolvedConfig, request: ConfirmRequest): ConfirmQuestion {
  const { source: name, reference, order, subject, timeoutMs = defaultTimeoutMs } = request
  const { source, account, environment } = sourceNamed(config, name)
  const { records } = source
  if (records === undefined) {
    throw new HookledgerError(
      'HKL_RECONCILE_NO_RECORDS',
      `source "${name}" cannot be asked for its records: give it an apiKey, or records of your own`,
    )
  }
  if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > longestTimeoutMs)
    throw invalid(`timeoutMs must be a whole number from 1 to ${longestTimeoutMs}`)
  try {
    const asked = {
      kind: keyText(reference?.kind, 'kind of the reference'),
      id: keyText(reference?.id, 'id of the reference'),
      account: keyText(reference?.account ?? account, 'account of the reference'),
    }
    checkKind(name, records, asked)
    if (asked.account !== account && !source.allowsAccount(asked.account))
      throw invalid(`source "${name}" does not allow this account: see its option connect`)
    return {
      namespace: { provider: source.provider, account: asked.account, environment },
      records,
      reference: asked,
      order: keyText(order, 'order'),
      subject: keyText(subject, 'subject'),
      timeoutMs,
    }
  } catch (error) {
    if (error instanceof HookledgerError) throw error
    throw invalid(error instanceof Error ? error.message : 'the question is not valid')
  }
}

/** What no list and no id of the provider's knows would be asked for in vain, for ever. */
function checkKind(source: string, records: Records, reference: RecordReference): void {
  const { kind, id, account } = reference
  const kinds = records.kinds.map((each) => each.kind)
  // a kind that is not listed may still be looked up: what an id of its own names
  const named = records.namedBy({ kind, value: id }, account)
  if (kinds.includes(kind) || named?.kind === kind) return
  throw invalid(
    `source "${source}" has no records of kind "${kind.slice(0, 80)}"; it has ${kinds.join(', ')}`,
  )
}

function sourceNamed({ sources }: ResolvedConfig, name: string): ConfiguredSource {
  const found = sources.get(name)
  if (found !== undefined) return found
  const near = nearest(String(name), sources.keys())
  throw invalid(
    `unknown source "${String(name).slice(0, 80)}"${near === null ? '' : `, did you mean "${near}"?`}`,
  )
}

function invalid(message: string): HookledgerError {
  return new HookledgerError('HKL_CONFIRM_INVALID', `confirm: ${message}`)
}
