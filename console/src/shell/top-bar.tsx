/** The head of every page: search, refresh, theme, and who is signed in. */
import { useIsFetching, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Icon } from '../components/icons.tsx'
import { refreshChoices, refreshOf, refreshText } from '../refresh-times.ts'
import { useRefresh } from '../refresh.tsx'
import { useSession } from '../session.tsx'
import { useTheme } from '../theme.ts'
import { useAct } from '../use-api.ts'
import { SearchBox } from './search-box.tsx'

/** The head. */
export function TopBar({ openMenu }: { openMenu(): void }): ReactNode {
  return (
    <header className="top-bar">
      <button
        type="button"
        className="button plain icon-button menu-button"
        aria-label="Pages"
        onClick={openMenu}
      >
        <Icon name="menu" />
      </button>
      <EnvironmentBadge />
      <SearchBox />
      <RefreshControl />
      <ThemeButton />
      <WhoAmI />
    </header>
  )
}

/** Live or test: never out of sight. */
export function EnvironmentBadge(): ReactNode {
  const { environment, schema } = useSession()
  return (
    <span className="environment" data-environment={environment} title={`schema ${schema}`}>
      {environment}
    </span>
  )
}

function RefreshControl(): ReactNode {
  const { seconds } = useRefresh()
  const fetching = useIsFetching() > 0
  const queries = useQueryClient()
  return (
    <div className="refresh" data-paused={seconds === 0 || undefined}>
      <button
        type="button"
        className="button plain icon-button"
        aria-label="Read again now"
        title="Read again now (r)"
        data-busy={fetching || undefined}
        onClick={() => void queries.invalidateQueries()}
      >
        <Icon name="refresh" />
      </button>
      <RefreshSelect />
    </div>
  )
}

function RefreshSelect(): ReactNode {
  const { seconds, set } = useRefresh()
  return (
    <select
      aria-label="How often to read again"
      value={seconds}
      onChange={(event) => set(refreshOf(event.target.value))}
    >
      {refreshChoices.map((choice) => (
        <option key={choice} value={choice}>
          {refreshText(choice)}
        </option>
      ))}
    </select>
  )
}

function ThemeButton(): ReactNode {
  const [theme, next] = useTheme()
  const text = { system: 'Theme: as the system', light: 'Theme: light', dark: 'Theme: dark' }[theme]
  return (
    <button
      type="button"
      className="button plain icon-button theme-button"
      aria-label={text}
      title={`${text} (t)`}
      onClick={next}
    >
      <Icon name={theme === 'system' ? 'system' : theme === 'light' ? 'sun' : 'moon'} />
    </button>
  )
}

function WhoAmI(): ReactNode {
  const session = useSession()
  const end = useAct('POST /session/end')
  const actor = session.actor ?? 'nobody'
  return (
    <>
      <button
        type="button"
        className="button plain who"
        aria-label={`Signed in as ${actor}`}
        popoverTarget="who-am-i"
      >
        <Icon name="person" />
        <span className="who-name">{actor}</span>
      </button>
      <div id="who-am-i" popover="auto" className="popover">
        <p className="popover-head">{actor}</p>
        <p className="muted">{session.roles.length === 0 ? 'no role' : session.roles.join(', ')}</p>
        <p className="muted">
          {session.environment} · schema {session.schema}
        </p>
        <div className="popover-choices">
          <RefreshSelect />
          <ThemeButton />
        </div>
        {session.door === 'oidc' && (
          <button
            type="button"
            className="button"
            disabled={end.isPending}
            onClick={() => void end.mutateAsync({}).catch(() => {})}
          >
            Sign out
          </button>
        )}
      </div>
    </>
  )
}
