/** The version of the package, from its own package.json. */
import { readFileSync } from 'node:fs'

/** Such as `0.1.0`. */
export const version: string = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
).version
