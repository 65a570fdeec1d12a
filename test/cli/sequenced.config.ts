/** A configuration with a destination that takes the operations of an order one after the other. */
import { createHookledger, custom, stripe } from 'hookledger'

export default createHookledger({
  sources: { stripe: stripe({ signingSecrets: ['whsec_development_only_0123456789'] }) },
  destinations: {
    email: custom({
      contract: { idempotency: 'key', sequence: 'order' },
      call: async () => ({ message: 'm_1' }),
    }),
  },
})
