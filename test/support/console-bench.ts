/** The demo shop as a console's test sees it: orders, events of every state, operations, findings, acts. */
import { custom, stripe, type HookledgerOptions } from 'hookledger'
import { license } from '../../examples/shop/license.ts'

export const secret = 'whsec_of_the_console_0123456789'

/** A shop whose destination accepts everything. */
export function shopOptions(
  more: Partial<Omit<HookledgerOptions, 'database'>> = {},
): Omit<HookledgerOptions, 'database'> {
  return {
    environment: 'test',
    sources: { stripe: stripe({ environment: 'test', signingSecrets: [secret] }) },
    workflows: [license],
    destinations: { email: custom({ contract: { idempotency: 'none' }, call: async () => {} }) },
    ...more,
  }
}
