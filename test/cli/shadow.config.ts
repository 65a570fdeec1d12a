/** The license of the shop, in shadow where SHADOW says so; what the app gives is a table of the test's. */
import { createHookledger, custom, stripe } from 'hookledger'
import { license } from '../../examples/shop/license.ts'

export default createHookledger({
  environment: 'test',
  sources: {
    stripe: stripe({ environment: 'test', signingSecrets: ['whsec_test_0123456789abcdef'] }),
  },
  destinations: {
    email: custom({ contract: { idempotency: 'key' }, call: async () => ({ id: 'email_1' }) }),
  },
  workflows: [license],
  shadow: process.env['SHADOW'] === 'license' ? ['license'] : [],
  appEntitlements: async ({ db, subjects }) => {
    const { rows } = await db.query<{ subject: string; entitlement: string }>(
      'select subject, entitlement from app_gives where subject = any ($1)',
      [subjects],
    )
    return rows
  },
})
