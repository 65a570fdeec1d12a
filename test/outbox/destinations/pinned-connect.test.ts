import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import type { AddressInfo, Socket } from 'node:net'
import type { buildConnector } from 'undici'
import { describe, expect, it } from 'vitest'
import {
  AddressRefused,
  judgedAddresses,
  pinnedConnector,
  type Resolve,
} from '../../../src/outbox/destinations/pinned-connect.ts'
import { http } from '../../../src/outbox/destinations/http.ts'
import { callWith } from './outgoing.ts'
import { answers, startServer } from './scripted-server.ts'
import { testCertificate } from './test-certificate.ts'

/** A connector that opens nothing and notes where it was sent; the addresses of `dead` fail. */
function noting(dead: readonly string[] = []): {
  readonly build: typeof buildConnector
  readonly targets: buildConnector.Options[]
} {
  const targets: buildConnector.Options[] = []
  const connect: buildConnector.connector = (target, callback) => {
    targets.push(target)
    if (dead.includes(target.hostname)) callback(new Error('dead'), null)
    else callback(null, {} as Socket)
  }
  return { build: (() => connect) as unknown as typeof buildConnector, targets }
}

/** A resolver that gives its answers one after the other, then the last one again. */
function changing(...rounds: readonly (readonly string[])[]): {
  resolve: Resolve
  asked: string[]
} {
  const asked: string[] = []
  const resolve: Resolve = (hostname) => {
    asked.push(hostname)
    return Promise.resolve(rounds[Math.min(asked.length, rounds.length) - 1] ?? [])
  }
  return { resolve, asked }
}

function open(connector: buildConnector.connector, hostname: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    connector(
      { hostname, host: hostname, protocol: 'https:', port: '443' },
      (...[error, socket]) => (error === null ? resolve(socket) : reject(error)),
    )
  })
}

const options = { isListed: false, timeoutMs: 1000, ca: undefined }

describe('pinnedConnector', () => {
  it('connects to the address that was judged and keeps the name for the certificate', async () => {
    const { build, targets } = noting()
    const { resolve, asked } = changing(['93.184.216.34'], ['127.0.0.1'])
    await open(pinnedConnector(build, { ...options, resolve }), 'rebind.example')
    expect(asked).toEqual(['rebind.example'])
    expect(targets.map((target) => [target.hostname, target.host])).toEqual([
      ['93.184.216.34', 'rebind.example'],
    ])
  })

  it('judges anew at every connection, so that a name that moved to this machine is refused', async () => {
    const { build, targets } = noting()
    const { resolve } = changing(['93.184.216.34'], ['127.0.0.1'])
    const connector = pinnedConnector(build, { ...options, resolve })
    await open(connector, 'rebind.example')
    await expect(open(connector, 'rebind.example')).rejects.toBeInstanceOf(AddressRefused)
    expect(targets).toHaveLength(1)
  })

  it('refuses a name of which any address is refused, wherever it stands', async () => {
    const { build, targets } = noting()
    for (const mixed of [
      ['93.184.216.34', '10.0.0.1'],
      ['10.0.0.1', '93.184.216.34'],
      ['2606:4700::1', '::ffff:127.0.0.1'],
    ]) {
      const { resolve } = changing(mixed)
      const connector = pinnedConnector(build, { ...options, resolve })
      await expect(open(connector, 'mixed.example')).rejects.toThrow(/list the host in allow/)
    }
    expect(targets).toEqual([])
  })

  it('judges literal addresses too, which no resolver ever sees', async () => {
    const { build } = noting()
    const { resolve, asked } = changing(['93.184.216.34'])
    const connector = pinnedConnector(build, { ...options, resolve })
    for (const literal of ['127.0.0.1', '::1', '64:ff9b::7f00:1', '169.254.169.254']) {
      await expect(open(connector, literal)).rejects.toBeInstanceOf(AddressRefused)
    }
    expect(asked).toEqual([])
  })

  it('goes on to the next address when one does not answer', async () => {
    const { build, targets } = noting(['93.184.216.34'])
    const { resolve } = changing(['93.184.216.34', '93.184.216.35'])
    await open(pinnedConnector(build, { ...options, resolve }), 'two.example')
    expect(targets.map((target) => target.hostname)).toEqual(['93.184.216.34', '93.184.216.35'])
  })

  it('asks a resolver that hangs once, for all connections that wait for it', async () => {
    const { build, targets } = noting()
    let answer: (addresses: readonly string[]) => void = () => undefined
    let asked = 0
    const resolve: Resolve = () => {
      asked++
      return new Promise((settle) => (answer = settle))
    }
    const connector = pinnedConnector(build, { ...options, resolve })
    const opening = [1, 2, 3].map(() => open(connector, 'slow.example'))
    answer(['93.184.216.34'])
    await Promise.all(opening)
    expect([asked, targets.length]).toEqual([1, 3])
    const later = open(connector, 'slow.example')
    answer(['127.0.0.1'])
    await expect(later).rejects.toBeInstanceOf(AddressRefused)
    expect(asked).toBe(2)
  })

  it('tries a few addresses of a name that has many, and judges all of them', async () => {
    const many = Array.from({ length: 60 }, (_, at) => `93.184.216.${at + 1}`)
    const { build, targets } = noting(many)
    const dead = pinnedConnector(build, { ...options, resolve: () => Promise.resolve(many) })
    await expect(open(dead, 'many.example')).rejects.toThrow('dead')
    expect(targets).toHaveLength(4)
    const { resolve } = changing([...many, '10.0.0.1'])
    const mixed = pinnedConnector(build, { ...options, resolve })
    await expect(open(mixed, 'many.example')).rejects.toBeInstanceOf(AddressRefused)
  })

  it('judges nothing where a person listed the host', async () => {
    const { resolve } = changing(['10.0.0.1'])
    await expect(judgedAddresses('mail.internal', { isListed: true, resolve })).resolves.toEqual([
      '10.0.0.1',
    ])
  })

  it('fails for a name without an address', async () => {
    const { resolve } = changing([])
    await expect(judgedAddresses('none.example', { isListed: false, resolve })).rejects.toThrow(
      /no address/,
    )
  })
})

