/**
 * Statements that run again and again are prepared, once for each connection: a batch of a few events
 * would otherwise spend more time on planning than on its work. The name has the text's hash in it, so
 * that behind a pooler one name can never mean two texts.
 */
import { hash } from 'node:crypto'

/** From this use on a text is prepared: what runs once or twice is not worth a place in the server. */
const worthItAt = 3

/** So many texts are kept: what is written for a batch has as many forms as there are mixes of events. */
const mostTexts = 200

interface Known {
  uses: number
  name: string | undefined
}

const known = new Map<string, Known>()

/** The name under which a text is to be prepared; undefined while it is not worth it. */
export function preparedName(text: string): string | undefined {
  const entry = known.get(text)
  if (entry === undefined) {
    if (known.size < mostTexts) known.set(text, { uses: 1, name: undefined })
    return undefined
  }
  entry.uses++
  if (entry.uses >= worthItAt) entry.name ??= nameFor(text)
  return entry.name
}

/** A name for a text, the same in every process. */
export function nameFor(text: string): string {
  return `hookledger_${hash('sha256', text, 'hex').slice(0, 24)}`
}

const unprepared = new WeakSet<object>()

/** The server said that a connection of this pool does not keep what was prepared on it. */
export function forgetPrepared(pool: object): void {
  unprepared.add(pool)
}

/** Whether statements may be prepared on this pool's connections. */
export function keepsPrepared(pool: object): boolean {
  return !unprepared.has(pool)
}

/** A pooler gave another server connection: the statement is not prepared there, or already is. */
const preparedElsewhere: ReadonlySet<string> = new Set(['26000', '42P05'])

/** Whether an error says that the connection does not keep prepared statements. */
export function isPreparedElsewhere(sqlstate: string | undefined): boolean {
  return sqlstate !== undefined && preparedElsewhere.has(sqlstate)
}
