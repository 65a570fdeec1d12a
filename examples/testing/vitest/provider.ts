/** A simulated Stripe that the official client talks to. */
import { createStripeDouble, serveStripeDouble, type StripeDouble } from 'hookledger/testing'
import Stripe from 'stripe'

export interface Provider {
  readonly double: StripeDouble
  readonly client: Stripe
  close(): Promise<void>
}

export async function openProvider(): Promise<Provider> {
  const double = createStripeDouble({ signingSecret: 'whsec_only_for_tests', seed: 'tests' })
  const server = await serveStripeDouble(double)
  const client = new Stripe('sk_test_123', {
    host: '127.0.0.1',
    port: server.port,
    protocol: 'http',
    maxNetworkRetries: 1,
    telemetry: false,
  })
  const close = async (): Promise<void> => {
    await server.close()
    double.close()
  }
  return { double, client, close }
}
