/**
 * The simulated provider on a port of its own.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { StripeDouble } from './stripe-double.ts'

/** A listening server. */
export interface ServedDouble {
  /** `http://127.0.0.1:12111`: what `STRIPE_API_BASE` wants. */
  readonly url: string
  readonly port: number
  /** Stops listening and ends all connections. */
  close(): Promise<void>
}

/** Serves the double's API; on a free port of this machine when nothing else is asked for. */
export async function serveStripeDouble(
  double: StripeDouble,
  options: { host?: string; port?: number } = {},
): Promise<ServedDouble> {
  const host = options.host ?? '127.0.0.1'
  const server = createServer((request, response) => void double.handleRequest(request, response))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, host, resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
