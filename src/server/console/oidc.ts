/**
 * Signing in by OpenID Connect: authorization code with PKCE, state and nonce, of which the browser holds one
 * random text and the database the rest. A session begins with a new id, and only for somebody with a role.
 */
import { randomBytes } from 'node:crypto'
import type { Configuration } from 'openid-client'
import type { Identity, Role, SignIn } from '../../compose/console-options.ts'
import { HookledgerError } from '../../core/errors.ts'
import type { Signals } from '../../core/signals.ts'
import type { Database } from '../../postgres/executor.ts'
import { identityProblem } from './app-door.ts'
import { readCookie, setCookie, type CookieKind } from './cookies.ts'
import { hashText, type Sessions } from './sessions.ts'

/** Options of `oidc()`. */
export interface OidcOptions {
  /** `https://login.example.com/realms/ours`. */
  readonly issuer: string
  readonly clientId: string
  /** Without one the client is public, and PKCE alone proves it. */
  readonly clientSecret?: string | undefined
  /** Which claims are asked for; default `openid profile email`. */
  readonly scope?: string | undefined
  /** Which roles somebody has here; none: they may not come in. */
  readonly roles: (claims: Readonly<Record<string, unknown>>) => readonly Role[]
  /** The name that acts are recorded under; default the verified email, else the subject. */
  readonly actor?: ((claims: Readonly<Record<string, unknown>>) => string) | undefined
}

/**
 * Signing in by a provider of identities.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID naming the option that cannot be
 * @example
 * console: {
 *   publicUrl: 'https://ops.example.com',
 *   signIn: oidc({ issuer, clientId, clientSecret, roles: ({ groups }) => (groups as string[]).includes('ops') ? ['operator'] : ['viewer'] }),
 * }
 */
export function oidc(options: OidcOptions): SignIn {
  const { issuer, clientId, clientSecret, scope = 'openid profile email', roles, actor } = options
  const url = URL.canParse(issuer) ? new URL(issuer) : null
  const isLocal = url?.protocol === 'http:' && ['localhost', '127.0.0.1'].includes(url.hostname)
  if (url?.protocol !== 'https:' && !isLocal) throw invalid('issuer must be an https address')
  if (typeof clientId !== 'string' || clientId === '') throw invalid('clientId is missing')
  if (clientSecret !== undefined && (typeof clientSecret !== 'string' || clientSecret === ''))
    throw invalid('clientSecret is empty: leave it out for a public client')
  if (typeof roles !== 'function') throw invalid('roles must be a function of the claims')
  if (actor !== undefined && typeof actor !== 'function')
    throw invalid('actor must be a function of the claims')
  if (!scope.split(' ').includes('openid')) throw invalid('scope must contain openid')
  return Object.freeze({
    kind: 'oidc',
    issuer,
    clientId,
    clientSecret: clientSecret ?? null,
    scope,
    roles,
    actor: actor ?? namedBy,
  })
}

/** What signing in needs. */
export interface OidcFlowOptions {
  readonly db: () => Database
  readonly signIn: SignIn
  readonly sessions: Sessions
  /** Where the provider sends people back to. */
  readonly redirectUri: string
  /** Where they go then, and where a failure is shown. */
  readonly home: string
  readonly session: CookieKind
  readonly sessionSeconds: number
  readonly signals: Signals
}

/** The two halves of signing in. */
export interface OidcFlow {
  /** Sends the browser to the provider. */
  begin(): Promise<Response>
  /** It comes back. */
  finish(request: Request): Promise<Response>
}

/** Somebody who takes longer begins anew, in seconds. */
const patienceSeconds = 600
/** So many may be on their way at once. Anybody can begin, so the oldest are forgotten, and nobody is kept out. */
const mostOnTheWay = 10_000
/** So many are asked about at the provider at once; more are asked to try again. */
const mostAsked = 20

