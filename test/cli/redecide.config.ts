/** A configuration whose one workflow decides otherwise once PRICED is set: code before and after a change. */
import { createHookledger, stripe, type HookledgerOptions } from 'hookledger'
import { skip, type Decision } from '../../src/workflow/decision.ts'
import { decideProbe, probeSecret, probeWorkflow } from '../support/probe.ts'

/** Its options, for whoever delivers to it. */
export const options: HookledgerOptions = {
  environment: 'test',
  sources: { probe: stripe({ environment: 'test', signingSecrets: [probeSecret] }) },
  workflows: [
    probeWorkflow({
      decide: (input) =>
        process.env['PRICED'] === 'yes'
          ? decideProbe(input)
          : (skip('no price is known') as Decision),
    }),
  ],
}

export default createHookledger(options)
