/** The simulated mail service on a port of its own. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { MailDouble } from './mail-double.ts'

/** A listening service. */
export interface ServedMail {
  /** `http://127.0.0.1:12112/emails`: where emails are posted. */
  readonly url: string
  /** Stops listening and ends all connections, those that wait for an answer too. */
  close(): Promise<void>
}

/** Serves on a free port of this machine, or on the given one. */
export async function serveMailDouble(
  double: MailDouble,
  { port = 0 }: { readonly port?: number } = {},
): Promise<ServedMail> {
  const underWay = new Set<Promise<void>>()
  const server = createServer((request, response) => {
    const handled = double.handle(request, response).finally(() => underWay.delete(handled))
    underWay.add(handled)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  const address = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${address.port}/emails`,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      // what was under way writes its last line before the log may be closed
      await Promise.all([closed, ...underWay])
    },
  }
}
