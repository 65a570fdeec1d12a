/** Light or dark: the system's, until the reader says otherwise. */
import { useSyncExternalStore } from 'react'
import { recall, remember } from './remembered.ts'

/** What is asked for. */
export type Theme = 'system' | 'light' | 'dark'

const order: readonly Theme[] = ['system', 'light', 'dark']
const listeners = new Set<() => void>()
const dark = window.matchMedia('(prefers-color-scheme: dark)')
let chosen: Theme = order.find((each) => each === recall('theme')) ?? 'system'

apply()
dark.addEventListener('change', tell)

/** The choice of theme, and the next one. */
export function useTheme(): readonly [Theme, () => void] {
  return [useSyncExternalStore(subscribe, () => chosen), nextTheme]
}

/** What is on the screen: charts, which are painted, are painted anew when it changes. */
export function usePaintedTheme(): 'light' | 'dark' {
  return useSyncExternalStore(subscribe, painted)
}

/** System, light, dark, and round again. */
export function nextTheme(): void {
  chosen = order[(order.indexOf(chosen) + 1) % order.length] ?? 'system'
  remember('theme', chosen)
  apply()
  tell()
}

function painted(): 'light' | 'dark' {
  return chosen === 'system' ? (dark.matches ? 'dark' : 'light') : chosen
}

function apply(): void {
  if (chosen === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = chosen
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function tell(): void {
  for (const listener of listeners) listener()
}
