/** A configuration whose handlers do to their process what their event says. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createHookledger, handle, stripe } from 'hookledger'

export default createHookledger({
  sources: { stripe: stripe({ signingSecrets: ['whsec_development_only_0123456789'] }) },
  handlers: [
    handle('stripe', 'product.created', async ({ event }) => {
      const what = event.data.object.name
      if (what === 'exit') process.exit(7)
      if (what === 'loop') for (;;);
      if (what === 'slow') await sleep(Number(process.env['SLOW_MS'] ?? 0))
    }),
  ],
  limits: { watchdogMs: Number(process.env['WATCHDOG_MS'] ?? 1000) },
})
