/** A provider of identities of a test's own, which signs in whoever the test says, and a browser for it. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider, { type Context } from 'oidc-provider'

/** Claims of somebody. */
export type Person = Readonly<Record<string, unknown>>

/** A provider of identities. */
export interface IdentityProvider {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** Who signs in next; null: they refuse. */
  person: Person | null
  stop(): Promise<void>
}

/** Starts one that sends people back to `redirectUri`. */
export async function startIdentityProvider(redirectUri: string): Promise<IdentityProvider> {
  const people = new Map<string, Person>()
  const started: { provider?: Provider } = {}
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/interaction/') !== true) {
      started.provider?.callback()(request, response)
      return
    }
    const { person } = own
    if (person !== null) people.set(String(person['sub']), person)
    const result =
      person === null
        ? { error: 'access_denied', error_description: 'they refused' }
        : { login: { accountId: String(person['sub']) } }
    void started.provider?.interactionFinished(request, response, result)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const own: IdentityProvider = {
    issuer,
    clientId: 'console',
    clientSecret: 'a-secret-of-the-console-and-of-nobody-else',
    person: null,
    stop: () => stopped(server),
  }
  started.provider = new Provider(issuer, {
    clients: [
      {
        client_id: own.clientId,
        client_secret: own.clientSecret,
        redirect_uris: [redirectUri],
        token_endpoint_auth_method: 'client_secret_post',
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    scopes: ['openid'],
    claims: {
      openid: ['sub'],
      profile: ['name'],
      email: ['email', 'email_verified'],
      groups: ['groups'],
    },
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    cookies: { keys: ['a key of the tests'] },
    ttl: {
      AccessToken: 60,
      AuthorizationCode: 60,
      IdToken: 60,
      Interaction: 60,
      Session: 60,
      Grant: 60,
    },
    interactions: {
      url: (_: unknown, { uid }: { readonly uid: string }) => `/interaction/${uid}`,
    },
    findAccount: (_: unknown, id: string) => ({
      accountId: id,
      claims: async () => ({ ...people.get(id), sub: id }),
    }),
    async loadExistingGrant({ oidc }: Context) {
      const { clientId } = oidc.client
      const grant = new oidc.provider.Grant({ clientId, accountId: oidc.session.accountId })
      grant.addOIDCScope('openid profile email groups')
      await grant.save()
      return grant
    },
  })
  return own
}

async function stopped(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

/** Keeps cookies by origin and follows redirects one by one, as a browser does. */
export class TestBrowser {
  readonly #console: { fetch(request: Request): Promise<Response> }
  readonly #origin: string
  readonly #cookies = new Map<string, Map<string, string>>()
  /** Every `set-cookie` of the console. */
  readonly given: string[] = []

  constructor(console: { fetch(request: Request): Promise<Response> }, origin: string) {
    this.#console = console
    this.#origin = origin
  }

  /** The value of a cookie of the console. */
  cookie(name: string): string | undefined {
    return this.#jar(this.#origin).get(name)
  }

  /** Makes the browser hold another value. */
  hold(name: string, value: string): void {
    this.#jar(this.#origin).set(name, value)
  }

  /** One request, without following where it leads. */
  async ask(url: string, init: RequestInit = {}): Promise<Response> {
    const { origin } = new URL(url, this.#origin)
    const jar = this.#jar(origin)
    const headers = new Headers(init.headers)
    if (jar.size > 0)
      headers.set('cookie', [...jar].map(([name, value]) => `${name}=${value}`).join('; '))
    const request = new Request(new URL(url, this.#origin), {
      ...init,
      headers,
      redirect: 'manual',
    })
    const isOwn = origin === this.#origin
    const response = await (isOwn ? this.#console.fetch(request) : fetch(request))
    for (const text of response.headers.getSetCookie()) {
      if (isOwn) this.given.push(text)
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(text) ?? []
      if (value === '' || /max-age=0|expires=thu, 01 jan 1970/i.test(text)) jar.delete(name)
      else jar.set(name, value)
    }
    return response
  }

  /** Follows redirects from `url` until there is none, or `until` says to stop before a request. */
  async follow(url: string, until: (next: string) => boolean = () => false): Promise<string> {
    let next = new URL(url, this.#origin).href
    for (let steps = 0; steps < 12; steps += 1) {
      if (until(next)) return next
      const response = await this.ask(next)
      const location = response.headers.get('location')
      await response.arrayBuffer()
      if (location === null) return next
      next = new URL(location, next).href
    }
    throw new Error(`redirected without an end: ${next}`)
  }

  /** The data of a GET of the console's API. */
  async get<Data>(path: string): Promise<Data> {
    return (await (await this.ask(path)).json()) as Data
  }

  #jar(origin: string): Map<string, string> {
    const jar = this.#cookies.get(origin) ?? new Map<string, string>()
    this.#cookies.set(origin, jar)
    return jar
  }
}
