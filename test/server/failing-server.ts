/**
 * A stand-alone server over a database that strikes itself at one step, once. Arguments: database URL,
 * step, milliseconds to wait before it strikes. Says its port in one line.
 */
import { defaultLimits } from '../../src/core/limits.ts'
import { installFailpoints } from '../../src/core/failpoints.ts'
import { createSignals } from '../../src/core/signals.ts'
import { Receiver } from '../../src/inbox/receiver.ts'
import { createDatabase, createPool } from '../../src/postgres/pool.ts'
import { createHookledgerServer } from '../../src/server/server.ts'
import { stripe } from '../../src/providers/stripe.ts'

const [url = '', step = '', delayMs = '0', secret = ''] = process.argv.slice(2)

async function main(): Promise<void> {
  const receiver = new Receiver({
    database: createDatabase(createPool({ connectionString: url, max: 3 }), 'hookledger'),
    sources: new Map([
      [
        'stripe',
        { ...stripe({ signingSecrets: [secret] }), account: 'acct_main', environment: 'test' },
      ],
    ]),
    limits: defaultLimits,
    signals: createSignals(),
  })
  const server = createHookledgerServer({
    ingest: (request) => receiver.ingest(request),
    hasSource: (name) => receiver.hasSource(name),
    limits: defaultLimits,
    ready: () => Promise.resolve(true),
  })
  const { port } = await server.listen(0, '127.0.0.1')
  installFailpoints(async (reached) => {
    if (reached !== step) return
    if (delayMs !== '0') await new Promise((resolve) => setTimeout(resolve, Number(delayMs)))
    process.kill(process.pid, 'SIGKILL')
  })
  process.stdout.write(`${port}\n`)
}

void main()
