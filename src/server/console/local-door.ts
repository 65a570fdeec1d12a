/**
 * The door of a console that only this machine can reach: whoever is on it may do everything. A page of another
 * site that a name leads here (DNS rebinding) is told from it by the host that its browser asked for, and people
 * behind a proxy of this machine by what the proxy adds.
 */
import { randomBytes } from 'node:crypto'
import { userInfo } from 'node:os'
import type { Door } from '../../api/door.ts'
import { unknownVisitor } from './sessions.ts'

const ownNames = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i

/** What a proxy adds: whoever is behind it is not on this machine. */
const added = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip']

/** Whether an address is this machine's own. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)
}

/** Creates the door. */
export function localDoor(): Door {
  const identity = Object.freeze({ actor: userName(), roles: ['admin'] as const })
  const csrf = randomBytes(32).toString('base64url')
  return {
    kind: 'loopback',
    signInPath: null,
    origins: [],
    visitor: (request) => {
      const { headers } = request
      const isOwn =
        ownNames.test(headers.get('host') ?? '') && !added.some((name) => headers.has(name))
      return Promise.resolve(isOwn ? { identity, csrf, session: null } : unknownVisitor)
    },
    signOut: () => Promise.resolve(new Headers()),
    sessions: null,
  }
}

function userName(): string {
  try {
    return userInfo().username || 'local'
  } catch {
    // a container's user without a name
    return 'local'
  }
}
