/** Who is looking, and what they may do: read once, and again when the server says that nobody is signed in. */
import { useQueryClient } from '@tanstack/react-query'
import { createContext, useContext, useEffect } from 'react'
import type { ReactNode } from 'react'
import { setCsrfToken, type Answer } from './api.ts'

/** What the server says about the asker and itself. */
export type Session = Answer<'GET /session'>

/** What may be done; the words of the API. */
export type Permission = 'read' | 'operate' | 'approve' | 'reveal' | 'erase' | 'administer'

const Context = createContext<Session | null>(null)

/** Makes a session known below it. */
export function SessionProvider({
  session,
  children,
}: {
  session: Session
  children: ReactNode
}): ReactNode {
  useEffect(() => setCsrfToken(session.csrf ?? ''), [session.csrf])
  return <Context value={session}>{children}</Context>
}

/** The session; only inside the shell, where there is one. */
export function useSession(): Session {
  const session = useContext(Context)
  if (session === null) throw new Error('useSession stands outside the shell')
  return session
}

/** Whether the reader has the permission. Buttons that they may not press are not shown. */
export function useMay(permission: Permission): boolean {
  const session = useSession()
  return session.permissions.includes(permission)
}

/** Reads the session anew: after signing out, and when a request was answered with 401. */
export function useForgetSession(): () => void {
  const queries = useQueryClient()
  return () => void queries.invalidateQueries({ queryKey: ['GET /session'] })
}
