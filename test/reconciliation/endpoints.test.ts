import { describe, expect, it } from 'vitest'
import { endpointProblem } from '../../src/reconciliation/endpoints.ts'

const endpoint = { url: 'https://a.example/hook?k=1', enabled: true, types: null, apiVersion: null }

describe('endpointProblem', () => {
  it('finds nothing where all types are delivered, or all that are handled', () => {
    expect(endpointProblem([endpoint], ['pay'], '2026')).toBeNull()
    expect(endpointProblem([{ ...endpoint, types: ['pay', 'refund'] }], ['pay'], null)).toBeNull()
  })

  it('finds nothing where several endpoints share the types', () => {
    const shared = [
      { ...endpoint, types: ['pay'] },
      { ...endpoint, types: ['refund'] },
    ]
    expect(endpointProblem(shared, ['pay', 'refund'], null)).toBeNull()
  })

  it('asks nothing of a source of which nothing is handled', () => {
    expect(endpointProblem([], [], null)).toBeNull()
  })

  it('names what is not delivered, of endpoints that are enabled only', () => {
    const some = [
      { ...endpoint, types: ['pay'] },
      { ...endpoint, enabled: false },
    ]
    expect(endpointProblem(some, ['dispute', 'pay', 'refund'], null)).toBe(
      'not delivered: dispute, refund',
    )
  })

  it('says that there is none, or that every one is disabled, without what an address may hide', () => {
    expect(endpointProblem([], ['pay'], null)).toBe('the provider delivers to no endpoint')
    expect(endpointProblem([{ ...endpoint, enabled: false }], ['pay'], null)).toBe(
      'every endpoint is disabled: https://a.example/hook',
    )
  })

  it('tells of another version of the API, where no endpoint speaks the one that records are read in', () => {
    const old = { ...endpoint, apiVersion: '2020' }
    expect(endpointProblem([old], ['pay'], '2026')).toBe(
      'delivered in API version 2020, records are read in 2026',
    )
    expect(endpointProblem([old, { ...endpoint, apiVersion: '2026' }], ['pay'], '2026')).toBeNull()
    expect(endpointProblem([old], ['pay'], null)).toBeNull()
  })
})
