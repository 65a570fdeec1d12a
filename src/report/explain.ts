/**
 * What happened to an order, an event, a name, an operation or a finding: the record and its story. Read-only, and
 * by index for everything that it reads.
 */
import type { Database } from '../postgres/executor.ts'
import { actsAboutSubjects, type SubjectActView } from './acts-about-subjects.ts'
import { findSubject, type Subject } from './find-subject.ts'
import { findFindings, operationOf } from './findings.ts'
import { noneInSequence, type Sequenced } from './operation-blocked.ts'
import { readRecord, type OrderRecord } from './order-record.ts'
import type { TimelineEntry } from './timeline-entry.ts'
import { timelineOf } from './timeline.ts'

/** The answer of `hookledger explain`; the keys are what `--json` prints. */
export interface Explanation {
  /** What was asked, and as what it was found. */
  readonly asked: Subject
  /** Of a subject or a customer: its links and merges, by whom and why. */
  readonly subject_acts: readonly SubjectActView[]
  /** One for each order that the id leads to; without any, one for its events. */
  readonly records: readonly ExplainedRecord[]
}

/** A record with its story. */
export interface ExplainedRecord extends OrderRecord {
  readonly timeline: readonly TimelineEntry[]
}

/** Explains an id; null when nothing knows it. */
export async function explain(
  db: Database,
  id: string,
  sequenced: Sequenced = noneInSequence,
): Promise<Explanation | null> {
  const asked = await findSubject(db, id)
  if (asked === null) return null
  // an event is explained by its order's whole story: what came before is why
  const orders = asked.order_ids.length === 0 ? [null] : asked.order_ids
  const operations = await operationsOf(db, asked)
  const records: ExplainedRecord[] = []
  for (const [index, orderId] of orders.entries()) {
    const eventKeys = index === 0 ? asked.event_keys : []
    const record = await readRecord(db, orderId, eventKeys, operations, sequenced)
    records.push({ ...record, timeline: timelineOf(record) })
  }
  return { asked, subject_acts: await actsAboutSubjects(db, asked), records }
}

/** An operation that belongs to no order is explained by itself, and so is a finding about one. */
async function operationsOf(db: Database, asked: Subject): Promise<string[]> {
  if (asked.kind === 'operation') return [...asked.operation_ids]
  if (asked.kind !== 'finding') return []
  const findings = await findFindings(db, asked.id)
  return findings.map(operationOf).filter((id) => id !== null)
}
