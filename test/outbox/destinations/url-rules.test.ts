import { describe, expect, it } from 'vitest'
import { checkUrl } from '../../../src/outbox/destinations/url-rules.ts'

const refused: readonly (readonly [url: string, why: RegExp])[] = [
  // in clear, or something else than HTTP
  ['http://example.com/', /not https/],
  ['ftp://example.com/', /must begin with https/],
  ['file:///etc/passwd', /must begin with https/],
  ['gopher://example.com/', /must begin with https/],
  ['data:text/plain,x', /must begin with https/],
  ['javascript:alert(1)', /must begin with https/],
  ['ws://example.com/', /must begin with https/],
  ['example.com', /is not a URL/],
  ['//example.com/', /is not a URL/],
  ['https://', /is not a URL/],
  ['https://exa mple.com/', /is not a URL/],
  ['https://example.com:99999/', /is not a URL/],
  ['https://[::1/', /is not a URL/],
  ['https://256.256.256.256/', /is not a URL/],
  // something hidden in it
  ['https://user@example.com/', /user name or password/],
  ['https://user:pass@example.com/', /user name or password/],
  ['https://:pass@example.com/', /user name or password/],
  ['https://example.com@127.0.0.1/', /user name or password/],
  ['https://example.com/#@127.0.0.1', /fragment/],
  // other ports
  ['https://example.com:22/', /port 22/],
  ['https://example.com:25/', /port 25/],
  ['https://example.com:80/', /port 80/],
  ['https://example.com:6379/', /port 6379/],
  ['https://example.com:8443/', /port 8443/],
  // this machine and its neighbors, by name and by number
  ['https://localhost/', /this machine/],
  ['https://LOCALHOST/', /this machine/],
  ['https://localhost./', /this machine/],
  ['https://app.localhost/', /this machine/],
  ['https://127.0.0.1/', /loopback/],
  ['https://127.1/', /loopback/],
  ['https://127.0.1/', /loopback/],
  ['https://0x7f.1/', /loopback/],
  ['https://0x7f000001/', /loopback/],
  ['https://0177.0.0.1/', /loopback/],
  ['https://017700000001/', /loopback/],
  ['https://2130706433/', /loopback/],
  ['https://①②⑦.⓪.⓪.①/', /loopback/],
  ['https://127。0。0。1/', /loopback/],
  ['https://127.0.0.1./', /loopback/],
  ['https://%31%32%37.0.0.1/', /loopback/],
  ['https://0/', /this network/],
  ['https://0.0.0.0/', /this network/],
  ['https://10.1.2.3/', /private/],
  ['https://0xa.1.2.3/', /private/],
  ['https://172.20.0.1/', /private/],
  ['https://192.168.0.1/', /private/],
  ['https://3232235521/', /private/],
  ['https://100.100.100.200/', /carrier-grade NAT/],
  ['https://169.254.169.254/latest/meta-data/', /link-local/],
  ['https://0xa9fea9fe/', /link-local/],
  ['https://2852039166/', /link-local/],
  ['https://224.0.0.1/', /multicast/],
  ['https://255.255.255.255/', /broadcast/],
  ['https://192.0.2.1/', /documentation/],
  ['https://198.18.0.1/', /benchmarking/],
  ['https://[::]/', /unspecified/],
  ['https://[::1]/', /loopback/],
  ['https://[0:0:0:0:0:0:0:1]/', /loopback/],
  ['https://[::ffff:127.0.0.1]/', /IPv4-mapped/],
  ['https://[::ffff:7f00:1]/', /IPv4-mapped/],
  ['https://[::127.0.0.1]/', /IPv4-compatible/],
  ['https://[64:ff9b::127.0.0.1]/', /NAT64/],
  ['https://[64:ff9b::a9fe:a9fe]/', /NAT64/],
  ['https://[64:ff9b:1::7f00:1]/', /local NAT64/],
  ['https://[2002:7f00:1::]/', /6to4/],
  ['https://[2001:0:7f00:1::]/', /Teredo/],
  ['https://[2001:db8::1]/', /documentation/],
  ['https://[fd00:ec2::254]/', /unique local/],
  ['https://[fe80::1]/', /link-local/],
  ['https://[fec0::1]/', /site-local/],
  ['https://[ff02::1]/', /multicast/],
]

describe('checkUrl', () => {
  it('holds a corpus of at least sixty URLs', () => {
    expect(new Set(refused.map(([url]) => url)).size).toBeGreaterThanOrEqual(60)
  })

  it.each(refused)('refuses %s', (url, why) => {
    expect(() => checkUrl('http()', url, {})).toThrow(why)
  })

  it.each([
    'https://example.com',
    'https://example.com:443/hooks',
    'HTTPS://EXAMPLE.COM/Hooks?token=1',
    'https://bücher.example/',
    'https://1.1.1.1/',
    'https://[2606:4700:4700::1111]/',
    'https://localhost.example.com/',
    'https://example.com\\@127.0.0.1/',
  ])('permits %s', (url) => {
    const checked = checkUrl('http()', url, {})
    expect(checked.isListed).toBe(false)
    expect(checked.url.hostname).not.toBe('127.0.0.1')
  })

  it.each([
    ['http://localhost:3000/mail', 'localhost'],
    ['http://localhost:3000/mail', 'localhost:3000'],
    ['http://127.0.0.1:8025/', '127.0.0.1'],
    ['http://127.0.0.1:8025/', '0x7f.1:8025'],
    ['http://[::1]:8025/', '::1'],
    ['http://[::1]:8025/', '[0::1]:8025'],
    ['https://10.0.0.7/', '10.0.0.7'],
    ['http://MAIL.internal/', 'mail.INTERNAL'],
    ['http://mail.internal/', 'mail.internal:80'],
  ])('permits %s where allow lists %s', (url, allow) => {
    expect(checkUrl('http()', url, { allow: [allow] }).isListed).toBe(true)
  })

  it.each([
    ['http://localhost:3001/', 'localhost:3000'],
    ['http://evil.localhost/', 'localhost'],
    ['http://localhost.evil.example/', 'localhost'],
    ['http://10.0.0.8/', '10.0.0.7'],
    ['https://user@localhost/', 'localhost'],
    ['ftp://localhost/', 'localhost'],
  ])('refuses %s although allow lists %s', (url, allow) => {
    expect(() => checkUrl('http()', url, { allow: [allow] })).toThrow()
  })

  it.each(['', ' ', 'http://localhost', 'a/b', 'user@host', '*', 7, null])(
    'refuses %j as an entry of allow',
    (entry) => {
      const rules = { allow: [entry as string] }
      expect(() => checkUrl('http()', 'https://example.com', rules)).toThrow(/allow\[0\]/)
    },
  )

  it('permits the ports that are given, and only them', () => {
    const rules = { ports: [8443] }
    expect(checkUrl('http()', 'https://example.com:8443/', rules).url.port).toBe('8443')
    expect(() => checkUrl('http()', 'https://example.com/', rules)).toThrow(/port 443/)
    expect(() => checkUrl('http()', 'https://example.com/', { ports: [0] })).toThrow(/ports/)
  })

  it('says which variable is missing and never shows the URL', () => {
    expect(() => checkUrl('http()', undefined, {})).toThrow(/url is not set/)
    const secret = 'https://user@example.com:8443/hooks/T0P5ECRET'
    expect(() => checkUrl('http()', secret, {})).toThrow(/^(?!.*T0P5ECRET).*$/)
  })
})
