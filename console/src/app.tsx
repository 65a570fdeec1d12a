/** The whole page: who is looking decides between the console and the way in. */
import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { Component, useEffect, type ReactNode } from 'react'
import { Router } from 'wouter'
import { consoleBase } from './api.ts'
import { Loading } from './components/page.tsx'
import { ProblemBanner } from './components/problem.tsx'
import { go, usePath } from './location.ts'
import { NotFoundPage } from './pages/not-found.tsx'
import { SignInPage } from './pages/sign-in.tsx'
import { isPassing, Problem } from './problem.ts'
import { RefreshProvider } from './refresh.tsx'
import { takePlace } from './remembered.ts'
import { pageAt } from './routes.tsx'
import { SessionProvider } from './session.tsx'
import { Shell } from './shell/shell.tsx'
import { useGet } from './use-api.ts'

const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: askAgainWho }),
  defaultOptions: {
    queries: {
      retry: (failures, error) => failures < 2 && isPassing(error),
      retryDelay: (attempt) => 500 * 2 ** attempt,
      staleTime: 1000,
      // a hidden page asks for nothing
      refetchIntervalInBackground: false,
      refetchOnWindowFocus: true,
      // a request that cannot leave fails and is told, it does not wait in silence
      networkMode: 'always',
    },
  },
})

/** A 401 means that the session ended: the session is read again, and says how to sign in. */
function askAgainWho(error: Error): void {
  if (error instanceof Problem && error.status === 401) {
    void queries.invalidateQueries({ queryKey: ['GET /session'] })
  }
}

/** The console. */
export function App(): ReactNode {
  return (
    <QueryClientProvider client={queries}>
      <RefreshProvider>
        <Router base={consoleBase}>
          <Gate />
        </Router>
      </RefreshProvider>
    </QueryClientProvider>
  )
}

function Gate(): ReactNode {
  const session = useGet('GET /session', {}, { refresh: 60 })
  if (session.data === undefined) {
    return (
      <main className="gate">
        {session.error === null ? (
          <Loading lines={3} />
        ) : (
          <ProblemBanner problem={session.error} again={() => void session.refetch()} />
        )}
      </main>
    )
  }
  if (session.data.actor === null) return <SignInPage session={session.data} />
  return (
    <SessionProvider session={session.data}>
      <Shell>
        <ShownPage />
      </Shell>
    </SessionProvider>
  )
}

function ShownPage(): ReactNode {
  const path = usePath()
  const shown = pageAt(path)
  useEffect(() => {
    const asked = takePlace()
    if (asked !== null) go(asked, { replace: true })
  }, [])
  return (
    <Fence key={path}>
      {shown === null ? <NotFoundPage /> : <shown.page params={shown.params} />}
    </Fence>
  )
}

/** A page that fails takes nothing else with it: navigation and search stay. */
class Fence extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null }

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error }
  }

  override render(): ReactNode {
    const { error } = this.state
    if (error === null) return this.props.children
    return <ProblemBanner problem={error} again={() => this.setState({ error: null })} />
  }
}
