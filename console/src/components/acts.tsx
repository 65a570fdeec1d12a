/** The acts of a page: a button for each that its reader may do, and the dialog that is open. */
import { useEffect, useState, type ReactNode } from 'react'
import { Icon, type IconName } from './icons.tsx'

/** An act: what stands on its button, and what it opens. */
export interface Act {
  readonly name: string
  readonly icon?: IconName
  /** The one that is most likely meant. */
  readonly primary?: boolean
  readonly open: (close: () => void) => ReactNode
}

/**
 * The buttons; false stands for what the reader may not do, or what is not possible now. A dialog that is open stays
 * open where its act goes: what the server says of it has to be read.
 */
export function Acts({ of }: { of: readonly (Act | false)[] }): ReactNode {
  const [opened, setOpened] = useState<Act | null>(null)
  const acts = of.filter((act) => act !== false)
  const names = acts.map(({ name }) => name).join()
  // a button that goes takes the focus with it, and whoever uses the keyboard would begin at the top again
  useEffect(() => () => void setTimeout(keepFocus), [names])
  return (
    <>
      {acts.map((act) => (
        <button
          key={act.name}
          type="button"
          className={act.primary === true ? 'button primary' : 'button'}
          onClick={() => setOpened(act)}
        >
          {act.icon !== undefined && <Icon name={act.icon} />} {act.name}
        </button>
      ))}
      {(acts.find(({ name }) => name === opened?.name) ?? opened)?.open(() => setOpened(null))}
    </>
  )
}

function keepFocus(): void {
  if (document.activeElement === document.body) document.getElementById('page')?.focus()
}
