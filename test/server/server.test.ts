import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { createSignals } from '../../src/core/signals.ts'
import { MeterBuffer, type MeterReadings } from '../../src/observe/meter-buffer.ts'
import { meterSignals } from '../../src/observe/meters.ts'
import { createMetrics } from '../../src/server/metrics.ts'
import { createHookledgerServer } from '../../src/server/server.ts'
import { openRaw, post, sendRaw } from '../http/raw-request.ts'
import { serve, stopServers } from './serve.ts'

afterEach(stopServers)

describe('routes', () => {
  it('takes deliveries at /webhooks/:source, whatever its query', async () => {
    const { url, received } = await serve()
    for (const path of ['/webhooks/stripe', '/webhooks/stripe?x=1']) {
      expect((await fetch(url + path, { method: 'POST', body: '{}' })).status).toBe(200)
    }
    expect(received.map(({ source }) => source)).toEqual(['stripe', 'stripe'])
  })

  it.each([
    ['/webhooks/nobody', 404],
    ['/webhooks/', 404],
    ['/webhooks', 404],
    ['/webhooks/stripe/', 404],
    ['/webhooks/stripe/x', 404],
    ['/webhooks//stripe', 404],
    ['/WEBHOOKS/stripe', 404],
    ['/webhooks/%73tripe', 404],
    ['/x/../webhooks/stripe', 404],
    ['/', 404],
  ])('does not take %s for an endpoint', async (path, status) => {
    const { port, received } = await serve()
    expect((await sendRaw(port, post(path, '{}'))).status).toBe(status)
    expect(received).toEqual([])
  })

  it.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])(
    'answers %s of an endpoint 405',
    async (method) => {
      const { port, received } = await serve()
      const answer = await sendRaw(port, `${method} /webhooks/stripe HTTP/1.1\r\nHost: a\r\n\r\n`, {
        timeoutMs: 300,
      })
      expect(answer.status).toBe(405)
      expect(answer.text).toMatch(/allow: POST/i)
      expect(received).toEqual([])
    },
  )

  it('leaves other paths to further routes', async () => {
    const { url } = await serve({
      routes: (_request, response, path) => {
        if (path !== '/console') return false
        response.end('hello')
        return true
      },
    })
    expect(await (await fetch(`${url}/console`)).text()).toBe('hello')
    expect((await fetch(`${url}/elsewhere`)).status).toBe(404)
  })

  it('tells nothing of what it runs on', async () => {
    const { url } = await serve()
    for (const path of ['/healthz', '/webhooks/stripe', '/nothing']) {
      const answer = await fetch(url + path)
      expect(answer.headers.get('server')).toBeNull()
      expect(answer.headers.get('x-powered-by')).toBeNull()
    }
  })
})

describe('health', () => {
  it('says that the process is up, whatever the database does', async () => {
    const { url } = await serve({ ready: () => Promise.reject(new Error('down')) })
    const answer = await fetch(`${url}/healthz`)
    expect([answer.status, await answer.text()]).toEqual([200, '{"status":"ok"}'])
  })

  it.each([
    ['yes', () => Promise.resolve(true), 200],
    ['no', () => Promise.resolve(false), 503],
    [
      'an error with a secret in it',
      () => Promise.reject(new Error('postgres://user:pw@host')),
      503,
    ],
  ])('is ready as the check says (%s), and says no more', async (_what, ready, status) => {
    const { url } = await serve({ ready })
    const answer = await fetch(`${url}/readyz`)
    expect(answer.status).toBe(status)
    expect(await answer.text()).toBe(`{"status":"${status === 200 ? 'ok' : 'unavailable'}"}`)
  })

  it('asks once, however many ask at the same time', async () => {
    let asked = 0
    const { url } = await serve({
      ready: async () => {
        asked++
        await new Promise((resolve) => setTimeout(resolve, 50))
        return true
      },
    })
    await Promise.all(Array.from({ length: 20 }, () => fetch(`${url}/readyz`)))
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    expect(asked).toBe(1)
  })

  it('is only read', async () => {
    const { url } = await serve({ metrics: () => Promise.resolve('') })
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      expect((await fetch(url + path, { method: 'POST', body: '{}' })).status).toBe(405)
      expect((await fetch(url + path, { method: 'HEAD' })).status).toBe(200)
    }
  })
})

