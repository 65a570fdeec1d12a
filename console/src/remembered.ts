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

const place = 'hookledger.place'

/** Remembers what this window asked for, while somebody signs in. */
export function rememberPlace(path: string): void {
  try {
    sessionStorage.setItem(place, path)
  } catch {
    // they come back to the first page
  }
}

/** What was asked for before somebody signed in, once; null: nothing was. */
export function takePlace(): string | null {
  try {
    const path = sessionStorage.getItem(place)
    sessionStorage.removeItem(place)
    return path
  } catch {
    return null
  }
}
