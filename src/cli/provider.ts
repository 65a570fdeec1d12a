/**
 * The simulated provider of `dev`: one state machine kept in the data directory, its API on a port of
 * its own, and a sender that delivers its events to the receiver, also those that a killed process
 * left unacknowledged.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { serveStripeDouble } from '../testing/stripe-double/serve.ts'
import { createStripeDouble, type StripeDouble } from '../testing/stripe-double/stripe-double.ts'
import {
  createWebhookSender,
  deliverEvents,
  type WebhookSender,
} from '../testing/stripe-double/webhook-sender.ts'
import type { Closing } from './closing.ts'
import { developmentSecret } from './dev-file.ts'
import type { Environment } from './environment.ts'

/** A provider that is served. */
export interface Provider {
  readonly double: StripeDouble
  /** Its API: `STRIPE_API_BASE`. */
  readonly url: string
}

/** Opens the provider of a data directory and serves its API; it delivers nothing yet. */
export async function openProvider(environment: Environment, closing: Closing): Promise<Provider> {
  const dataDir = join(environment.dataDir, 'provider')
  mkdirSync(dataDir, { recursive: true })
  const signingSecret = environment.value('STRIPE_WEBHOOK_SECRET') ?? developmentSecret
  const double = createStripeDouble({ signingSecret, dataDir })
  closing.add('simulated provider', () => double.close())
  const served = await serveStripeDouble(double)
  closing.add("simulated provider's API", () => served.close())
  return { double, url: served.url }
}

/** Delivers the provider's events to a source's webhook from now on. */
export function deliverTo(provider: Provider, url: string, closing: Closing): WebhookSender {
  const { double } = provider
  const sender = createWebhookSender({ url, signingSecret: double.signingSecret, log: double.log })
  const stop = deliverEvents(double, sender)
  closing.add('deliveries', async () => {
    stop()
    await sender.close()
  })
  return sender
}
