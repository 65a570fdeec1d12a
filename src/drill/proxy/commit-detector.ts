/**
 * Follows one connection's transactions by the messages that pass, and says of each client message
 * whether the server commits something when it gets it. The caller sends one unit (a simple query, or
 * extended messages up to Sync) at a time, so that the status from the server is the one that the next
 * unit starts in. Commits inside procedures are not seen.
 */
import { classifyStatement, splitStatements } from './sql-statements.ts'
import { leadingStrings } from './wire-frames.ts'
import type { Frame } from './wire-frames.ts'

/** A message that makes the server commit. */
export interface CommitPoint {
  /** A COMMIT of the client, or the end of a unit outside a transaction block. */
  readonly kind: 'explicit' | 'implicit'
  /** The statements of the transaction, the COMMIT included. */
  readonly statements: readonly string[]
  /** Whether nothing in it looks as if it could write. */
  readonly readOnly: boolean
}

/** State of one connection. */
export class CommitDetector {
  readonly #prepared = new Map<string, string>()
  readonly #portals = new Map<string, string>()
  #block: 'none' | 'open' | 'failed' = 'none'
  #statements: string[] = []
  /** Statements outside a block that the end of the unit will commit. */
  #uncommitted = false

  /** Takes a ReadyForQuery: `I`, `T` or `E`. */
  serverReady(status: string): void {
    this.#block = status === 'I' ? 'none' : status === 'T' ? 'open' : 'failed'
    this.#uncommitted = false
    if (status === 'I') this.#statements = []
  }

  /** Takes a client's message; the commit that it causes, or null. */
  clientSends(frame: Frame): CommitPoint | null {
    switch (frame.type) {
      case 'Q': {
        const [text = ''] = leadingStrings(frame.body, 1)
        const points = splitStatements(text).map((statement) => this.#run(statement))
        return this.#endOfUnit() ?? points.findLast((point) => point !== null) ?? null
      }
      case 'P': {
        const [name = '', text = ''] = leadingStrings(frame.body, 2)
        this.#prepared.set(name, text)
        return null
      }
      case 'B': {
        const [portal = '', name = ''] = leadingStrings(frame.body, 2)
        this.#portals.set(portal, this.#prepared.get(name) ?? '')
        return null
      }
      case 'E': {
        const [portal = ''] = leadingStrings(frame.body, 1)
        const [statement] = splitStatements(this.#portals.get(portal) ?? '')
        return statement === undefined ? null : this.#run(statement)
      }
      case 'S':
        return this.#endOfUnit()
      default:
        return null
    }
  }

  #run(statement: string): CommitPoint | null {
    const kind = classifyStatement(statement)
    this.#statements.push(statement)
    if (kind === 'begin') {
      if (this.#block === 'none') this.#block = 'open'
      this.#uncommitted = false
    } else if (kind === 'commit' || kind === 'rollback') {
      const commits = kind === 'commit' && (this.#block === 'open' || this.#uncommitted)
      const point = commits ? this.#point('explicit') : null
      this.#block = /\band\s+chain\b/i.test(statement) ? 'open' : 'none'
      this.#uncommitted = false
      this.#statements = []
      return point
    } else if (this.#block === 'none') {
      this.#uncommitted = true
    }
    return null
  }

  #endOfUnit(): CommitPoint | null {
    if (this.#block !== 'none' || !this.#uncommitted) return null
    this.#uncommitted = false
    return this.#point('implicit')
  }

  #point(kind: CommitPoint['kind']): CommitPoint {
    const readOnly = this.#statements.every((text) => classifyStatement(text) !== 'other')
    return { kind, statements: [...this.#statements], readOnly }
  }
}
