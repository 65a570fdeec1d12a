import Stripe from 'stripe'
import { serveStripeDouble } from '../../../src/testing/stripe-double/serve.ts'
import {
  createStripeDouble,
  type StripeDouble,
  type StripeDoubleOptions,
} from '../../../src/testing/stripe-double/stripe-double.ts'

/** A double on a port, with the official SDK pointed at it. */
export interface ServedClient extends AsyncDisposable {
  double: StripeDouble
  stripe: Stripe
  url: string
  /** A client of its own: other retries, other timeout, other account. */
  client(config?: Stripe.StripeConfig, key?: string): Stripe
  /** A plain request, for what the SDK would not send. */
  call(path: string, init?: RequestInit): Promise<Response>
}

/** A clock that stands still until it is moved. */
export function manualClock(startMs: number = Date.UTC(2026, 10, 1)): {
  now: () => number
  move(ms: number): void
} {
  let nowMs = startMs
  return {
    now: () => nowMs,
    move: (ms) => {
      nowMs += ms
    },
  }
}

export async function serveWithClient(
  options: Partial<StripeDoubleOptions> = {},
): Promise<ServedClient> {
  const double = createStripeDouble({ signingSecret: 'whsec_test', seed: 'tests', ...options })
  const server = await serveStripeDouble(double)
  const client = (config: Stripe.StripeConfig = {}, key = 'sk_test_123') =>
    new Stripe(key, {
      host: '127.0.0.1',
      port: server.port,
      protocol: 'http',
      maxNetworkRetries: 0,
      telemetry: false,
      ...config,
    })
  return {
    double,
    stripe: client(),
    url: server.url,
    client,
    call: (path, init = {}) =>
      fetch(server.url + path, {
        ...init,
        headers: { authorization: 'Bearer sk_test_123', ...init.headers },
      }),
    async [Symbol.asyncDispose]() {
      await server.close()
      double.close()
    },
  }
}

/** A double with one order paid by card. */
export function paidSession(
  double: StripeDouble,
  reference = '1001',
): { session: Stripe.Checkout.Session; intent: string } {
  const { id } = double.createSession({ clientReferenceId: reference })
  const session = double.completeSession(id, { email: 'buyer@example.com' })
  return { session, intent: session.payment_intent as string }
}
