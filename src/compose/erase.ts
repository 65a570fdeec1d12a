/**
 * Erases a subject: bodies, evidence, requests and answers go, its name becomes a pseudonym wherever it stands, and
 * ids, hashes and decisions stay. One function of the database does it in one transaction, so that whoever may
 * call it can read nothing by it; this asks for it, and says what to do where it would not.
 */
import { HookledgerError } from '../core/errors.ts'
import { nameFlaw, reasonFlaw } from '../core/recorded-text.ts'
import type { Database } from '../postgres/executor.ts'
import { sqlstateOf } from '../postgres/sqlstate.ts'
import { keyText, printable } from '../workflow/checked-text.ts'

/** Whom it is about. */
export interface ErasureTarget {
  readonly subject: string
  /** Other texts that stand for the same person, an email address say: at least four characters each. */
  readonly also?: readonly string[] | undefined
}

/** What is to be done, why, and by whom. */
export interface ErasureRequest extends ErasureTarget {
  /** Recorded; where it holds the subject, the pseudonym is recorded in its place. */
  readonly reason: string
  readonly actor: string
  /** The subject, typed again. */
  readonly confirm: string
  /** Gives up events that wait or are dead, since they would need their bodies. Default false. */
  readonly giveUp?: boolean | undefined
}

/** What has to come to its end before its bytes can go. */
export interface UnfinishedWork {
  readonly kind: 'event' | 'operation' | 'change'
  readonly id: string
  readonly state: string
  readonly can_give_up: boolean
}

/** What an erasure does, or did; the keys are what `--json` prints. */
export interface ErasureReport {
  readonly applied: boolean
  /** Null in a plan. */
  readonly pseudonym: string | null
  /** Null in a plan. */
  readonly act_id: string | null
  /** The subject, and what was merged into it; pseudonyms once it is done. */
  readonly subjects: readonly string[]
  /** At most a hundred of them. */
  readonly order_ids: readonly string[]
  readonly orders: number
  readonly events: number
  readonly bodies: number
  readonly evidence: number
  readonly requests: number
  readonly answers: number
  readonly decisions: number
  /** Entitlements that are active, which nobody asks for under the old name any more. */
  readonly active: readonly { readonly order_id: string; readonly entitlement: string }[]
  /** Ids that hold the subject, or another of the texts, and stay. */
  readonly kept_ids: readonly string[]
  readonly unfinished: readonly UnfinishedWork[]
  /** What is to be typed. */
  readonly confirm: string
}

type Answer =
  | Omit<ErasureReport, 'confirm'>
  | { readonly problem: 'unknown' }
  | { readonly problem: 'merged'; readonly into: string }

/**
 * What erasing would do. Writes nothing.
 *
 * @throws HookledgerError HKL_ERASE_INVALID for a subject that cannot be one, or was merged into another,
 * HKL_NOT_FOUND where nothing knows it
 */
export async function planErasure(db: Database, target: ErasureTarget): Promise<ErasureReport> {
  const { subject, also } = checkedTarget(target)
  return call(db, subject, [also, null, null, false, false])
}

/**
 * Erases, in one transaction.
 *
 * @throws HookledgerError HKL_ERASE_UNFINISHED where something has to end first: nothing was changed;
 * HKL_ERASE_INVALID without a reason, an actor, or with something else typed than the subject;
 * and what `planErasure` throws
 */
export async function applyErasure(db: Database, request: ErasureRequest): Promise<ErasureReport> {
  const { subject, also } = checkedTarget(request)
  const reason = said(request.reason, 'reason')
  const actor = said(request.actor, 'actor')
  if (request.confirm !== subject)
    throw invalid('what was typed is not the subject: type it again, exactly')
  const report = await call(db, subject, [also, reason, actor, request.giveUp === true, true])
  if (report.applied) return report
  throw new HookledgerError('HKL_ERASE_UNFINISHED', unfinishedText(report.unfinished))
}

/** Every kept body is looked through: a request's time is too short for that. */
const settings = `set local statement_timeout = '10min'; set local lock_timeout = '5s'; set local jit = off`

