/** The shop of the repair tests, as a configuration file: its provider's payments stand in the environment. */
import { createHookledger } from 'hookledger'
import { PaymentProvider, repairOptions, type HeldPayment } from '../support/repair-bench.ts'

const provider = new PaymentProvider()
// the module is loaded once, and what the provider holds changes from command to command
Object.defineProperty(provider, 'payments', {
  get: () =>
    new Map(
      Object.entries(
        JSON.parse(process.env['REPAIR_PAYMENTS'] ?? '{}') as Record<string, HeldPayment>,
      ),
    ),
})

export const hookledger = createHookledger(repairOptions(provider))
