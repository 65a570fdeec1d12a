/**
 * Every act passes here: what will happen, a reason, and, where money or access moves, a text that has to be
 * typed. It can be sent once only; what the server refuses is told in place, with nothing lost.
 */
import { useEffect, useId, useRef, useState } from 'react'
import type { FormEvent, ReactNode } from 'react'
import { Problem } from '../problem.ts'
import { ProblemBanner } from './problem.tsx'
import { notify } from './announcer.tsx'

/** What the dialog asks for. */
export interface ConfirmDialogProps {
  readonly title: string
  /** What will happen, in the words of the plan. */
  readonly children?: ReactNode
  /** On the button: a verb, `Retry now`. */
  readonly verb: string
  /** Must be typed exactly. Left out: nothing has to be typed. */
  readonly typed?: string | undefined
  readonly dangerous?: boolean
  readonly wide?: boolean
  /** False: what it was opened for goes on after the act, which is a question only (a plan, a payload). */
  readonly closes?: boolean
  /** Given already, for a plan: it can still be changed. */
  readonly reason?: string
  /** Other fields that are not filled in yet keep the button shut. */
  readonly ready?: boolean
  /** Does it; throws a Problem where it was refused. The text it answers is told for all to see. */
  act(given: { reason: string; confirm: string }): Promise<string | void>
  close(): void
}

/** The dialog; render it while it is open. */
export function ConfirmDialog(props: ConfirmDialogProps): ReactNode {
  const { title, children, verb, typed, dangerous = false, ready = true, act, close } = props
  const [reason, setReason] = useState(props.reason ?? '')
  const [confirm, setConfirm] = useState('')
  const [problem, setProblem] = useState<Problem | null>(null)
  const [busy, setBusy] = useState(false)
  const sent = useRef(false)
  const ids = useId()
  const complete = ready && reason.trim().length >= 3 && (typed === undefined || confirm === typed)
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    if (!complete || sent.current) return
    sent.current = true
    setBusy(true)
    setProblem(null)
    try {
      const said = await act({ reason: reason.trim(), confirm })
      if (typeof said === 'string') notify(said)
      if (props.closes !== false) close()
    } catch (error) {
      setProblem(
        error instanceof Problem ? error : new Problem(0, 'HKL_CONSOLE_FAULT', String(error)),
      )
      sent.current = false
      setBusy(false)
    }
  }
  return (
    <Dialog title={title} close={close} shut={busy} wide={props.wide ?? false}>
      <form onSubmit={(event) => void submit(event)}>
        {children !== undefined && <div className="dialog-text">{children}</div>}
        <label className="field" htmlFor={`${ids}reason`}>
          <span>Reason</span>
          <textarea
            id={`${ids}reason`}
            rows={2}
            value={reason}
            maxLength={2000}
            required
            autoFocus
            aria-describedby={`${ids}hint`}
            onChange={(event) => setReason(event.target.value)}
          />
        </label>
        <p id={`${ids}hint`} className="field-hint">
          Recorded with your name, for whoever reads the audit log.
        </p>
        {typed !== undefined && (
          <label className="field" htmlFor={`${ids}typed`}>
            <span>
              Type <code className="typed">{typed}</code> to confirm
            </span>
            <input
              id={`${ids}typed`}
              type="text"
              value={confirm}
              autoComplete="off"
              spellCheck={false}
              required
              onChange={(event) => setConfirm(event.target.value)}
            />
          </label>
        )}
        <ProblemBanner problem={problem} />
        <div className="dialog-buttons">
          <button type="button" className="button" disabled={busy} onClick={close}>
            Cancel
          </button>
          <button
            type="submit"
            className={dangerous ? 'button danger' : 'button primary'}
            disabled={!complete || busy}
          >
            {busy ? 'Working…' : verb}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

/** A dialog over the page: the focus stays in it, Escape closes it (unless `shut`), and goes back after. */
export function Dialog({
  title,
  close,
  shut = false,
  wide = false,
  children,
}: {
  title: string
  close(): void
  /** Cannot be closed now. */
  shut?: boolean
  wide?: boolean
  children: ReactNode
}): ReactNode {
  const element = useRef<HTMLDialogElement>(null)
  const heading = useId()
  useEffect(() => {
    const dialog = element.current
    const before = document.activeElement
    dialog?.showModal()
    return () => {
      dialog?.close()
      // the act may have taken its own button away
      const back = before?.isConnected ? before : document.getElementById('page')
      if (back instanceof HTMLElement) back.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      className={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault()
        if (!shut) close()
      }}
    >
      <h2 id={heading}>{title}</h2>
      {children}
    </dialog>
  )
}
