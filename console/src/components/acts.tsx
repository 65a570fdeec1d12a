/** The acts of a page: a button for each that its reader may do, and the dialog that is open. */
import { useState, type ReactNode } from 'react'
import { Icon, type IconName } from './icons.tsx'

/** An act: what stands on its button, and what it opens. */
export interface Act {
  readonly name: string
  readonly icon?: IconName
  /** The one that is most likely meant. */
  readonly primary?: boolean
  readonly open: (close: () => void) => ReactNode
}

/** The buttons; false stands for what the reader may not do, or what is not possible now. */
export function Acts({ of }: { of: readonly (Act | false)[] }): ReactNode {
  const [opened, setOpened] = useState<string | null>(null)
  const acts = of.filter((act) => act !== false)
  return (
    <>
      {acts.map(({ name, icon, primary }) => (
        <button
          key={name}
          type="button"
          className={primary === true ? 'button primary' : 'button'}
          onClick={() => setOpened(name)}
        >
          {icon !== undefined && <Icon name={icon} />} {name}
        </button>
      ))}
      {acts.find(({ name }) => name === opened)?.open(() => setOpened(null))}
    </>
  )
}
