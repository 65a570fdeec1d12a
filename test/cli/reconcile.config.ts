/** The shop's license, with a provider to ask that a test serves. */
import { createHookledger, custom, stripe } from 'hookledger'
import { license } from '../../examples/shop/license.ts'

export default createHookledger({
  environment: 'test',
  sources: {
    stripe: stripe({
      environment: 'test',
      signingSecrets: ['whsec_test_0123456789abcdef'],
      apiKey: 'sk_test_cli',
      apiBase: process.env['RECONCILE_TEST_API_BASE'] || 'http://127.0.0.1:9',
    }),
  },
  destinations: {
    email: custom({ contract: { idempotency: 'key' }, call: async () => ({ id: 'email_1' }) }),
  },
  workflows: [license],
  reconcile: { lagMs: 0, callsPerSecond: 1000, settleMs: 10_000 },
})