interface OnTheWay {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** Creates the flow; the provider is asked for its addresses when somebody signs in first. */
export function createOidcFlow(options: OidcFlowOptions): OidcFlow {
  const browser: CookieKind = { ...options.session, name: 'hookledger-sign-in', sameSite: 'Lax' }
  let asked = 0
  let found: Promise<Configuration> | undefined
  const configuration = (): Promise<Configuration> => {
    found ??= discover(options.signIn).catch((error: unknown) => {
      found = undefined
      throw error
    })
    return found
  }
  const told = (
    actor: string | null,
    outcome: 'signed_in' | 'refused' | 'failed' | 'throttled',
    reason: string,
  ): void => options.signals.emit('console.sign_in.ended', { actor, outcome, reason })
  return {
    async begin() {
      const client = await import('openid-client')
      let config: Configuration
      try {
        config = await configuration()
      } catch (error) {
        told(null, 'failed', `the provider of identities cannot be asked: ${nameOf(error)}`)
        return shown(options, 'provider')
      }
      const verifier = client.randomPKCECodeVerifier()
      const way = { state: client.randomState(), nonce: client.randomNonce(), verifier }
      const token = randomBytes(32).toString('base64url')
      await store(options.db(), token, way)
      const url = await addressOf(config, options, way)
      return redirect(url, [setCookie(browser, token, patienceSeconds)])
    },
    async finish(request) {
      if (asked >= mostAsked) {
        told(null, 'throttled', 'too many are signing in at once')
        return shown(options, 'throttled')
      }
      asked += 1
      try {
        return await finish(request)
      } finally {
        asked -= 1
      }
    },
  }

  async function finish(request: Request): Promise<Response> {
    const token = readCookie(request, browser)
    const way = token === null ? null : await take(options.db(), token)
    const forget = setCookie(browser, null)
    if (way === null) {
      told(null, 'failed', 'it took too long, or was begun elsewhere')
      return shown(options, 'expired', [forget])
    }
    let claims: Claims
    try {
      const current = new URL(options.redirectUri)
      current.search = new URL(request.url).search
      claims = await claimsOf(await configuration(), current, way)
    } catch (error) {
      told(null, 'failed', `the provider of identities did not confirm it: ${nameOf(error)}`)
      return shown(options, 'provider', [forget])
    }
    const identity = identityOf(options.signIn, claims)
    if (typeof identity === 'string') {
      told(null, 'refused', identity)
      return shown(options, 'refused', [forget])
    }
    // whoever was signed in here before is not any more
    const before = readCookie(request, options.session)
    if (before !== null) await options.sessions.endOf(before)
    const own = await options.sessions.begin(identity)
    told(identity.actor, 'signed_in', identity.roles.join(', '))
    return redirect(options.home, [forget, setCookie(options.session, own, options.sessionSeconds)])
  }
}

type Claims = Readonly<Record<string, unknown>>

/** Who the provider says it is, for what came back to `current`. */
async function claimsOf(config: Configuration, current: URL, way: OnTheWay): Promise<Claims> {
  const client = await import('openid-client')
  const tokens = await client.authorizationCodeGrant(config, current, {
    pkceCodeVerifier: way.verifier,
    expectedState: way.state,
    expectedNonce: way.nonce,
    idTokenExpected: true,
  })
  return tokens.claims() ?? {}
}

/** Where the provider signs people in, and back to whom. */
async function addressOf(
  config: Configuration,
  { redirectUri, signIn }: OidcFlowOptions,
  way: OnTheWay,
): Promise<string> {
  const client = await import('openid-client')
  return client.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope: signIn.scope,
    code_challenge: await client.calculatePKCECodeChallenge(way.verifier),
    code_challenge_method: 'S256',
    state: way.state,
    nonce: way.nonce,
  }).href
}

async function discover(signIn: SignIn): Promise<Configuration> {
  const client = await import('openid-client')
  const url = new URL(signIn.issuer)
  const method =
    signIn.clientSecret === null ? client.None() : client.ClientSecretPost(signIn.clientSecret)
  return client.discovery(url, signIn.clientId, undefined, method, {
    timeout: 10,
    // only `oidc()` lets such an issuer through, and only of this machine
    ...(url.protocol === 'http:' && { execute: [client.allowInsecureRequests] }),
  })
}

async function store(db: Database, token: string, way: OnTheWay): Promise<void> {
  const { schema: s } = db
  await db.query({
    text: `with old as (delete from ${s}console_sign_ins where began_at < now() - interval '${patienceSeconds} seconds'
        or began_at < (select began_at from ${s}console_sign_ins order by began_at desc offset ${mostOnTheWay} limit 1))
      insert into ${s}console_sign_ins (browser_sha256, state, nonce, verifier) values ($1::text::bytea, $2, $3, $4)`,
    values: [hashText(token), way.state, way.nonce, way.verifier],
  })
}

/** Once only: whoever comes second finds nothing. */
async function take(db: Database, token: string): Promise<OnTheWay | null> {
  const rows = await db.query<OnTheWay & { readonly is_late: boolean }>({
    text: `delete from ${db.schema}console_sign_ins where browser_sha256 = $1::text::bytea
      returning state, nonce, verifier, began_at < now() - interval '${patienceSeconds} seconds' as is_late`,
    values: [hashText(token)],
  })
  const [row] = rows
  return row === undefined || row.is_late ? null : row
}

/** Who it is, or why they may not come in. */
function identityOf(signIn: SignIn, claims: Claims): Identity | string {
  let identity: Identity
  try {
    identity = { actor: signIn.actor(claims), roles: [...signIn.roles(claims)] }
  } catch (error) {
    return `roles or actor threw a ${nameOf(error)}`
  }
  const problem = identityProblem(identity)
  if (problem !== null) return problem
  return identity.roles.length === 0 ? `${identity.actor} has no role` : identity
}

function namedBy(claims: Readonly<Record<string, unknown>>): string {
  const { email, email_verified: isVerified, sub } = claims
  return typeof email === 'string' && isVerified === true ? email : String(sub)
}

function nameOf(error: unknown): string {
  const code = (error as { readonly code?: unknown } | null)?.code
  if (typeof code === 'string') return code
  return error instanceof Error ? error.name : 'value'
}

/** Back to the page, which says in its own words what went wrong. */
function shown(
  { home }: OidcFlowOptions,
  why: 'provider' | 'throttled' | 'expired' | 'refused',
  cookies: readonly string[] = [],
): Response {
  return redirect(`${home}?sign_in=${why}`, cookies)
}

function redirect(location: string, cookies: readonly string[]): Response {
  const headers = new Headers({ location, 'cache-control': 'no-store' })
  for (const cookie of cookies) headers.append('set-cookie', cookie)
  return new Response(null, { status: 303, headers })
}

function invalid(problem: string): HookledgerError {
  return new HookledgerError('HKL_CONFIG_INVALID', `oidc(): ${problem}`)
}
