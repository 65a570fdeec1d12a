/**
 * The process that the crash test kills: serves a double from a data directory and keeps it busy. It
 * prints the id of every session only after the double has answered that it is paid.
 */
import { serveStripeDouble } from '../../../src/testing/stripe-double/serve.ts'
import { createStripeDouble } from '../../../src/testing/stripe-double/stripe-double.ts'

const double = createStripeDouble({
  signingSecret: 'whsec_test',
  seed: 'killed',
  dataDir: process.argv[2]!,
})
const server = await serveStripeDouble(double)
process.stdout.write(`port ${server.port}\n`)

function work(): void {
  const { id } = double.createSession({ clientReferenceId: 'busy' })
  const session = double.completeSession(id)
  const refund = double.refund({ paymentIntent: session.payment_intent as string, amount: 100 })
  process.stdout.write(`paid ${session.id} ${refund.id}\n`)
  setTimeout(work, 1)
}
work()
