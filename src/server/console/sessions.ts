/**
 * Sessions in the database: each ends by the database's clock, idle or not, and at once where it is ended. What
 * the browser holds is 32 random bytes, of which only the hash is stored.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { DoorSessions, SessionView, Visitor } from '../../api/door.ts'
import type { Identity, Role } from '../../compose/console-options.ts'
import type { Database } from '../../postgres/executor.ts'

/** How long sessions last, in milliseconds. */
export interface SessionLimits {
  readonly idleMs: number
  readonly sessionMs: number
}

/** Sessions. */
export interface Sessions extends DoorSessions {
  /** Begins one; answers what the browser is to hold. */
  begin(identity: Identity): Promise<string>
  /** Whose it is; nobody's where it has ended. */
  visitor(token: string | null): Promise<Visitor>
  /** Ends the session of a token. */
  endOf(token: string): Promise<void>
}

interface Row {
  readonly session_id: string
  readonly actor: string
  readonly roles: Role[]
}

interface ListRow extends Row {
  readonly began_at: Date
  readonly last_seen_at: Date
  readonly expires_at: Date
}

/** A session is written as seen at most so often, in milliseconds: looking is no write. */
const seenEveryMs = 30_000
/** Ended ones are kept for so many days, for whoever asks who was here. */
const keptDays = 90

/** Whom nobody knows. */
export const unknownVisitor: Visitor = Object.freeze({ identity: null, csrf: null, session: null })

/** Creates the sessions of a schema. */
export function createSessions(db: () => Database, limits: SessionLimits): Sessions {
  const open = `ended_at is null and expires_at > now() and last_seen_at > now() - $2::bigint * interval '1 millisecond'`
  return {
    async begin({ actor, roles }) {
      const token = randomBytes(32).toString('base64url')
      const { schema: s } = db()
      await db().query({
        text: `with old as (delete from ${s}console_sessions where expires_at < now() - interval '${keptDays} days')
          insert into ${s}console_sessions (token_sha256, actor, roles, expires_at)
          values ($1::text::bytea, $2, $3::text[], now() + $4::bigint * interval '1 millisecond')`,
        values: [hashText(token), actor, [...roles], limits.sessionMs],
      })
      return token
    },
    async visitor(token) {
      if (token === null) return unknownVisitor
      const { schema: s } = db()
      const values = [hashText(token), limits.idleMs]
      const [row] = await db().query<Row & { readonly is_stale: boolean }>({
        text: `select session_id, actor, roles, last_seen_at < now() - interval '${seenEveryMs} milliseconds' as is_stale
          from ${s}console_sessions where token_sha256 = $1::text::bytea and ${open}`,
        values,
      })
      if (row === undefined) return unknownVisitor
      if (row.is_stale) {
        await db().query({
          text: `update ${s}console_sessions set last_seen_at = now() where token_sha256 = $1::text::bytea and ${open}`,
          values,
        })
      }
      const { actor, roles } = row
      return { identity: { actor, roles }, csrf: csrfOf(token), session: row.session_id }
    },
    async endOf(token) {
      const { schema: s } = db()
      await db().query({
        text: `update ${s}console_sessions set ended_at = now(), ended_by = actor
          where token_sha256 = $1::text::bytea and ended_at is null`,
        values: [hashText(token)],
      })
    },
    async list() {
      const { schema: s } = db()
      const rows = await db().query<ListRow>({
        text: `select session_id, actor, roles, began_at, last_seen_at, expires_at from ${s}console_sessions
          where $1::text is null and ${open} order by last_seen_at desc limit 200`,
        values: [null, limits.idleMs],
      })
      return rows.map(viewOf)
    },
    async end(sessionId, by) {
      if (!/^[0-9a-f-]{36}$/.test(sessionId)) return false
      const { schema: s } = db()
      const rows = await db().query({
        text: `update ${s}console_sessions set ended_at = now(), ended_by = $2
          where session_id = $1::uuid and ended_at is null returning 1`,
        values: [sessionId, by],
      })
      return rows.length > 0
    },
  }
}

function viewOf(row: ListRow): SessionView {
  return {
    session_id: row.session_id,
    actor: row.actor,
    roles: row.roles,
    began_at: new Date(row.began_at).toISOString(),
    last_seen_at: new Date(row.last_seen_at).toISOString(),
    expires_at: new Date(row.expires_at).toISOString(),
  }
}

/** What acts of this session carry: known to the page, and of no use without the cookie. */
function csrfOf(token: string): string {
  return createHash('sha256').update(`csrf:${token}`).digest('base64url')
}

/** A hash as text that PostgreSQL reads as bytea. */
export function hashText(token: string): string {
  return `\\x${createHash('sha256').update(token).digest('hex')}`
}
