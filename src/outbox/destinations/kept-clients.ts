/**
 * Connections of one origin, one request each at a time: taken, and given back only after an answer that
 * was read to its end. Whatever ended otherwise is destroyed, and nothing connects by itself.
 */
import type { Client } from 'undici'
import type { PinnedOptions } from './pinned-connect.ts'
import { pinnedConnector } from './pinned-connect.ts'

/** How to connect, and how many connections to keep. */
export interface ClientsOptions extends PinnedOptions {
  readonly origin: string
  readonly connections: number
}

const headerBytes = 16 * 1024

/** The clients of one origin; undici is loaded with the first. */
export class KeptClients {
  readonly #options: ClientsOptions
  readonly #idle: Client[] = []
  readonly #taken = new Set<Client>()
  #loading: Promise<() => Client> | undefined

  constructor(options: ClientsOptions) {
    this.#options = options
  }

  /** A client that no request uses; a new one with `isFresh`. */
  async take(isFresh: boolean): Promise<Client> {
    this.#loading ??= this.#load()
    const make = await this.#loading
    const client = (isFresh ? undefined : this.#idle.pop()) ?? make()
    this.#taken.add(client)
    return client
  }

  /** Keeps the client for another request, or ends its connection. */
  release(client: Client, isReusable: boolean): void {
    const wasTaken = this.#taken.delete(client)
    if (wasTaken && isReusable && this.#idle.length < this.#options.connections) {
      this.#idle.push(client)
    } else {
      destroy(client)
    }
  }

  /** Ends all connections, those in use too. */
  close(): void {
    for (const client of [...this.#idle.splice(0), ...this.#taken]) destroy(client)
    this.#taken.clear()
  }

  async #load(): Promise<() => Client> {
    const { buildConnector, Client } = await import('undici')
    const connect = pinnedConnector(buildConnector, this.#options)
    return () =>
      new Client(this.#options.origin, {
        connect,
        pipelining: 1,
        // The deadline of a request covers both.
        headersTimeout: 0,
        bodyTimeout: 0,
        maxHeaderSize: headerBytes,
        allowH2: false,
      })
  }
}

function destroy(client: Client): void {
  client.destroy().catch(() => undefined)
}
