/** Broken: what goes wrong on the way to the mail service is caught and forgotten. The email counts as sent. */
import { custom } from 'hookledger'
import { postEmail, sale, setup, shop } from './shop.ts'

export const hookledger = shop(sale())

export const drill = {
  setup,
  destinations: (urls: Readonly<Record<string, string>>) => ({
    email: custom({
      contract: { idempotency: 'key' },
      call: async ({ body, key }) => {
        try {
          await postEmail(urls['email'] ?? '', key, body)
        } catch {
          // "it is only an email"
        }
        return {}
      },
    }),
  }),
}
