/** What every page is made of: its head, sections, fields, tiles and tabs. */
import { useEffect, useRef } from 'react'
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { useSession } from '../session.tsx'

/** A page: sets the title of the window, and takes the focus so that a reader knows where they are. */
export function Page({
  title,
  heading,
  kind,
  lead,
  facts,
  actions,
  children,
}: {
  /** Of the window, and the heading where none is given. */
  title: string
  /** The heading, where it is more than a text. */
  heading?: ReactNode
  /** The kind of thing above the heading: `Order`. */
  kind?: ReactNode
  /** One line under the heading. */
  lead?: ReactNode
  /** Short facts beside the heading: its state. */
  facts?: ReactNode
  actions?: ReactNode
  children: ReactNode
}): ReactNode {
  const { environment } = useSession()
  const head = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · ${environment} · Hookledger`
  }, [title, environment])
  useEffect(() => head.current?.focus({ preventScroll: true }), [])
  return (
    <>
      <header className="page-head">
        <div className="page-title">
          {kind !== undefined && <p className="page-kind">{kind}</p>}
          <div className="page-heading">
            <h1 ref={head} tabIndex={-1}>
              {heading ?? title}
            </h1>
            {facts}
          </div>
          {lead !== undefined && <p className="page-lead">{lead}</p>}
        </div>
        {actions !== undefined && <div className="page-actions">{actions}</div>}
      </header>
      {children}
    </>
  )
}

/** A part of a page. `aside`: what stands at the end of its head. `flush`: its content touches the edges. */
export function Section({
  title,
  aside,
  note,
  flush = false,
  children,
}: {
  title: string
  aside?: ReactNode
  /** One line under its title. */
  note?: ReactNode
  flush?: boolean
  children: ReactNode
}): ReactNode {
  return (
    <section className={flush ? 'section flush' : 'section'} aria-label={title}>
      <div className="section-head">
        <h2>{title}</h2>
        {aside !== undefined && <div className="section-aside">{aside}</div>}
      </div>
      {note !== undefined && <p className="section-note">{note}</p>}
      <div className="section-body">{children}</div>
    </section>
  )
}

/** Facts as name and value; what is undefined is left out. */
export function Facts({
  of,
}: {
  of: readonly (readonly [name: string, value: ReactNode])[]
}): ReactNode {
  const given = of.filter(([, value]) => value !== undefined)
  return (
    <dl className="facts">
      {given.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value ?? <span className="none">—</span>}</dd>
        </div>
      ))}
    </dl>
  )
}

/** Neighboring pages as tabs: they are links, so that each has its address. */
export function Tabs({
  label,
  tabs,
  current,
}: {
  label: string
  tabs: readonly { readonly to: string; readonly name: string; readonly count?: ReactNode }[]
  /** The `to` of the one that is shown. */
  current: string
}): ReactNode {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map(({ to, name, count }) => (
        <Link key={to} to={to} aria-current={to === current ? 'page' : undefined}>
          <>
            {name}
            {count !== undefined && <span className="tab-count">{count}</span>}
          </>
        </Link>
      ))}
    </nav>
  )
}

/** While something is read for the first time. */
export function Loading({ lines = 4 }: { lines?: number }): ReactNode {
  return (
    <div className="loading" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <div key={index} className="loading-line" />
      ))}
    </div>
  )
}
