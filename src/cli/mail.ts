/**
 * Where the demo shop's emails go in `dev`: to SHOP_EMAIL_URL, or else to a simulated mail service on a port
 * of its own, which keeps its log in the data directory and shows what arrived.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { MailDouble } from '../testing/mail-double/mail-double.ts'
import { serveMailDouble } from '../testing/mail-double/serve.ts'
import type { Closing } from './closing.ts'
import type { Environment } from './environment.ts'

/** A mail service that emails go to. */
export interface Mail {
  readonly url: string
  /** The simulated one; null where SHOP_EMAIL_URL names another. */
  readonly double: MailDouble | null
}

/** Opens the mail service of a data directory, unless SHOP_EMAIL_URL names another. */
export async function openMail(environment: Environment, closing: Closing): Promise<Mail> {
  const given = environment.value('SHOP_EMAIL_URL')
  if (given !== undefined) return { url: given, double: null }
  const dataDir = join(environment.dataDir, 'mail')
  mkdirSync(dataDir, { recursive: true })
  const double = new MailDouble({ dataDir })
  closing.add('simulated mail service', () => double.close())
  const served = await serveMailDouble(double)
  closing.add("simulated mail service's API", () => served.close())
  return { url: served.url, double }
}
