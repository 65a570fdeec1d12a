/** Puts a plan together from what was chosen: what it says, its id, and the words for a person. */
import { HookledgerError } from '../../core/errors.ts'
import type { LedgerEffect } from '../../workflow/order.ts'
import { grants } from '../../workflow/workflow.ts'
import type { Answers } from './ask.ts'
import {
  activeDifference,
  entitlementsAfter,
  NothingToDo,
  pairOf,
  type OrderChange,
  type RepairDraft,
} from './draft.ts'
import type { FindingRow } from './finding.ts'
import {
  changesLedger,
  planId,
  type ChoiceOffer,
  type PlanContent,
  type PlannedOrder,
  type PlannedPayment,
} from './plan.ts'
import type { MadeRefund } from './refund.ts'
import type { Standing } from './standing.ts'
import { summaryOf } from './summary.ts'

/** What a plan is put together from. */
export interface PlannedFrom {
  readonly finding: FindingRow
  readonly answers: Answers
  readonly earlier: number
  readonly choice: string
  readonly isRestore: boolean
  readonly change: OrderChange | null
  readonly standing: Standing | null
  readonly refund: MadeRefund | null
  readonly decisionId: bigint
  readonly choices: readonly ChoiceOffer[]
}

/** The draft. @throws NothingToDo where restoring finds nothing to restore */
export function plannedDraft(installationId: string, given: PlannedFrom): RepairDraft {
  const content = contentOf(given)
  if (given.isRestore && !changesLedger(content)) {
    const told = `order ${content.order?.id} and its entitlements are what its decisions say: there is nothing to restore, choose --to STATE or --choice keep`
    throw new NothingToDo(true, new HookledgerError('HKL_REPAIR_CHOICE', told))
  }
  const from = { ...given, change: given.change === null ? null : numbered(given.change, content) }
  const id = planId(installationId, content)
  const notes = from.change?.notes ?? []
  const summary = summaryOf(content, from.finding, notes, isPermitted(from.change))
  return {
    plan: { id, ...content, summary, choices: from.choices },
    change: from.change === null ? null : attributed(from.change, from),
    decided: from.standing?.decided ?? null,
    refund: from.refund?.call ?? null,
    ...toldPairs(from),
  }
}

/** A repair is one change of the order, whatever it consists of; what changes nothing is none. */
function numbered(change: OrderChange, content: PlanContent): OrderChange {
  const { version } = change.before
  if (!changesLedger(content)) return { ...change, after: change.before }
  return { ...change, after: { ...change.after, version: version + 1n } }
}

/**
 * Every active row names the decision that says it was granted: an earlier one where that was never revoked,
 * else this repair's.
 */
function attributed(change: OrderChange, { standing, decisionId }: PlannedFrom): OrderChange {
  if (change.after === change.before) return change
  const entitlements = change.after.entitlements.map((row) => {
    if (!row.active) return row
    const grant = standing?.grants.get(pairOf(row))
    return { ...row, grantedBy: grant?.active === true ? grant.grantedBy : decisionId }
  })
  return { ...change, after: { ...change.after, entitlements } }
}

function contentOf(from: PlannedFrom): PlanContent {
  const { finding, answers, change, standing, refund } = from
  const order =
    change === null
      ? null
      : {
          id: change.before.id,
          workflow: change.after.workflow,
          from: change.before.stored ? change.before.state : null,
          to: change.after.state,
          decided: standing?.decided ?? null,
          version: change.before.version,
          subject:
            change.before.subject === change.after.subject
              ? null
              : { from: change.before.subject, to: change.after.subject },
          expected: expectedDifference(change),
        }
  const pairs = change === null ? { granted: [], revoked: [] } : activeDifference(change)
  const own =
    refund === null
      ? []
      : [
          {
            operationId: refund.call.operationId,
            destination: refund.call.to,
            name: refund.call.key,
            effect: null,
          },
        ]
  return {
    findingId: finding.id,
    kind: finding.kind,
    choice: from.choice,
    order,
    payments: change === null ? [] : paymentsOf(change),
    voided: change?.voided ?? [],
    effects: (change?.effects ?? []).map(plainEffect),
    entitle: change === null ? null : entitlementsAfter(change),
    granted: pairs.granted,
    revoked: pairs.revoked,
    learned: newNames(change),
    operations: [
      ...(change?.operations ?? []).map((each) => ({
        operationId: each.operationId,
        destination: each.destination,
        name: each.name,
        effect: { type: each.effectType, reference: each.effectReference },
      })),
      ...own,
    ],
    refund: refund?.planned ?? null,
    records: answers.asked,
    earlier: from.earlier,
  }
}

function expectedDifference({ before, after }: OrderChange): PlannedOrder['expected'] {
  const from = before.expected
  const to = after.expected
  if (from?.amount === to?.amount && from?.currency === to?.currency) return null
  return { from, to }
}

function paymentsOf({ payments, after }: OrderChange): PlannedPayment[] {
  return payments.flatMap(({ sourceId, row, applies }) => {
    const id = row?.id ?? applies
    const known = after.payments.find((each) => each.sourceId === sourceId && each.id === id)
    const figures = row ?? known
    if (id === null || figures === undefined) return []
    const { amount, currency } = figures
    return [{ sourceId, id, amount, currency, known: row === null }]
  })
}

function plainEffect({
  type,
  reference,
  amount,
  currency,
  payment,
  data,
}: LedgerEffect): LedgerEffect {
  return { type, reference, amount, currency, payment, data }
}

function newNames(change: OrderChange | null): PlanContent['learned'] {
  const names = new Map(
    (change?.learned ?? []).map((each) => [`${each.sourceId} ${each.kind} ${each.value}`, each]),
  )
  return [...names.values()]
}

/** Whether the workflow itself could go that way. */
function isPermitted(change: OrderChange | null): boolean {
  if (change === null || change.before.state === change.after.state) return true
  const { workflow, before, after } = change
  return (workflow.transitions.get(before.state) ?? []).includes(after.state)
}

/**
 * What the repair's decision says was granted and revoked: whoever adds up all decisions of the order must
 * come to what is active afterwards, whatever stood in the rows before.
 */
function toldPairs({ change, standing }: PlannedFrom): Pick<RepairDraft, 'granted' | 'revoked'> {
  if (change === null) return { granted: [], revoked: [] }
  const said = (pair: string): boolean => standing?.grants.get(pair)?.active === true
  const active = new Set(
    grants(change.workflow, change.after.state)
      ? change.after.entitlements.filter((row) => row.active).map(pairOf)
      : [],
  )
  const told = [...(standing?.grants ?? [])]
    .filter(([, grant]) => grant.active)
    .map(([pair]) => pair)
  return {
    granted: [...active].filter((pair) => !said(pair)).sort(),
    revoked: told.filter((pair) => !active.has(pair)).sort(),
  }
}
