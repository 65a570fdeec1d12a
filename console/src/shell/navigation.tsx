/** Where one can go: the same list at the side of a wide screen and in a drawer on a narrow one. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { Icon } from '../components/icons.tsx'
import { usePath } from '../location.ts'
import { navigationGroups } from '../navigation.ts'
import { useSession } from '../session.tsx'

/** The list of pages; those that the reader may not use are left out. */
export function Navigation({ follow }: { follow?: () => void }): ReactNode {
  const { permissions } = useSession()
  const path = usePath()
  return (
    <div className="navigation">
      {navigationGroups.map(({ name, entries }) => {
        const shown = entries.filter(
          ({ needs }) => needs === undefined || permissions.includes(needs),
        )
        if (shown.length === 0) return null
        return (
          <div key={name} className="navigation-group">
            {name !== '' && <p className="navigation-head">{name}</p>}
            <ul>
              {shown.map((entry) => (
                <li key={entry.to}>
                  <Link
                    to={entry.to}
                    aria-current={isWithin(path, entry.within) ? 'page' : undefined}
                    {...(follow && { onClick: follow })}
                  >
                    <>
                      <Icon name={entry.icon} />
                      {entry.text}
                    </>
                  </Link>
                </li>
              ))}
            </ul>
          </div>
        )
      })}
    </div>
  )
}

function isWithin(path: string, within: readonly string[]): boolean {
  return within.some((each) =>
    each === '/' ? path === '/' : path === each || path.startsWith(`${each}/`),
  )
}
