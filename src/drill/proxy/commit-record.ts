/** What connections and the proxy tell one another of commits: what may happen to one, and what did. */
import type { CommitPoint } from './commit-detector.ts'

/**
 * `drop-before`: the connection is cut and the server never gets the commit.
 * `drop-after`: the server commits, and the connection is cut before its answer.
 * `black-hole`: the server commits, its answer and all that follows is swallowed, the connection stays.
 */
export type CommitFaultMode = 'drop-before' | 'drop-after' | 'black-hole'

/** What happened to one commit. */
export interface CommitRecord {
  /** Number of the connection, in the order they were opened. */
  readonly connection: number
  readonly kind: CommitPoint['kind']
  readonly statements: readonly string[]
  action: 'passed' | CommitFaultMode
  /** The server's word: true or false; null while it has not answered (or died before it did). */
  committed: boolean | null
  /** The server's last command tag or error code for it, such as `COMMIT` or `ERROR 23505`. */
  answer: string | null
}

/** A fault as connections see it: asked at each commit. */
export interface Striker {
  wants(point: CommitPoint): CommitFaultMode | null
  struck(record: CommitRecord): void
  /** Takes the strike back: the server did not commit. */
  missed(): void
}
