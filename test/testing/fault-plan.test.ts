import { once } from 'node:events'
import { connect, createServer, Socket, type AddressInfo, type Server } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { reach, type Step } from '../../src/core/failpoints.ts'
import {
  installFaultPlan,
  installFaultPlanOf,
  parseFaultPlan,
  type InstalledFaults,
} from '../../src/testing/fault-plan.ts'

let installed: InstalledFaults | null = null
const open: (Server | Socket)[] = []

afterEach(() => {
  installed?.uninstall()
  installed = null
  for (const each of open.splice(0)) {
    if ('destroy' in each) each.destroy()
    else each.close()
  }
})

const install = (text: string, options?: Parameters<typeof installFaultPlan>[1]): void => {
  installed = installFaultPlan(parseFaultPlan(text), options)
}

describe('parseFaultPlan', () => {
  it('reads one fault or several', () => {
    expect(parseFaultPlan('W3:1:kill, R10:2:delay:750')).toEqual([
      { step: 'W3', nth: 1, action: 'kill', delayMs: 300 },
      { step: 'R10', nth: 2, action: 'delay', delayMs: 750 },
    ])
  })

  it.each([
    '',
    'W8:1:kill',
    'R11:1:kill',
    'W3:0:kill',
    'W3:1:explode',
    'W3:1',
    'W3:x:kill',
    'W3:1:kill:1:2',
    'D7:1:kill',
  ])('refuses "%s" in one line', (text) => {
    expect(() => parseFaultPlan(text)).toThrow(
      expect.objectContaining({
        code: 'HKL_CONFIG_INVALID',
        message: expect.stringContaining('HOOKLEDGER_FAULT_PLAN') as unknown,
      }),
    )
  })
})

describe('installFaultPlanOf', () => {
  it('installs nothing without the variable, or with an empty one', () => {
    expect(installFaultPlanOf({})).toBeNull()
    expect(installFaultPlanOf({ HOOKLEDGER_FAULT_PLAN: '' })).toBeNull()
    expect(reach('W3')).toBeUndefined()
  })

  it('installs what the variable says', () => {
    installed = installFaultPlanOf({ HOOKLEDGER_FAULT_PLAN: 'W3:1:throw' })
    expect(() => reach('W3')).toThrow('planned fault at W3')
  })
})

describe('an installed plan', () => {
  it('strikes the nth time and only then', () => {
    install('W3:2:throw')
    expect(reach('W3')).toBeUndefined()
    expect(() => reach('W3')).toThrow()
    expect(reach('W3')).toBeUndefined()
    expect(installed?.reached('W3')).toBe(3)
    expect(reach('W4')).toBeUndefined()
  })

  it('tells what is about to happen', () => {
    const told: Step[] = []
    install('W1:1:throw', { told: ({ step }) => void told.push(step) })
    expect(() => reach('W1')).toThrow()
    expect(told).toEqual(['W1'])
  })

  it('waits for a delay', async () => {
    install('W1:1:delay:30')
    const started = performance.now()
    await reach('W1')
    expect(performance.now() - started).toBeGreaterThanOrEqual(25)
  })

  it('resets connections to the database, and no others', async () => {
    const [database, other] = [await listen(), await listen()]
    install('W1:1:dbreset', { databasePort: database.port })
    const [reset, spared] = [await dial(database.port), await dial(other.port)]
    const closed = once(reset, 'close')
    await reach('W1')
    await closed
    expect(spared.destroyed).toBe(false)
  })

  it('resets connections of drivers that make their sockets by themselves, as pg does', async () => {
    const database = await listen()
    install('W1:1:dbreset', { databasePort: database.port })
    const reset = new Socket()
    reset.on('error', () => {})
    const closed = once(reset, 'close')
    reset.connect(database.port, '127.0.0.1')
    await once(reset, 'connect')
    await reach('W1')
    await closed
    expect(reset.destroyed).toBe(true)
  })

  it('stops reading connections to the database', async () => {
    const database = await listen()
    install('W1:1:dbhole', { databasePort: database.port })
    const socket = await dial(database.port)
    let heard = 0
    socket.on('data', () => heard++)
    await reach('W1')
    database.say('anybody there?')
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(heard).toBe(0)
    socket.resume()
    await once(socket, 'data')
    expect(heard).toBe(1)
  })
})

async function listen(): Promise<{ port: number; say(text: string): void }> {
  const clients: Socket[] = []
  const server = createServer((client) => {
    client.on('error', () => {})
    clients.push(client)
    open.push(client)
  })
  open.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    say: (text) => clients.forEach((client) => client.write(text)),
  }
}

async function dial(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  open.push(socket)
  await once(socket, 'connect')
  return socket
}