describe('metrics', () => {
  it('counts what signals tell, with labels that nobody outside can make', async () => {
    const signals = createSignals()
    const backlog = {
      name: 'inbox_backlog',
      help: 'Unfinished events.',
      labels: ['state'],
      values: [{ labels: ['ready'], value: 7 }],
    }
    const metrics = createMetrics(signals, () => Promise.resolve([backlog]))
    const { url } = await serve({ metrics: () => metrics.render() })
    signals.emit('inbox.events.stored', { events: 3, duplicates: 2 })
    signals.emit('inbox.events.stored', { events: 1, duplicates: 0 })
    signals.emit('inbox.request.rejected', { source: 'a"b\\c\nd', reason: 'mismatch', status: 400 })
    const answer = await fetch(`${url}/metrics`)
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    const text = await answer.text()
    for (const line of [
      '# TYPE hookledger_inbox_duplicates_total counter',
      'hookledger_inbox_duplicates_total 2',
      'hookledger_inbox_events_stored_total 4',
      'hookledger_inbox_requests_rejected_total{source="a\\"b\\\\c\\nd",reason="mismatch",status="400"} 1',
      '# TYPE hookledger_inbox_backlog gauge',
      'hookledger_inbox_backlog{state="ready"} 7',
      'hookledger_gauges_up 1',
      'hookledger_inbox_retries_total 0',
    ]) {
      expect(text.split('\n')).toContain(line)
    }
  })

  it('renders counters when gauges cannot be read, and counts no more after stop', async () => {
    const signals = createSignals()
    const metrics = createMetrics(signals, () => Promise.reject(new Error('down')))
    signals.emit('inbox.events.stored', { events: 1, duplicates: 0 })
    metrics.stop()
    signals.emit('inbox.events.stored', { events: 1, duplicates: 0 })
    const text = await metrics.render()
    expect(text).toContain('hookledger_inbox_events_stored_total 1\n')
    expect(text).toContain('hookledger_gauges_up 0\n')
  })

  it('adds what a worker counted, and takes nothing back when the next one begins at zero', async () => {
    const metrics = createMetrics(createSignals())
    for (let worker = 0; worker < 2; worker++) {
      const signals = createSignals()
      const buffer = new MeterBuffer()
      meterSignals(signals, buffer)
      signals.emit('inbox.events.retried', { events: 3 })
      signals.emit('inbox.batch.finished', { events: 10, durationMs: 20 })
      const readings = JSON.parse(JSON.stringify(buffer.take())) as MeterReadings
      metrics.add(readings)
      expect(buffer.take()).toBeNull()
    }
    const text = await metrics.render()
    expect(text).toContain('hookledger_inbox_retries_total 6\n')
    expect(text).toContain('hookledger_process_duration_seconds_bucket{le="0.01"} 0\n')
    expect(text).toContain('hookledger_process_duration_seconds_bucket{le="0.025"} 2\n')
    expect(text).toContain('hookledger_process_duration_seconds_count 2\n')
  })

  it('do not exist where none are given', async () => {
    const { url } = await serve()
    expect((await fetch(`${url}/metrics`)).status).toBe(404)
  })
})

describe('listen', () => {
  const unheard = (): ReturnType<typeof createHookledgerServer> =>
    createHookledgerServer({
      ingest: () => Promise.resolve({ status: 200 }),
      limits: { bodyBytes: 1, headerBytes: 16_384, requestTimeoutMs: 1000 },
      ready: () => Promise.resolve(true),
    })

  it('says that the port is in use, and how to choose another', async () => {
    const { port } = await serve()
    await expect(unheard().listen(port, '127.0.0.1')).rejects.toMatchObject({
      code: 'HKL_SERVER_IN_USE',
      message: expect.stringContaining('PORT') as string,
    })
  })

  it.each(['192.0.2.1', 'no-such-host.invalid'])(
    'says that %s is no address to listen on, and names HOST',
    async (host) => {
      await expect(unheard().listen(0, host)).rejects.toMatchObject({
        code: 'HKL_CONFIG_INVALID',
        message: expect.stringContaining(
          `HOST must be an address of this machine, not "${host}"`,
        ) as string,
      })
    },
  )
})

describe('stop', () => {
  it('finishes what is in hand, tells keep-alive senders to go, and takes nothing new', async () => {
    let open = (): void => {}
    const opened = new Promise<void>((resolve) => {
      open = resolve
    })
    let asked = 0
    const { server, port, url } = await serve({
      ingest: async () => {
        asked++
        await opened
        return { status: 200 }
      },
    })
    const idle = await openRaw(port)
    const idleClosed = once(idle, 'close')
    const inHand = sendRaw(port, post('/webhooks/stripe', '{}'))
    while (asked === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    const stopped = server.stop(5000)
    await idleClosed
    await expect(fetch(`${url}/healthz`)).rejects.toThrow()
    open()
    const answer = await inHand
    expect(answer.status).toBe(200)
    expect(answer.text).toMatch(/connection: close/i)
    await stopped
  })

  it('cuts what does not finish in time', async () => {
    const { server, port } = await serve({ ingest: () => new Promise(() => {}) })
    const inHand = sendRaw(port, post('/webhooks/stripe', '{}'))
    await new Promise((resolve) => setTimeout(resolve, 100))
    await server.stop(100)
    expect((await inHand).status).toBe(0)
  })

  it('can be asked for twice, and before the server listened', async () => {
    const { server } = await serve()
    await Promise.all([server.stop(100), server.stop(100)])
    const never = createHookledgerServer({
      ingest: () => Promise.resolve({ status: 200 }),
      limits: { bodyBytes: 1, headerBytes: 16_384, requestTimeoutMs: 1000 },
      ready: () => Promise.resolve(true),
    })
    await never.stop()
  })
})
