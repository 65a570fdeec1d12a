/**
 * The way in: who asks, and how somebody signs in or out. The API knows no cookie and no provider of
 * identities; whatever mounts it does.
 */
import type { Identity, Role } from './access.ts'

/** Who asks, as the door knows them. */
export interface Visitor {
  /** Null: nobody whom it knows. */
  readonly identity: Identity | null
  /** What an act of theirs must carry as `x-hookledger-csrf`; null where there is nobody. */
  readonly csrf: string | null
  /** The id of their session, where there are any. */
  readonly session: string | null
}

/** A session of somebody, without what would let another one use it. */
export interface SessionView {
  readonly session_id: string
  readonly actor: string
  readonly roles: readonly Role[]
  readonly began_at: string
  readonly last_seen_at: string
  readonly expires_at: string
}

/** Sessions kept by the door. */
export interface DoorSessions {
  list(): Promise<readonly SessionView[]>
  /** Ends one; false: there is none that could be ended. */
  end(sessionId: string, by: string): Promise<boolean>
}

/** How people come in. */
export interface Door {
  /** `oidc`: by a provider of identities. `app`: the app says who it is. `loopback`: whoever is on this machine. */
  readonly kind: 'oidc' | 'app' | 'loopback'
  /** Where signing in begins, below the prefix; null where there is nothing to be done. */
  readonly signInPath: string | null
  /** The origins from which acts may come, beside the host that was asked; empty: none. */
  readonly origins: readonly string[]
  /** Rejects only where the database does. */
  visitor(request: Request): Promise<Visitor>
  /** Ends the visitor's own session; answers the headers that make the browser forget it. */
  signOut(request: Request): Promise<Headers>
  /** Null where the door keeps none. */
  readonly sessions: DoorSessions | null
}
