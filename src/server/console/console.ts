/**
 * The console: its page, its API and the way in, mounted below any prefix of an app or of the stand-alone
 * server. Without somebody who says who may come in it is not made at all.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { Door } from '../../api/door.ts'
import { createApi } from '../../api/handler.ts'
import { routesBelow } from '../../api/routes.ts'
import type { Authorize, SignIn } from '../../compose/console-options.ts'
import type { HookledgerParts } from '../../compose/parts.ts'
import { HookledgerError } from '../../core/errors.ts'
import { partsOf, type Hookledger } from '../../hookledger.ts'
import type { Database } from '../../postgres/executor.ts'
import { appDoor } from './app-door.ts'
import { localDoor } from './local-door.ts'
import { createOidcFlow, type OidcFlow } from './oidc.ts'
import { consolePage } from './page.ts'
import { sessionDoor } from './session-door.ts'
import { createSessions } from './sessions.ts'

/** A mounted console. */
export interface Console {
  /** Answers whatever is below its prefix; anything else 404. Never rejects. */
  fetch(request: Request): Promise<Response>
  /**
   * The same for `node:http` and Express: calls `next` for what is not the console's; without it that is 404.
   *
   * @example app.use(ops.node)
   */
  readonly node: (
    request: IncomingMessage,
    response: ServerResponse,
    next?: (error?: unknown) => void,
  ) => void
  /** Whether a path is the console's. */
  isOwn(path: string): boolean
}

/** How a console is mounted. */
export interface ConsoleMountOptions {
  /** Where: the page is at `{prefix}/console`, the API at `{prefix}/api`. Default: the root. */
  readonly prefix?: string | undefined
  /** Who asks; in the place of what the configuration says. */
  readonly authorize?: Authorize | undefined
}

/**
 * Mounts the console in an app of your own.
 *
 * @throws HookledgerError HKL_CONSOLE_OPEN where nothing says who may come in, HKL_CONFIG_INVALID
 * @example
 * const ops = createConsole(hookledger, { prefix: '/ops', authorize: async (request) => {
 *   const user = await userOf(request)
 *   return user?.isStaff ? { actor: user.email, roles: ['operator'] } : null
 * } })
 * app.all('/ops/*', (c) => ops.fetch(c.req.raw))
 */
export function createConsole(hookledger: Hookledger, options: ConsoleMountOptions = {}): Console {
  return mountConsole(partsOf(hookledger), options)
}

/** As `createConsole`; `isLocal`: only this machine can reach it, and whoever is on it may do everything. */
export function mountConsole(
  parts: HookledgerParts,
  { prefix = '', authorize, isLocal = false }: ConsoleMountOptions & { readonly isLocal?: boolean },
): Console {
  if (prefix !== '' && !/^(\/[A-Za-z0-9._~-]+)+$/.test(prefix))
    throw invalid('prefix must be a path without an end: /ops')
  const { door, flow } = doorOf(parts, prefix, authorize, isLocal)
  const api = createApi({ parts, door, routes: routesBelow(prefix) })
  const page = consolePage(prefix)
  const isOwn = (path: string): boolean =>
    ['/console', '/api'].some(
      (own) => path === `${prefix}${own}` || path.startsWith(`${prefix}${own}/`),
    )
  const fetch = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url)
    if (!isOwn(pathname)) return new Response('not found', { status: 404 })
    const path = pathname.slice(prefix.length)
    if (path === '/api' || path.startsWith('/api/')) return api(below(request, prefix))
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return new Response('only GET', { status: 405, headers: { allow: 'GET, HEAD' } })
    const name = path.slice('/console/'.length)
    if (flow !== null && name === 'auth/begin') return orFailed(() => flow.begin(), prefix)
    if (flow !== null && name === 'auth/done') return orFailed(() => flow.finish(request), prefix)
    return page.answer(name)
  }
  const listener = getRequestListener(fetch, { overrideGlobalObjects: false })
  return {
    fetch,
    isOwn,
    node(request, response, next) {
      // Express cuts what it is mounted below from `url`
      const { originalUrl = request.url ?? '/' } = request as { originalUrl?: string }
      const path = originalUrl.split('?')[0] ?? '/'
      if (next !== undefined && !isOwn(path)) {
        next()
        return
      }
      request.url = originalUrl
      void listener(request, response)
    },
  }
}

/** The same request as it would be without the prefix. */
function below(request: Request, prefix: string): Request {
  if (prefix === '') return request
  const url = new URL(request.url)
  url.pathname = url.pathname.slice(prefix.length)
  return new Request(url, request)
}

async function orFailed(work: () => Promise<Response>, prefix: string): Promise<Response> {
  try {
    return await work()
  } catch {
    return new Response(null, {
      status: 303,
      headers: { location: `${prefix}/console?sign_in=failed`, 'cache-control': 'no-store' },
    })
  }
}

function doorOf(
  parts: HookledgerParts,
  prefix: string,
  authorize: Authorize | undefined,
  isLocal: boolean,
): { readonly door: Door; readonly flow: OidcFlow | null } {
  const { console: settings } = parts.config
  const asking = authorize ?? settings.authorize
  if (asking !== null) {
    const { publicUrl } = settings
    const secret = secretOf(() => parts.database())
    return {
      door: appDoor({ authorize: asking, publicUrl, secret, signals: parts.signals }),
      flow: null,
    }
  }
  if (settings.signIn !== null) return signedIn(parts, prefix, settings.signIn)
  if (isLocal) return { door: localDoor(), flow: null }
  throw new HookledgerError(
    'HKL_CONSOLE_OPEN',
    'the console would be open to anybody: set console.signIn or console.authorize, listen on 127.0.0.1, or leave console out of --roles',
  )
}

/** The installation's secret of the console, asked for once. */
function secretOf(db: () => Database): () => Promise<Uint8Array> {
  let known: Promise<Uint8Array> | undefined
  const ask = async (): Promise<Uint8Array> => {
    const [row] = await db().query<{ readonly secret: string }>({
      text: `select encode(${db().schema}console_secret(), 'hex') as secret`,
    })
    return Buffer.from(row?.secret ?? '', 'hex')
  }
  return () => {
    known ??= ask().catch((error: unknown) => {
      known = undefined
      throw error
    })
    return known
  }
}

function signedIn(
  parts: HookledgerParts,
  prefix: string,
  signIn: SignIn,
): { readonly door: Door; readonly flow: OidcFlow } {
  const { publicUrl, idleMs, sessionMs } = parts.config.console
  if (publicUrl === null)
    throw invalid(
      'publicUrl is missing: the provider of identities must know where to send people back to',
    )
  const isSecure = publicUrl.startsWith('https:')
  if (!isSecure && !['localhost', '127.0.0.1'].includes(new URL(publicUrl).hostname))
    throw invalid('publicUrl must be https: sessions over http can be read by anybody on the way')
  const sessions = createSessions(() => parts.database(), { idleMs, sessionMs })
  const session = { isSecure, name: 'hookledger-session', sameSite: 'Strict' } as const
  const home = `${prefix}/console`
  const flow = createOidcFlow({
    db: () => parts.database(),
    signIn,
    sessions,
    redirectUri: `${publicUrl}${home}/auth/done`,
    home,
    session,
    sessionSeconds: sessionMs / 1000,
    signals: parts.signals,
  })
  const signInPath = '/console/auth/begin'
  return { door: sessionDoor(sessions, session, { signInPath, origin: publicUrl }), flow }
}

function invalid(problem: string): HookledgerError {
  return new HookledgerError('HKL_CONFIG_INVALID', `console: ${problem}`)
}
