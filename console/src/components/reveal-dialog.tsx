/**
 * Looking at a payload: first a reason, which is recorded with the reader's name before a byte is sent; then the
 * exact bytes, as text only. Nothing of it stays in the page once the dialog is closed.
 */
import { useMemo, useState, type ReactNode } from 'react'
import { bytesText } from '../figures.ts'
import { payloadText } from '../payload-text.ts'
import { ConfirmDialog, Dialog } from './confirm-dialog.tsx'
import { CopyButton } from './copy-button.tsx'
import { Icon } from './icons.tsx'
import { JsonView, TextView } from './json-view.tsx'

/** Bytes as the API reveals them. */
export interface RevealedBytes {
  /** `Body`, `Request`, `Answer 2`. */
  readonly name: string
  readonly base64: string
  readonly length: number
  readonly sha256: string
}

/** Asks for a reason, reads, shows. `read` throws a Problem where it is refused. */
export function RevealDialog({
  title,
  read,
  close,
}: {
  title: string
  read(reason: string): Promise<readonly RevealedBytes[]>
  close(): void
}): ReactNode {
  const [revealed, setRevealed] = useState<readonly RevealedBytes[] | null>(null)
  if (revealed === null) {
    return (
      <ConfirmDialog
        title={title}
        verb="Reveal"
        closes={false}
        close={close}
        act={async ({ reason }) => setRevealed(await read(reason))}
      >
        <p>
          What a customer or a provider sent may be personal. That you look, and why, is written
          into the audit log.
        </p>
      </ConfirmDialog>
    )
  }
  return (
    <Dialog title={title} close={close} wide>
      {revealed.map((each) => (
        <Payload key={each.name} {...each} />
      ))}
      <div className="dialog-buttons">
        <button type="button" className="button primary" autoFocus onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  )
}

function Payload({ name, base64, length, sha256 }: RevealedBytes): ReactNode {
  const shown = useMemo(() => payloadText(base64), [base64])
  const [raw, setRaw] = useState(false)
  return (
    <section className="payload" aria-label={name}>
      <div className="payload-head">
        <h3>{name}</h3>
        <span className="muted">
          {bytesText(length)} · SHA-256 <code>{sha256.slice(0, 12)}…</code>
          <CopyButton text={sha256} label="SHA-256" />
        </span>
        {shown.kind === 'json' && (
          <button type="button" className="button plain small" onClick={() => setRaw(!raw)}>
            {raw ? 'As a tree' : 'Exactly as sent'}
          </button>
        )}
        <button
          type="button"
          className="button plain small"
          onClick={() => download(base64, `${name}-${sha256.slice(0, 12)}.bin`)}
        >
          <Icon name="download" /> Bytes
        </button>
      </div>
      {shown.kind === 'json' && !raw ? (
        <JsonView value={shown.value} label={name} open={4} />
      ) : (
        <TextView text={shown.text} label={name} />
      )}
    </section>
  )
}

/** As a file of no type: no browser opens it as a page. */
function download(base64: string, name: string): void {
  const bytes = Uint8Array.from(atob(base64), (each) => each.charCodeAt(0))
  const address = URL.createObjectURL(new Blob([bytes], { type: 'application/octet-stream' }))
  const link = document.createElement('a')
  link.href = address
  link.download = name.toLowerCase().replaceAll(' ', '-')
  link.click()
  setTimeout(() => URL.revokeObjectURL(address), 10_000)
}
