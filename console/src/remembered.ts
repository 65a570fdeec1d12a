/** Small choices that outlive the page, in the browser: the theme and how often to refresh. Never data. */

/** What was remembered; null where nothing was, or the browser keeps nothing. */
export function recall(name: string): string | null {
  try {
    return localStorage.getItem(`hookledger.${name}`)
  } catch {
    return null
  }
}

/** Remembers it, where the browser lets us. */
export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`hookledger.${name}`, value)
  } catch {
    // a private window: it lasts as long as the page
  }
}
