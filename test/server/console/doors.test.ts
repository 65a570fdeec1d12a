import { describe, expect, it } from 'vitest'
import type { Authorize } from '../../../src/compose/console-options.ts'
import { createSignals } from '../../../src/core/signals.ts'
import { appDoor } from '../../../src/server/console/app-door.ts'
import { isLoopback, localDoor } from '../../../src/server/console/local-door.ts'

const asked = (headers: Readonly<Record<string, string>> = {}): Request =>
  new Request('http://127.0.0.1:4000/api/session', { headers })

describe('the door of this machine', () => {
  const { visitor } = localDoor()

  it.each([
    'localhost',
    'localhost:4000',
    '127.0.0.1',
    '127.0.0.1:4000',
    '[::1]:4000',
    'LOCALHOST:4000',
  ])(
    'takes whoever asks for %s for the user of this machine, who may do everything',
    async (host) => {
      const { identity, csrf } = await visitor(asked({ host }))
      expect(identity?.roles).toEqual(['admin'])
      expect(identity?.actor).not.toBe('')
      expect(csrf).toMatch(/^[\w-]{43}$/)
    },
  )

  it.each([
    'evil.test',
    'evil.test:4000',
    'localhost.evil.test',
    'localhost@evil.test',
    '127.0.0.1.nip.io:4000',
    '192.168.0.2:4000',
    '0.0.0.0:4000',
    'localhost:4000:4000',
    '[::2]:4000',
    '2130706433',
  ])('knows nobody who asks for %s: the name of a stranger may lead here', async (host) => {
    expect(await visitor(asked({ host }))).toEqual({ identity: null, csrf: null, session: null })
  })

  it.each(['x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'forwarded', 'via'])(
    'knows nobody who comes through a proxy (%s)',
    async (name) => {
      const { identity } = await visitor(asked({ host: 'localhost:4000', [name]: '127.0.0.1' }))
      expect(identity).toBeNull()
    },
  )

  it('has another token after every start', async () => {
    const host = 'localhost'
    const other = await localDoor().visitor(asked({ host }))
    expect((await visitor(asked({ host }))).csrf).not.toBe(other.csrf)
  })

  it.each([
    ['127.0.0.1', true],
    ['127.9.9.9', true],
    ['::1', true],
    ['localhost', true],
    ['0.0.0.0', false],
    ['::', false],
    ['10.0.0.1', false],
    ['128.0.0.1', false],
    ['localhost.example.com', false],
  ])('stands at %s: %s', (host, is) => {
    expect(isLoopback(host)).toBe(is)
  })
})

describe('the door of an app', () => {
  function door(authorize: unknown, secret = 'secret') {
    const signals = createSignals()
    const told: { outcome: string; reason: string }[] = []
    signals.on('console.sign_in.ended', (ended) => told.push(ended))
    const made = appDoor({
      authorize: authorize as Authorize,
      publicUrl: null,
      secret: async () => Buffer.from(secret),
      signals,
    })
    return { ...made, told }
  }
  const ada = { actor: 'ada', roles: ['viewer'] }

  it('takes the word of the app, at once or later', async () => {
    for (const authorize of [() => ada, async () => ada])
      expect((await door(authorize).visitor(asked())).identity).toEqual(ada)
    for (const authorize of [() => null, async () => undefined])
      expect((await door(authorize).visitor(asked())).identity).toBeNull()
  })

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('canary of a cookie')
      },
    ],
    ['rejects', () => Promise.reject(new Error('canary of a cookie'))],
    ['says true', () => true],
    ['says a name only', () => 'ada'],
    ['leaves the actor out', () => ({ roles: ['admin'] })],
    ['gives an empty actor', () => ({ actor: ' ', roles: ['admin'] })],
    ['gives an actor with a line break', () => ({ actor: 'ada\nbob', roles: ['admin'] })],
    ['gives an endless actor', () => ({ actor: 'a'.repeat(201), roles: ['admin'] })],
    ['gives no roles', () => ({ actor: 'ada' })],
    ['gives a role as a text', () => ({ actor: 'ada', roles: 'admin' })],
    ['gives a role that there is not', () => ({ actor: 'ada', roles: ['root'] })],
    ['gives a role of every object', () => ({ actor: 'ada', roles: ['constructor'] })],
  ])('knows nobody where the app %s, and tells the log without a secret', async (_, authorize) => {
    const { visitor, told } = door(authorize)
    expect(await visitor(asked())).toEqual({ identity: null, csrf: null, session: null })
    expect(told).toMatchObject([{ outcome: 'failed' }])
    expect(JSON.stringify(told)).not.toContain('canary')
  })

  it('gives the app the headers and no body, so that nothing of an act is gone', async () => {
    let seen: Request | undefined
    const request = new Request('http://localhost/api/grants', {
      method: 'POST',
      headers: { cookie: 'own=1' },
      body: '{"reason":"because"}',
    })
    await door((each: Request) => {
      seen = each
      return ada
    }).visitor(request)
    expect([seen?.headers.get('cookie'), await seen?.text()]).toEqual(['own=1', ''])
    expect(await request.text()).toBe('{"reason":"because"}')
  })

  it('gives tokens that only this installation and this person have', async () => {
    const token = async (actor: string, secret: string): Promise<string | null> =>
      (await door(() => ({ ...ada, actor }), secret).visitor(asked())).csrf
    expect(await token('ada', 'one')).toBe(await token('ada', 'one'))
    expect(await token('ada', 'one')).not.toBe(await token('bob', 'one'))
    expect(await token('ada', 'one')).not.toBe(await token('ada', 'two'))
  })
})
