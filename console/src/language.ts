/**
 * Some browsers name a language that they do not know themselves (`en-US@posix` under LANG=C), and a library
 * that formats by it fails while it is loaded. Such a name is replaced before anything reads it.
 */
try {
  new Intl.NumberFormat(navigator.language)
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en-US', configurable: true })
}

export {}
