/** The way in: what this server asks of somebody whom it does not know. */
import { useEffect, type ReactNode } from 'react'
import { prefix } from '../api.ts'
import { usePath, useUrlQuery } from '../location.ts'
import { rememberPlace } from '../remembered.ts'
import { useForgetSession, type Session } from '../session.tsx'
import { Mark } from '../shell/mark.tsx'

const failures: Readonly<Record<string, string>> = {
  provider: 'Your organization’s sign-in does not answer. Try again in a moment.',
  throttled: 'Too many people sign in at once. Try again in a minute.',
  expired: 'It took too long, or was begun in another window. Try again.',
  refused: 'You are known, and have no role here. Ask who runs this server for one.',
  failed:
    'That did not work. Try again; if it stays so, ask who runs this server: its log says why.',
}

/** Offers the way in that the session names; where the app around it decides, it says so. */
export function SignInPage({ session }: { session: Session }): ReactNode {
  const path = usePath()
  const { values } = useUrlQuery()
  const why = values['sign_in'] ?? ''
  const failed = Object.hasOwn(failures, why) ? failures[why] : undefined
  useEffect(() => {
    document.title = `Sign in · ${session.environment} · Hookledger`
  }, [session.environment])
  return (
    <main className="sign-in">
      <p className="sign-in-brand">
        <span>
          <Mark /> Hookledger
        </span>
        <span className="environment" data-environment={session.environment}>
          {session.environment}
        </span>
      </p>
      <h1>Sign in</h1>
      {failed !== undefined && (
        <p className="sign-in-failed" role="alert">
          {failed}
        </p>
      )}
      {session.sign_in_path === null ? (
        <AskTheApp />
      ) : (
        <>
          <p className="muted">
            With the account of your organization. What you do here is recorded.
          </p>
          <a
            className="button primary"
            href={prefix + session.sign_in_path}
            onClick={() => path !== '/' && rememberPlace(path + location.search)}
          >
            Continue
          </a>
        </>
      )}
    </main>
  )
}

function AskTheApp(): ReactNode {
  const again = useForgetSession()
  return (
    <>
      <p className="muted">
        The app that this console is part of decides who may look, and does not know you here. Sign
        in to it, then come back.
      </p>
      <button type="button" className="button primary" onClick={again}>
        I have signed in
      </button>
    </>
  )
}
