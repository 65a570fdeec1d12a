/** The frame of all pages: the environment, the list of pages, the head, and room for the page itself. */
import { useEffect, useRef, useState } from 'react'
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { Announcer } from '../components/announcer.tsx'
import { Icon } from '../components/icons.tsx'
import { linkTo } from '../links.ts'
import { usePath } from '../location.ts'
import { useSession } from '../session.tsx'
import { Mark } from './mark.tsx'
import { Navigation } from './navigation.tsx'
import { Shortcuts } from './shortcuts.tsx'
import { EnvironmentBadge, TopBar } from './top-bar.tsx'

/** The frame around a page. */
export function Shell({ children }: { children: ReactNode }): ReactNode {
  const [menu, setMenu] = useState(false)
  const { environment } = useSession()
  const path = usePath()
  useEffect(() => window.scrollTo(0, 0), [path])
  return (
    <div className="shell" data-environment={environment}>
      <a className="skip" href="#page">
        Skip to the page
      </a>
      <nav className="side" aria-label="Main">
        <Brand />
        <Navigation />
      </nav>
      <TopBar openMenu={() => setMenu(true)} />
      <main id="page" className="page" tabIndex={-1}>
        {children}
      </main>
      {menu && <Drawer close={() => setMenu(false)} />}
      <Shortcuts />
      <Announcer />
    </div>
  )
}

function Brand(): ReactNode {
  return (
    <div className="brand">
      <Link to={linkTo('overview')} className="brand-name">
        <>
          <Mark /> Hookledger
        </>
      </Link>
      <EnvironmentBadge />
    </div>
  )
}

function Drawer({ close }: { close(): void }): ReactNode {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={element}
      className="drawer"
      aria-label="Pages"
      onCancel={close}
      onClick={(event) => event.target === event.currentTarget && close()}
    >
      <nav className="drawer-inside" aria-label="Main">
        <div className="drawer-head">
          <Brand />
          <button
            type="button"
            className="button plain icon-button"
            aria-label="Close"
            onClick={close}
          >
            <Icon name="close" />
          </button>
        </div>
        <Navigation follow={close} />
      </nav>
    </dialog>
  )
}
