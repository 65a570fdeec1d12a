/** The door of a console that people sign in to: a cookie of this host, a session in the database. */
import type { Door } from '../../api/door.ts'
import { readCookie, setCookie, type CookieKind } from './cookies.ts'
import type { Sessions } from './sessions.ts'

/** Creates the door. */
export function sessionDoor(
  sessions: Sessions,
  cookie: CookieKind,
  { signInPath, origin }: { readonly signInPath: string; readonly origin: string },
): Door {
  return {
    kind: 'oidc',
    signInPath,
    origins: [origin],
    visitor: (request) => sessions.visitor(readCookie(request, cookie)),
    async signOut(request) {
      const token = readCookie(request, cookie)
      if (token !== null) await sessions.endOf(token)
      return new Headers({ 'set-cookie': setCookie(cookie, null) })
    },
    sessions,
  }
}
