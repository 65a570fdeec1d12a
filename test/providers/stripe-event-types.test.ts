import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { stripeEventTypes } from '../../src/providers/stripe-event-types.ts'
import { stripe } from '../../src/providers/stripe.ts'
import { stripeSecret } from './deliveries.ts'

/** The event types that the installed package's own types know. */
function officialTypes(): string[] {
  const entry = fileURLToPath(import.meta.resolve('stripe'))
  const types = readFileSync(new URL('resources/Events.d.ts', `file://${entry}`), 'utf8')
  return [...types.matchAll(/^ {4}type: '([^']+)';$/gm)].map((match) => match[1] ?? '').sort()
}

describe('stripeEventTypes', () => {
  it("are exactly the types of Stripe's own package, sorted", () => {
    const official = officialTypes()
    expect(official.length).toBeGreaterThan(200)
    expect(stripeEventTypes).toEqual(official)
  })

  it('are what a Stripe source is known to send', () => {
    expect(stripe({ signingSecrets: [stripeSecret] }).sends).toBe(stripeEventTypes)
  })
})
