/** What was opened is closed in the opposite order, each once, whatever fails on the way. */

/** Things to be closed. */
export class Closing {
  readonly #closers: { readonly name: string; readonly close: () => unknown }[] = []
  readonly #onFailure: (name: string, error: unknown) => void

  constructor(onFailure: (name: string, error: unknown) => void) {
    this.#onFailure = onFailure
  }

  /** Remembers how to close what was just opened. */
  add(name: string, close: () => unknown): void {
    this.#closers.push({ name, close })
  }

  /** Closes everything, the last opened first. */
  async close(): Promise<void> {
    for (let next = this.#closers.pop(); next !== undefined; next = this.#closers.pop()) {
      try {
        await next.close()
      } catch (error) {
        this.#onFailure(next.name, error)
      }
    }
  }
}
