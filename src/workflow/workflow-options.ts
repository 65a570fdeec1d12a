/**
 * Holds what plain JavaScript passes to `defineWorkflow` to what types hold TypeScript to. A mistake
 * stops the start with the name of the culprit and the nearest known one.
 */
import { HookledgerError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'
import type { AnyHandler, EffectOptions, History, MirrorLook, StateOptions } from './workflow.ts'

/** Declared states or effects, with their options checked. */
export function mapOf<Options extends object>(
  where: string,
  what: 'state' | 'effect',
  values: Readonly<Record<string, Options>> | undefined,
  known: readonly (keyof Options & string)[],
): Map<string, Options> {
  if (typeof values !== 'object' || values === null) invalid(`${where}: ${what}s must be an object`)
  const map = new Map(Object.entries(values))
  for (const [key, options] of map) {
    checkName(what, key)
    checkOptions(`${where}, ${what} "${key}"`, options, known)
    const { entitles, apply, reverse } = options as StateOptions & EffectOptions
    if (entitles !== undefined && typeof entitles !== 'boolean')
      invalid(`${where}, state "${key}": entitles must be true or false`)
    checkFunction(`${where}, effect "${key}"`, 'apply', apply)
    checkFunction(`${where}, effect "${key}"`, 'reverse', reverse)
  }
  return map
}

/** The permitted transitions, between declared states only. */
export function transitionsOf(
  where: string,
  transitions: Readonly<Record<string, readonly string[] | undefined>>,
  states: ReadonlyMap<string, StateOptions>,
): Map<string, readonly string[]> {
  if (typeof transitions !== 'object' || transitions === null)
    invalid(`${where}: transitions must be an object`)
  const map = new Map<string, readonly string[]>()
  for (const [from, targets = []] of Object.entries(transitions)) {
    checkKnown(where, 'state', from, states)
    if (!Array.isArray(targets))
      invalid(`${where}: the transitions of "${from}" must be a list of states`)
    for (const to of targets) checkKnown(where, 'state', to, states)
    map.set(from, [...targets])
  }
  return map
}

/** The destinations that its effects may name. */
export function destinationsOf(
  where: string,
  destinations: readonly string[] | undefined,
): readonly string[] | undefined {
  if (destinations === undefined) return undefined
  if (!Array.isArray(destinations)) invalid(`${where}: destinations must be a list of names`)
  for (const destination of destinations as readonly string[]) checkName('destination', destination)
  return [...new Set(destinations as readonly string[])]
}

/** The histories, each with a name of its own. */
export function historiesOf(
  where: string,
  histories: readonly History[] | undefined,
): readonly History[] | undefined {
  if (histories === undefined) return undefined
  if (!Array.isArray(histories)) invalid(`${where}: histories must be a list`)
  const names = new Set<string>()
  for (const history of histories as readonly History[]) {
    const { name, events } = history ?? {}
    if (typeof name !== 'string' || name === '') invalid(`${where}: a history needs a name`)
    if (names.has(name)) invalid(`${where}: two histories are named "${name}"`)
    names.add(name)
    checkOptions(`${where}, history "${name}"`, history, [
      'name',
      'open',
      'events',
      'receipts',
      'present',
      'gathered',
      'customers',
    ])
    for (const part of ['present', 'gathered', 'customers'] as const) {
      const values: unknown = history[part]
      if (
        values !== undefined &&
        (typeof values !== 'object' || values === null || Array.isArray(values))
      )
        invalid(`${where}, history "${name}": ${part} must be an object`)
    }
    if (
      !Array.isArray(events) ||
      events.some((event: unknown) => typeof event !== 'object' || event === null)
    ) {
      invalid(`${where}, history "${name}": events must be a list of the provider's bodies`)
    }
  }
  return histories
}

const handlerParts = ['order', 'learn', 'customer', 'decide', 'unclaimed', 'unclaimedAfterMs']

/** Checks the handler of event types. */
export function checkHandler(
  workflow: string,
  types: string | readonly string[],
  handler: AnyHandler,
): void {
  const where = whereOf(workflow, types)
  checkOptions(where, handler, [...handlerParts, 'gather'])
  checkParts(where, handler)
  checkFunction(where, 'gather', handler.gather)
}

/** Checks the handler of event types that mirror an object. */
export function checkMirror(
  workflow: string,
  types: string | readonly string[],
  handler: Omit<AnyHandler, 'mirror' | 'gather'> & MirrorLook,
): void {
  const where = whereOf(workflow, types)
  checkOptions(where, handler, [...handlerParts, 'object', 'fetch'])
  checkParts(where, handler)
  for (const part of ['object', 'fetch'] as const) {
    if (typeof handler[part] !== 'function') invalid(`${where}: ${part} must be a function`)
  }
}

function whereOf(workflow: string, types: string | readonly string[]): string {
  return `workflow "${workflow}", "${String(typeof types === 'string' ? types : types?.[0])}"`
}

function checkParts(where: string, handler: Omit<AnyHandler, 'mirror'>): void {
  for (const part of ['order', 'decide'] as const) {
    if (typeof handler[part] !== 'function') invalid(`${where}: ${part} must be a function`)
  }
  checkFunction(where, 'learn', handler.learn)
  checkFunction(where, 'customer', handler.customer)
  if (handler.unclaimed !== undefined && !['finding', 'ignore'].includes(handler.unclaimed)) {
    invalid(`${where}: unclaimed must be 'finding' or 'ignore'`)
  }
  const { unclaimedAfterMs: ms } = handler
  if (ms === undefined) return
  if (!Number.isSafeInteger(ms) || ms < 1)
    invalid(`${where}: unclaimedAfterMs must be a whole number of milliseconds`)
  if (handler.unclaimed !== 'ignore')
    invalid(`${where}: unclaimedAfterMs goes with unclaimed: 'ignore'`)
}

/** A misspelled option would be silence: `entitle: true` on a state, and nobody is ever served. */
export function checkOptions(where: string, options: object, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null)
    invalid(`${where}: its options must be an object`)
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue
    const near = nearest(key, known)
    invalid(`${where}: unknown option "${key}"${near === null ? '' : `, did you mean "${near}"?`}`)
  }
}

/** Checks an optional function. */
export function checkFunction(where: string, part: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function')
    invalid(`${where}: ${part} must be a function`)
}

/** Checks that a name is declared. */
export function checkKnown(
  where: string,
  what: string,
  value: string,
  known: ReadonlyMap<string, unknown>,
): void {
  if (known.has(value)) return
  const near = nearest(String(value), known.keys())
  invalid(`${where}: unknown ${what} "${value}"${near === null ? '' : `, did you mean "${near}"?`}`)
}

/** Checks what names a workflow, source, state or effect. */
export function checkName(
  what: 'workflow' | 'source' | 'state' | 'effect' | 'destination',
  value: string,
): void {
  if (typeof value === 'string' && /^[A-Za-z][A-Za-z0-9_-]{0,62}$/.test(value)) return
  invalid(
    `"${String(value).slice(0, 80)}" cannot be the name of ${what === 'effect' ? 'an' : 'a'} ${what}: use letters, digits, _ and -, a letter first, at most 63`,
  )
}

/** @throws HookledgerError HKL_WORKFLOW_INVALID */
export function invalid(message: string): never {
  throw new HookledgerError('HKL_WORKFLOW_INVALID', message)
}
