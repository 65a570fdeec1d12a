/** Moments, told from now and exact on demand; all of them tick together. */
import { useSyncExternalStore } from 'react'
import type { ReactNode } from 'react'
import { agoText, clockText, durationText } from '../moments.ts'

const listeners = new Set<() => void>()
let now = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  timer ??= setInterval(() => {
    if (document.hidden) return
    now = Date.now()
    for (const each of listeners) each()
  }, 5000)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** The present, to five seconds. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now)
}

/**
 * A moment. `ago`: `4 min ago`, exact when pointed at. `clock`: the exact local time. `both`: the two. Null is a dash.
 */
export function Moment({
  at,
  show = 'ago',
}: {
  at: string | null | undefined
  show?: 'ago' | 'clock' | 'both'
}): ReactNode {
  const present = useNow()
  if (at === null || at === undefined) return <span className="none">—</span>
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return <span>{at}</span>
  const ago = agoText(date.getTime(), Math.max(present, now))
  const clock = clockText(date)
  return (
    <time className="moment" dateTime={at} title={`${clock} local, ${at}`}>
      {show === 'ago' ? ago : clock}
      {show === 'both' && <span className="muted"> · {ago}</span>}
    </time>
  )
}

/** An age or a duration in milliseconds; null is a dash. */
export function Duration({ ms }: { ms: number | null | undefined }): ReactNode {
  if (ms === null || ms === undefined) return <span className="none">—</span>
  return <span className="nowrap">{durationText(ms)}</span>
}
