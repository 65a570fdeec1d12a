/** The shop, as a starting process makes it: its own Hookledger over the database of the tests. */
import { createHookledger, stripe, type Hookledger } from 'hookledger'
import { sale } from './sale.ts'

export const secret = 'whsec_only_for_tests'

export function createShop(): Hookledger {
  return createHookledger({
    sources: { stripe: stripe({ signingSecrets: [secret] }) },
    workflows: [sale],
  })
}
