/**
 * Stripe's API over HTTP, on the state machine: authentication, accounts, idempotency, planted faults,
 * and an entry in the log for every call. Whatever the connection does, a call is executed once and
 * entirely or not at all.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Cut, errorAnswer, send, suffer, type Answer } from './api-answer.ts'
import { listPage, oldestOf, retrieve, type ReadView } from './api-collections.ts'
import { StripeApiError } from './api-error.ts'
import { headerText, presentedKey, readBody } from './api-request.ts'
import { readSetup, type DoubleEndpoint } from './api-setup.ts'
import { prepareWrite } from './api-writes.ts'
import { expandPaths, type ExpandContext } from './expand.ts'
import type { FaultRule, Faults } from './faults.ts'
import { parseParameters, type Parameters } from './form-parameters.ts'
import { IdempotencyKeys, storedAnswer, type KeyedCall } from './idempotency.ts'
import { ListFaults } from './list-faults.ts'
import type { ListLag } from './list-pages.ts'
import { objectId } from './object-ids.ts'
import type { ObjectState } from './object-state.ts'
import { text, textList } from './parameter-readers.ts'
import type { ProviderLog } from './provider-log.ts'
import type { Work } from './write-parameters.ts'

/** What the API serves. */
export interface ApiOptions {
  state: ObjectState
  log: ProviderLog
  faults: Faults
  account: string
  /** The key that callers must present; any test key when absent. */
  apiKey?: string
  seed: string
  lag: () => ListLag
  livemode: boolean
  endpoints: () => readonly DoubleEndpoint[]
}

interface Call {
  requestId: string
  method: string
  path: string
  account: string
  parameters: Parameters
  key: string | null
  fault: FaultRule | undefined
}

/** Answers API calls. */
export class ApiServer {
  readonly #options: ApiOptions
  readonly #keys: IdempotencyKeys
  readonly #lists = new ListFaults()
  #calls: number

  constructor(options: ApiOptions) {
    this.#options = options
    this.#keys = new IdempotencyKeys(options.state)
    this.#calls = options.log.entries('api_call').length
  }

