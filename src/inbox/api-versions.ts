/**
 * Events that another version of the provider's API has shaped: handled like the others, and told as one
 * finding for each source and version. A process tells of each once, in the commit of the first such event.
 */
import { finding } from '../workflow/finding-kinds.ts'
import type { FindingDraft } from '../workflow/outcome.ts'
import type { Settled } from './outcome-parts.ts'

/** The version that shaped an event, and the one that was expected. */
export interface VersionDifference {
  readonly version: string
  readonly expected: string
}

/** A configured source, as far as the versions of its events are concerned. */
export interface VersionedSource {
  /** Under which its findings are kept: one for all of its accounts. */
  readonly text: string
  /** Null where the body is of the expected version, or of none. Never throws. */
  readonly otherVersion: (body: Readonly<Record<string, unknown>>) => VersionDifference | null
}

/** A finding, as a batch writes it. */
export interface FoundVersion {
  readonly draft: FindingDraft
  readonly source: string
  readonly orderId: null
  readonly eventKey: bigint
}

/** More versions than any provider has; past it nothing more is told. */
const mostVersions = 200

/** Remembers which versions were told of. */
export class ApiVersions {
  readonly #sources: ReadonlyMap<string, VersionedSource>
  readonly #told = new Map<string, Set<string>>()

  constructor(sources: ReadonlyMap<string, VersionedSource>) {
    this.#sources = sources
  }

  /** What a batch has to tell: of versions that this process told nothing of. */
  found(settled: readonly Settled[]): readonly FoundVersion[] {
    if (this.#sources.size === 0) return []
    const found = new Map<string, FoundVersion>()
    for (const { outcome } of settled) {
      const { event, kind } = outcome
      // what nothing handles, nothing misreads; what was made here is as it was asked for
      if (kind === 'ignored' || event.synthetic || !event.content.readable) continue
      const source = this.#sources.get(event.source.name ?? '')
      const differs = source?.otherVersion(event.content.value) ?? null
      if (source === undefined || differs === null) continue
      const { version, expected } = differs
      const told = this.#told.get(source.text)
      if (told !== undefined && (told.has(version) || told.size >= mostVersions)) continue
      const key = `${source.text} ${version}`
      if (found.has(key)) continue
      const figures = { source: event.source.name, version, expected }
      const draft = finding('api_version_differs', `version:${version}`, figures)
      found.set(key, { draft, source: source.text, orderId: null, eventKey: event.key })
    }
    return [...found.values()]
  }

  /** They are stored: nothing tells of them again. */
  told(found: readonly FoundVersion[]): void {
    for (const { source, draft } of found) {
      const told = this.#told.get(source) ?? new Set<string>()
      this.#told.set(source, told.add(String(draft.figures['version'])))
    }
  }
}
