import { describe, expect, it } from 'vitest'
import { custom, defineWorkflow, standardWebhooks } from 'hookledger'
import { resolveOptions } from '../../src/compose/options.ts'

const email = custom({ contract: { idempotency: 'key' }, call: () => Promise.resolve() })
const sources = {
  acme: standardWebhooks({ secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'] }),
}
const sender = (destinations: readonly string[]) =>
  defineWorkflow('shop', {
    sources: ['acme'],
    initial: 'pending',
    states: { pending: {} },
    transitions: {},
    effects: {},
    destinations,
  })

describe('destinations of workflows', () => {
  it('are configured, or the configuration is refused with the nearest name', () => {
    expect(() =>
      resolveOptions({ sources, workflows: [sender(['emial'])], destinations: { email } }),
    ).toThrow('unknown destination of workflow "shop" "emial", did you mean "email"?')
  })

  it('may be fewer than are configured', () => {
    const config = resolveOptions({
      sources,
      workflows: [sender(['email'])],
      destinations: { email, crm: email },
    })
    expect([...config.destinations.keys()]).toEqual(['email', 'crm'])
  })
})