  /** Answers one request; rejects only when the log cannot be written. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost')
    const method = request.method ?? 'GET'
    const requestId = objectId(this.#options.seed, 'request', ++this.#calls)
    const key = method === 'POST' ? headerText(request, 'idempotency-key') : null
    const account = headerText(request, 'stripe-account')
    const head = { requestId, method, path: url.pathname, key, account }
    const { answer, executed } = await this.#answer(request, head, url.search).then(
      (given) => ({ answer: given, executed: given.executed ?? false }),
      (error: unknown) => ({
        answer: error instanceof Cut ? null : errorAnswer(error),
        executed: (error instanceof Cut || error instanceof StripeApiError) && error.executed,
      }),
    )
    const isGone = request.socket.destroyed
    if (answer === null) request.socket.destroy()
    else send(response, answer, { requestId, key, account })
    this.#options.log.append({
      kind: 'api_call',
      at: this.#options.state.clock(),
      requestId,
      method,
      path: url.pathname,
      account,
      status: answer === null || isGone ? null : answer.status,
      idempotencyKey: key,
      replayed: answer?.replayed ?? false,
      executed,
    })
  }

  async #answer(
    request: IncomingMessage,
    head: {
      requestId: string
      method: string
      path: string
      key: string | null
      account: string | null
    },
    query: string,
  ): Promise<Answer> {
    const body = await readBody(request)
    this.#authenticate(request)
    const account = this.#account(head.account)
    const isContinued = /[?&](?:starting_after|ending_before)=/.test(query)
    const fault = this.#options.faults.meet({
      ...head,
      account,
      idempotencyKey: head.key,
      isContinued,
    })
    if (fault && (fault.phase ?? 'before') === 'before') {
      const planted = await suffer(fault, false)
      if (planted) return planted
    }
    const parameters = parseParameters(head.method === 'POST' ? body : query.slice(1))
    const call: Call = { ...head, account, parameters, fault }
    const answer = await this.#serve(call)
    if (fault?.phase !== 'answer') return answer
    const executed = answer.executed ?? false
    const planted = await suffer(fault, executed)
    return planted ? { ...planted, executed } : answer
  }

  async #serve(call: Call): Promise<Answer> {
    if (call.method === 'GET') return this.#read(call)
    if (call.key === null) {
      return this.#execute(call, this.#prepare(call), undefined)
    }
    const keyed: KeyedCall = {
      account: call.account,
      key: call.key,
      path: call.path,
      parameters: call.parameters,
    }
    const stored = this.#keys.stored(keyed)
    if (stored) {
      const headers = { 'idempotent-replayed': 'true', 'original-request': stored.requestId }
      return { status: stored.status, body: stored.body, headers, replayed: true }
    }
    const work = this.#prepare(call)
    const end = this.#keys.begin(keyed)
    try {
      return await this.#execute(call, work, keyed)
    } finally {
      end()
    }
  }

  #prepare(call: Call): Work {
    const work = prepareWrite(call.method, call.path, call.parameters)
    if (!work) throw unknownUrl(call)
    return work
  }

  #read(call: Call): Answer {
    const view = this.#view(call)
    const { expand: _, ...parameters } = call.parameters
    const found =
      this.#list(call, view, parameters) ??
      retrieve(view, call.path, parameters) ??
      this.#setup(call, parameters)
    if (!found) throw unknownUrl(call)
    const { state } = this.#options
    const context: ExpandContext = {
      find: (kind, id) => state.find(call.account, kind, id),
      findAny: (id) => state.findAny(call.account, id),
      list: (kind) => state.records(call.account, kind).map((record) => record.object),
    }
    const body = render(call, found, context)
    const isGarbled = call.fault?.garble === 'amounts'
    return { status: 200, body: isGarbled ? withoutAmounts(body) : body, executed: true }
  }

  #list(call: Call, view: ReadView, parameters: Parameters): object | undefined {
    const found = listPage(view, call.path, parameters)
    if (!found) return undefined
    return this.#lists.answer(`${call.account} ${call.path}`, found, call.fault?.list, {
      after: text(parameters, 'starting_after'),
      oldest: () => oldestOf(view, call.path),
    })
  }

  #setup(call: Call, parameters: Parameters): object | undefined {
    const { state, account, endpoints, livemode } = this.#options
    const view = {
      state,
      account: call.account,
      owner: account,
      livemode,
      endpoints: endpoints(),
    }
    return readSetup(view, call.path, parameters)
  }

  /** The work and its stored answer are one transaction: a kill leaves both or none. */
  async #execute(call: Call, work: Work, keyed: KeyedCall | undefined): Promise<Answer> {
    const { state } = this.#options
    const cause = { requestId: call.requestId, idempotencyKey: call.key }
    const keep = (answer: Answer) =>
      keyed &&
      storedAnswer(keyed, { ...answer, requestId: call.requestId, storedMs: state.clock() })
    const during = call.fault?.phase === 'during' ? await suffer(call.fault, false) : undefined
    const done = call.fault?.phase === 'done' ? await suffer(call.fault, true) : undefined
    try {
      return state.transact(call.account, cause, (tx) => {
        const object = during ? null : work(tx)
        const answer = during ?? done ?? { status: 200, body: render(call, object!, tx) }
        const stored = keep(answer)
        if (stored) tx.storeAnswer(stored)
        return { ...answer, executed: during === undefined }
      })
    } catch (error) {
      const stored =
        error instanceof StripeApiError && error.executed ? keep(errorAnswer(error)) : undefined
      if (stored) state.transact(call.account, cause, (tx) => tx.storeAnswer(stored))
      throw error
    }
  }

  #view(call: Call): ReadView {
    const { state, log, lag } = this.#options
    return {
      state,
      account: call.account,
      lag: lag(),
      isAcknowledged: (id) => log.isAcknowledged(id),
    }
  }

  #authenticate(request: IncomingMessage): void {
    const given = presentedKey(request)
    if (given === '')
      throw unauthorized('You did not provide an API key: send it as a bearer token.')
    const { apiKey } = this.#options
    const isKnown = apiKey === undefined ? /^[sr]k_test_/.test(given) : given === apiKey
    if (!isKnown) throw unauthorized(`Invalid API Key provided: ${given.slice(0, 8)}***`)
  }

  #account(header: string | null): string {
    const account = header ?? this.#options.account
    if (this.#options.state.has(account)) return account
    const message = `The provided key does not have access to account '${account}' (or that account does not exist).`
    throw new StripeApiError(
      403,
      { type: 'invalid_request_error', code: 'account_invalid', message },
      false,
    )
  }
}

function render(call: Call, found: object, context: ExpandContext): string {
  const paths = textList(call.parameters, 'expand') ?? []
  return JSON.stringify(expandPaths(context, found, paths), null, 2)
}

/** The JSON with a text in the place of every amount that is not zero. */
function withoutAmounts(body: string): string {
  return JSON.stringify(JSON.parse(body), (field, value: unknown) =>
    typeof value === 'number' && value !== 0 && /^amount(?:_|$)/.test(field)
      ? `about ${value}`
      : value,
  )
}

function unknownUrl(call: Call): StripeApiError {
  const message = `Unrecognized request URL (${call.method}: ${call.path}): the simulated provider does not have it.`
  return new StripeApiError(404, { type: 'invalid_request_error', message }, false)
}

function unauthorized(message: string): StripeApiError {
  return new StripeApiError(401, { type: 'invalid_request_error', message }, false)
}
