/** `hookledger/console`: the console in an app of your own, and signing in. */
export { createConsole } from './console.ts'
export type { Console, ConsoleMountOptions } from './console.ts'
export { oidc } from './oidc.ts'
export type { OidcOptions } from './oidc.ts'
export type { Authorize, Identity, Role, SignIn } from '../../compose/console-options.ts'