async function call(
  db: Database,
  subject: string,
  [also, reason, actor, giveUp, apply]: readonly [
    also: readonly string[],
    reason: string | null,
    actor: string | null,
    giveUp: boolean,
    apply: boolean,
  ],
): Promise<ErasureReport> {
  const rows = await db
    .transaction(
      (tx) =>
        tx.query<{ report: string }>({
          text: `select ${db.schema}erase_subject($1::text, $2::text[], $3::text, $4::text, $5::boolean, $6::boolean)::text as report`,
          values: [subject, [...also], reason, actor, giveUp, apply],
          withinMs: 600_000,
        }),
      { setup: settings },
    )
    .catch((error: unknown) => {
      throw explained(error)
    })
  const answer = JSON.parse(rows[0]?.report ?? '{"problem":"unknown"}') as Answer
  if (!('problem' in answer)) return { ...answer, confirm: subject }
  if (answer.problem === 'merged')
    throw invalid(`this subject was merged into ${answer.into}: erase that one, which is both`)
  throw new HookledgerError(
    'HKL_NOT_FOUND',
    'nothing is known of this subject: no order, entitlement, customer or kept body names it',
  )
}

/** A lock that somebody holds, or a right that is missing, is no fault of the request's. */
function explained(error: unknown): unknown {
  const state = sqlstateOf(error)
  if (state === '42501')
    return new HookledgerError(
      'HKL_ERASE_FORBIDDEN',
      'this database role may not erase: connect as the role "privacy" of "hookledger migrate --roles", or as the owner',
    )
  if (state === '55P03' || state === '40P01')
    return new HookledgerError(
      'HKL_ERASE_UNFINISHED',
      'something is at work on an order of this subject: try again in a moment; nothing was changed',
    )
  return error
}

function unfinishedText(unfinished: readonly UnfinishedWork[]): string {
  const [first] = unfinished
  if (first === undefined) return 'something is not finished: look at the plan again'
  const others = unfinished.length - 1
  const more = others === 0 ? '' : ` and ${others} more`
  return `nothing was changed: ${first.id} is ${first.state}${more}; ${nextOf(unfinished)}`
}

/** What ends it. */
export function nextOf(unfinished: readonly UnfinishedWork[]): string {
  const steps = new Set(
    unfinished.map(({ kind, can_give_up: canGiveUp }) => {
      if (kind === 'operation')
        return 'let the dispatcher end its operations, or resolve or discard them'
      if (kind === 'change') return 'let a worker tell what has changed'
      return canGiveUp
        ? 'mend and replay what waits or is dead, or give it up (--give-up)'
        : 'let a worker decide what is pending'
    }),
  )
  return [...steps].join('; ')
}

function checkedTarget({ subject, also = [] }: ErasureTarget): {
  readonly subject: string
  readonly also: readonly string[]
} {
  const short = also.some((text) => text.trim().length < 4 || /^\d+$/.test(text.trim()))
  if (short)
    throw invalid(
      'other texts need four characters, and not digits alone: they are replaced wherever they stand',
    )
  const texts = [...new Set(also.map((text) => key(text.trim(), 'other text')))]
  const name = key(subject, 'subject')
  if (name.startsWith('erased:')) throw invalid('this subject was erased already')
  return { subject: name, also: texts }
}

function said(value: string, what: 'reason' | 'actor'): string {
  if (value.trim() === '')
    throw invalid(`${what === 'actor' ? 'an actor' : 'a reason'} is missing: it is recorded`)
  const flaw = what === 'reason' ? reasonFlaw(value) : nameFlaw(value)
  if (flaw !== null) throw invalid(`the ${what} ${flaw}`)
  return printable(value)
}

function key(value: string, what: string): string {
  try {
    return keyText(value, what)
  } catch (error) {
    throw invalid(error instanceof Error ? error.message : `the ${what} is not valid`)
  }
}

function invalid(message: string): HookledgerError {
  return new HookledgerError('HKL_ERASE_INVALID', message)
}
