/** Broken: each attempt has an id of its own. The mail service cannot tell a retry from another email. */
import { randomUUID } from 'node:crypto'
import { custom } from 'hookledger'
import { postEmail, sale, setup, shop } from './shop.ts'

export const hookledger = shop(sale())

export const drill = {
  setup,
  destinations: (urls: Readonly<Record<string, string>>) => ({
    email: custom({
      contract: { idempotency: 'key' },
      call: async ({ body }) => {
        await postEmail(urls['email'] ?? '', randomUUID(), body)
        return {}
      },
    }),
  }),
}
