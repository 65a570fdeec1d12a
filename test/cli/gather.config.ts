/** One subscription of an order, looked at over an API that a test serves: a configuration file of its own. */
import { createHookledger, defineWorkflow, mirrored, name, stripe } from 'hookledger'

const team = defineWorkflow('team', {
  sources: ['stripe'],
  opens: 'event',
  initial: 'unseen',
  states: { unseen: {}, active: { entitles: true }, ended: {} },
  transitions: { unseen: ['active', 'ended'], active: ['ended'] },
  effects: {},
}).mirror('customer.subscription.updated', {
  order: ({ event }) => event.data.object.id,
  object: ({ event }) => name('subscription', event.data.object.id),
  fetch: async ({ object, api }) => {
    const { id, status } = await api.subscriptions.retrieve(object.value)
    return { id, status }
  },
  decide: ({ current }) =>
    current?.status === 'active'
      ? mirrored({ to: 'active', entitle: [{ subject: 'org:1', entitlement: 'team' }] })
      : mirrored({ to: 'ended' }),
})

const apiKey = process.env['GATHER_TEST_KEY']

export default createHookledger({
  environment: 'test',
  sources: {
    stripe: stripe({
      environment: 'test',
      signingSecrets: ['whsec_development_only_0123456789'],
      apiBase: process.env['GATHER_TEST_API_BASE'] ?? 'http://127.0.0.1:9',
      ...(apiKey !== undefined && { apiKey }),
    }),
  },
  workflows: [team],
})
