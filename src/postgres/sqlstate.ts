/**
 * What each failure of PostgreSQL means for a transaction. The table is frozen by a test: a wrong
 * entry would retry what is poisoned, or kill what was only unlucky.
 */

/**
 * retry: run the whole transaction again. unknown: retry, but at or after COMMIT the outcome is not
 * known. fatal: configuration or schema is wrong, stop and tell. poison: this input can never be
 * written. unavailable: the server cannot take work now. reconnect: retry on another connection.
 */
export type Failure = 'retry' | 'unknown' | 'fatal' | 'poison' | 'unavailable' | 'reconnect'

const table: Readonly<Record<string, Failure>> = {
  '40001': 'retry',
  '40P01': 'retry',
  '55P03': 'retry',
  '57014': 'retry',
  '53300': 'retry',
  '57P03': 'retry',
  '57P01': 'unknown',
  '57P02': 'unknown',
  '57P05': 'unknown',
  '25P03': 'unknown',
  '25P04': 'unknown',
  '42P10': 'fatal',
  '42P01': 'fatal',
  '42501': 'fatal',
  '42703': 'fatal',
  '42883': 'fatal',
  '3D000': 'fatal',
  '3F000': 'fatal',
  '57P04': 'fatal',
  '25006': 'unavailable',
  '53100': 'unavailable',
  '53200': 'unavailable',
  '58030': 'unavailable',
  '0A000': 'reconnect',
  '26000': 'reconnect',
  '42P05': 'reconnect',
  '22P05': 'poison',
  '22P02': 'poison',
  '22003': 'poison',
  '22021': 'poison',
  '54001': 'poison',
  '54000': 'poison',
  '23514': 'poison',
  '23502': 'poison',
  '23503': 'poison',
}

/** Whole classes, for what the table does not name; anything else is tried again. */
const classes: Readonly<Record<string, Failure>> = {
  '08': 'unknown',
  '21': 'poison',
  '22': 'poison',
  '23': 'poison',
  '28': 'fatal',
  '42': 'fatal',
  '53': 'unavailable',
  '54': 'poison',
  '58': 'unavailable',
  XX: 'unavailable',
}

/** The table, for documentation and tests. */
export const sqlstateTable: Readonly<Record<string, Failure>> = Object.freeze({
  ...table,
  ...classes,
})

/**
 * The SQLSTATE of a driver's error; undefined when the connection broke without one. Codes of the
 * operating system (EPIPE) can have five letters too.
 */
export function sqlstateOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  if (
    typeof error.code !== 'string' ||
    !/^[0-9A-Z]{5}$/.test(error.code) ||
    /^E[A-Z]+$/.test(error.code)
  )
    return undefined
  return error.code
}

/**
 * Classifies a failure. An error without a SQLSTATE (reset, broken pipe, timeout of the client) is
 * unknown: the server may or may not have done what was asked.
 */
export function classify(error: unknown): Failure {
  const state = sqlstateOf(error)
  if (state === undefined) return 'unknown'
  return table[state] ?? classes[state.slice(0, 2)] ?? 'retry'
}

/**
 * Takes out of a database error what quotes values: a body could be among them, and errors are
 * logged, printed and kept by code that nobody here knows. Changes the error, so that its stack and
 * its identity stay; anything else is handed back as it is.
 */
export function withoutValues(error: unknown): unknown {
  const state = sqlstateOf(error)
  if (state === undefined || !(error instanceof Error)) return error
  for (const field of ['detail', 'where', 'hint', 'internalQuery', 'internalPosition']) {
    if (field in error) Object.assign(error, { [field]: undefined })
  }
  if (!quotes(state)) return error
  const message = 'a value was refused (it is left out here)'
  if (error.stack !== undefined) error.stack = error.stack.replace(error.message, message)
  error.message = message
  return error
}

/** Messages of class 22 quote the offending value. */
function quotes(state: string): boolean {
  return state.startsWith('22')
}

/**
 * The text of a database error that may be shown or stored: its code, message and the constraint's
 * name. DETAIL, HINT and WHERE are left out, since they quote values, bodies among them.
 */
export function describeDatabaseError(error: unknown): string {
  const state = sqlstateOf(error)
  const constraint =
    typeof error === 'object' &&
    error !== null &&
    'constraint' in error &&
    typeof error.constraint === 'string'
      ? ` (${error.constraint})`
      : ''
  if (state === undefined)
    return error instanceof Error ? error.message.slice(0, 200) : 'unknown failure'
  const message = error instanceof Error && !quotes(state) ? `: ${error.message.slice(0, 200)}` : ''
  return `SQLSTATE ${state}${constraint}${message}`
}