describe('http() over pinned connections', () => {
  it('opens no connection to a name that leads to this machine, and says so', async () => {
    await using server = await startServer()
    const destination = http(
      { url: `https://rebind.example:${server.port}/`, ports: [server.port] },
      { resolve: () => Promise.resolve(['127.0.0.1']) },
    )
    const outcome = await callWith(destination, { a: 1 })
    expect(outcome).toEqual({
      kind: 'retry',
      error: expect.stringMatching(/rebind\.example leads to 127\.0\.0\.1 \(loopback/) as string,
    })
    expect(server.connections().accepted).toBe(0)
    await destination.close?.()
  })

  it('keeps connections to the judged address and asks the resolver once for each', async () => {
    await using server = await startServer()
    const { resolve, asked } = changing(['127.0.0.1'], ['127.0.0.2'])
    const destination = http(
      { url: `http://mail.internal:${server.port}/`, allow: ['mail.internal'] },
      { resolve },
    )
    for (let round = 0; round < 3; round++) {
      expect(await callWith(destination, { round })).toMatchObject({ kind: 'sent' })
    }
    expect(asked).toEqual(['mail.internal'])
    expect(server.seen.map((request) => request.connection)).toEqual([1, 1, 1])
    expect(server.seen[0]?.headers.host).toBe(`mail.internal:${server.port}`)
    await destination.close?.()
  })

  it('does not follow a redirect to an internal address', async () => {
    await using inner = await startServer()
    await using server = await startServer(answers(307, '', { location: `${inner.url}/steal` }))
    const destination = http({ url: server.url, allow: [server.host] })
    expect(await callWith(destination, { a: 1 })).toMatchObject({
      kind: 'refused',
      status: 307,
      settlesEarlier: false,
      error: expect.stringContaining('redirect is not followed') as string,
    })
    expect(inner.connections().accepted).toBe(0)
    await destination.close?.()
  })
})

describe('TLS to a pinned address', () => {
  async function startTls(): Promise<{ port: number; names: unknown[]; close: () => void }> {
    const names: unknown[] = []
    const open = new Set<TLSSocket>()
    const server = createTlsServer(testCertificate, (socket) => {
      names.push((socket as TLSSocket & { servername?: unknown }).servername)
      open.add(socket)
      socket.on('error', () => undefined)
      socket.on('data', () => socket.write('HTTP/1.1 204 No Content\r\n\r\n'))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const close = (): void => {
      server.close()
      for (const socket of open) socket.destroy()
    }
    return { port: (server.address() as AddressInfo).port, names, close }
  }
  const resolve: Resolve = () => Promise.resolve(['127.0.0.1'])

  it('asks for the name, and proves the name and not the address', async () => {
    const server = await startTls()
    const destination = http(
      {
        url: `https://mail.example.test:${server.port}/`,
        allow: ['mail.example.test'],
        ca: testCertificate.cert,
      },
      { resolve },
    )
    expect(await callWith(destination, { a: 1 })).toMatchObject({ kind: 'sent', status: 204 })
    expect(server.names).toEqual(['mail.example.test'])
    await destination.close?.()
    server.close()
  })

  it.each([
    ['is for another name', 'other.example.test', testCertificate.cert],
    ['is signed by nobody known', 'mail.example.test', undefined],
  ])('sends nothing to a server whose certificate %s', async (_, name, ca) => {
    const server = await startTls()
    const destination = http(
      { url: `https://${name}:${server.port}/`, allow: [name], ca },
      { resolve },
    )
    expect(await callWith(destination, { a: 1 })).toMatchObject({ kind: 'retry' })
    expect(server.names).toHaveLength(0)
    await destination.close?.()
    server.close()
  })
})
