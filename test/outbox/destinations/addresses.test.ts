import { describe, expect, it } from 'vitest'
import { addressBytes, refusedAddress } from '../../../src/outbox/destinations/addresses.ts'

const refused: readonly (readonly [address: string, why: RegExp])[] = [
  ['0.0.0.0', /this network/],
  ['0.255.255.255', /this network/],
  ['10.0.0.1', /private/],
  ['10.255.255.255', /private/],
  ['100.64.0.0', /carrier-grade NAT/],
  ['100.127.255.255', /carrier-grade NAT/],
  ['127.0.0.1', /loopback/],
  ['127.255.255.254', /loopback/],
  ['169.254.169.254', /link-local/],
  ['172.16.0.0', /private/],
  ['172.31.255.255', /private/],
  ['192.0.0.8', /reserved for protocols/],
  ['192.0.2.1', /documentation/],
  ['192.88.99.1', /6to4 relay/],
  ['192.168.1.1', /private/],
  ['198.18.0.1', /benchmarking/],
  ['198.19.255.255', /benchmarking/],
  ['198.51.100.7', /documentation/],
  ['203.0.113.7', /documentation/],
  ['224.0.0.1', /multicast/],
  ['239.255.255.255', /multicast/],
  ['240.0.0.1', /reserved/],
  ['255.255.255.255', /broadcast/],
  ['::', /unspecified/],
  ['::1', /loopback/],
  ['::127.0.0.1', /IPv4-compatible/],
  ['::8.8.8.8', /IPv4-compatible/],
  ['::ffff:127.0.0.1', /IPv4-mapped/],
  ['::ffff:8.8.8.8', /IPv4-mapped/],
  ['::ffff:7f00:1', /IPv4-mapped/],
  ['::ffff:0:10.0.0.1', /IPv4-translated/],
  ['64:ff9b::7f00:1', /NAT64/],
  ['64:ff9b::8.8.8.8', /NAT64/],
  ['64:ff9b:1::a00:1', /local NAT64/],
  ['64:ff9b:1:ffff::1', /local NAT64/],
  ['100::1', /discard-only/],
  ['2001::1', /Teredo/],
  ['2001:0:53aa:64c:0:0:80ff:fffe', /Teredo/],
  ['2001:2::1', /benchmarking/],
  ['2001:10::1', /reserved for protocols/],
  ['2001:db8::1', /documentation/],
  ['2002:7f00:1::', /6to4/],
  ['2002:808:808::1', /6to4/],
  ['3ffe::1', /returned/],
  ['3fff:0fff::1', /documentation/],
  ['fc00::1', /unique local/],
  ['fd12:3456:789a::1', /unique local/],
  ['fe80::1', /link-local/],
  ['febf::1', /link-local/],
  ['fe80::1%eth0', /bound to an interface/],
  ['fec0::1', /site-local/],
  ['ff02::1', /multicast/],
  ['1::1', /outside of 2000::\/3/],
  ['4000::1', /outside of 2000::\/3/],
  ['5f00::1', /outside of 2000::\/3/],
  ['not an address', /not an address/],
  ['', /not an address/],
  ['1.2.3', /not an address/],
  ['01.2.3.4', /not an address/],
  ['1.2.3.4.5', /not an address/],
]

const permitted = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '169.253.255.255',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '192.167.255.255',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '2000::1',
  '2001:200::1',
  '2001:4860:4860::8888',
  '2606:4700:4700::1111',
  '2a00:1450:4001:82a::200e',
  '3ffd:ffff::1',
  '3fff:1000::1',
]

describe('refusedAddress', () => {
  it.each(refused)('refuses %s', (address, why) => {
    expect(refusedAddress(address)).toMatch(why)
  })

  it.each(permitted)('permits %s', (address) => {
    expect(refusedAddress(address)).toBeUndefined()
  })
})

describe('addressBytes', () => {
  it('reads every way of writing an address as the same bytes', () => {
    const full = addressBytes('2001:0db8:0000:0000:0000:ff00:0042:8329')
    expect(full).toHaveLength(16)
    for (const text of ['2001:db8::ff00:42:8329', '2001:DB8:0:0::FF00:42:8329']) {
      expect(addressBytes(text)).toEqual(full)
    }
    expect(addressBytes('::ffff:1.2.3.4')).toEqual(addressBytes('::ffff:102:304'))
    expect(addressBytes('::')).toEqual(new Uint8Array(16))
    expect(addressBytes('1:2:3:4:5:6:7::')).toEqual(addressBytes('1:2:3:4:5:6:7:0'))
  })
})
