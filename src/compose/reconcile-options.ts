/** The options of reconciliation, checked and resolved once. */
import { repairableByRule } from '../reconciliation/repair/choices.ts'
import {
  defaultReconcileSettings,
  settingsProblem,
  type ReconcileSettings,
} from '../reconciliation/settings.ts'
import { findingKinds, type FindingKind } from '../workflow/finding-kinds.ts'
import { invalid, requireKnown } from './config-problem.ts'

/** Who is sent an operation when a finding has been overdue for so many hours; `[0, 24]` without them. */
export interface EscalateOption {
  /** A destination. */
  readonly to: string
  readonly afterHours?: readonly number[] | undefined
}

/** What of the options is about reconciliation. */
export interface ReconcileOptions {
  readonly reconcile?: Partial<ReconcileSettings> | false | undefined
  readonly autoRepair?: readonly string[] | undefined
  readonly escalate?: EscalateOption | undefined
}

/** Where findings that nobody ended in time are sent, with the steps in hours past the due date. */
export interface Escalation {
  readonly to: string
  readonly afterHours: readonly number[]
}

/** The same with every default filled in. */
export interface ReconcileConfig {
  /** Null: no pass runs by itself. */
  readonly reconcile: ReconcileSettings | null
  /** What a pass by hand goes by, whether passes run by themselves or not. */
  readonly reconcileByHand: ReconcileSettings
  readonly autoRepair: readonly FindingKind[]
  readonly escalation: Escalation | null
}

/**
 * Checks and resolves them.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID or HKL_CONFIG_UNKNOWN_NAME
 */
export function resolveReconcileOptions(
  { reconcile, autoRepair, escalate }: ReconcileOptions,
  destinations: Iterable<string>,
): ReconcileConfig {
  const given = reconcile === false ? {} : (reconcile ?? {})
  for (const key of Object.keys(given))
    requireKnown('option of reconcile', key, Object.keys(defaultReconcileSettings))
  const settings = Object.freeze({ ...defaultReconcileSettings, ...given })
  const problem = settingsProblem(settings)
  if (problem !== null) throw invalid(problem)
  for (const kind of autoRepair ?? []) {
    requireKnown('kind in autoRepair', kind, findingKinds)
    if (!repairableByRule.includes(kind))
      throw invalid(
        `autoRepair: a finding of kind "${kind}" needs a person; by itself can be repaired: ${repairableByRule.join(', ')}`,
      )
  }
  return {
    reconcile: reconcile === false ? null : settings,
    reconcileByHand: settings,
    autoRepair: [...new Set(autoRepair ?? [])] as FindingKind[],
    escalation: resolveEscalation(escalate, destinations),
  }
}

function resolveEscalation(
  escalate: EscalateOption | undefined,
  destinations: Iterable<string>,
): Escalation | null {
  if (escalate === undefined) return null
  requireKnown('destination of findings.escalate', escalate.to, destinations)
  const hours = [...(escalate.afterHours ?? [0, 24])]
  const ascending = hours.every((each, at) => at === 0 || each > (hours[at - 1] ?? 0))
  if (hours.length === 0 || !ascending || hours.some((each) => !Number.isFinite(each) || each < 0))
    throw invalid(
      'findings.escalate.afterHours must be numbers of hours, each more than the one before',
    )
  return { to: escalate.to, afterHours: hours }
}
