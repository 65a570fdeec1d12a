/**
 * Where a walk through the records of one kind is, and who may move it on. A page counts as gone through
 * in the commit that stores what was found on it, or not at all.
 */
import type { Executor } from '../postgres/executor.ts'
import {
  moveCheckpoint,
  readCheckpoint,
  type Checkpoint,
  type CheckpointMove,
} from './checkpoint.ts'
import { outlast } from './outlast.ts'
import {
  CheckpointLost,
  type PassContext,
  type SourceRun,
  type WalkTarget,
} from './pass-context.ts'
import {
  extended,
  firstPosition,
  isDeep,
  planWindow,
  withinReach,
  type Position,
  type Window,
} from './slices.ts'

/** The page is stored after all, is to be stored again, or the walk goes on from elsewhere. */
export type Recovery = 'stored' | 'again' | 'elsewhere'

/** A walk in work. */
export interface Track {
  /** The page to ask for; null: nothing is left. */
  readonly position: Position | null
  /** What was asked for in all. */
  readonly window: Window | null
  /** What was never gone through before begins here. */
  readonly unseenFrom: Date
  /** A record of the page in hand, made then, was passed over: what is written down stays before it. */
  heldUp(createdAt: Date): void
  /** Moves on in the transaction of `tx`. @throws CheckpointLost */
  advance(tx: Executor, next: Position | null): Promise<void>
  /** That transaction has committed. */
  committed(): void
  /** It did not, or nobody knows: finds out where to go on. */
  recover(): Promise<Recovery>
  /** Everything of the window was compared. */
  close(): Promise<void>
}

/** A window given by hand: nothing of it is kept, and no checkpoint moves. */
export function rangeTrack(
  asked: Window | null,
  reachMs: number | null,
  now: Date,
  sliceMs: number,
): Track {
  const window = asked === null ? null : withinReach(asked, asked.from, reachMs, now).rest
  let position = window === null ? null : firstPosition(window, sliceMs)
  let pending = position
  return {
    get position() {
      return position
    },
    window,
    unseenFrom: asked?.from ?? now,
    heldUp: () => {},
    advance: async (_, next) => void (pending = next),
    committed: () => void (position = pending),
    recover: async () => 'again',
    close: async () => {},
  }
}

/**
 * The walk through a kind of events: whoever loses its checkpoint goes on from where the winner is.
 * Their decisions need no comparison, so that the last page closes the window.
 */
export async function eventTrack(
  context: PassContext,
  run: SourceRun,
  target: WalkTarget,
): Promise<Track> {
  const { schema } = context.db
  const read = (): Promise<Checkpoint> =>
    outlast(() => readCheckpoint(context.db, schema, target.sourceId, target.kind))
  let checkpoint = await read()
  const unseenFrom = checkpoint.through
  const begun = await begin(context, run, target, checkpoint, checkpoint.position)
  checkpoint = begun ?? (await read())
  let pending = checkpoint
  const window = checkpoint.position
  return {
    get position() {
      return checkpoint.position
    },
    window,
    unseenFrom,
    heldUp: () => {},
    async advance(tx, next) {
      const at = checkpoint.position
      const closes =
        at === null || next !== null
          ? {}
          : { through: at.to, ...deepMark(at, checkpoint, context.settings) }
      pending = required(
        await moveCheckpoint(tx, schema, checkpoint, run.runId, { position: next, ...closes }),
      )
    },
    committed: () => void (checkpoint = pending),
    async recover() {
      const now = await read()
      const isStored = pending !== checkpoint && now.version === pending.version
      const isUnmoved = now.version === checkpoint.version
      checkpoint = now
      pending = now
      if (isStored && now.runId === run.runId) return 'stored'
      return isUnmoved ? 'again' : 'elsewhere'
    },
    close: async () => {},
  }
}

/** The oldest record that was passed over, and the page where the next run goes on for it. */
interface HeldUp {
  readonly createdAt: Date
  readonly page: Position | null
}

/**
 * The walk through a kind of objects. What was seen of them is compared at the end, and the window is
 * closed only then: what a run had seen that died before is gone through again. Of two runs at once one
 * keeps the checkpoint; the other goes through its window without it, and both compare.
 */
export async function objectTrack(
  context: PassContext,
  run: SourceRun,
  target: WalkTarget,
): Promise<Track> {
  const { schema } = context.db
  const read = (): Promise<Checkpoint> =>
    outlast(() => readCheckpoint(context.db, schema, target.sourceId, target.kind))
  let checkpoint = await read()
  const unseenFrom = checkpoint.through
  const resumed = checkpoint.isUncompared ? null : checkpoint.position
  const began = await begin(context, run, target, checkpoint, resumed)
  let isOwner = began !== null
  checkpoint = began ?? checkpoint
  // a run that lost the first move plans for itself what it would have written
  let position = began === null ? plan(context, run, target, checkpoint, null) : began.position
  const window = position
  if (position !== null && position.sliceFrom >= position.to) position = null
  let pending = { checkpoint, position }
  let held: HeldUp | null = null
  return {
    get position() {
      return position
    },
    window,
    unseenFrom,
    heldUp(createdAt) {
      const page = held === null ? position : held.page
      held = {
        createdAt: held !== null && held.createdAt < createdAt ? held.createdAt : createdAt,
        page,
      }
    },
    async advance(tx, next) {
      pending = { checkpoint, position: next }
      if (!isOwner || position === null) return
      const kept = held?.page ?? next ?? endOf(position)
      const moved = await moveCheckpoint(tx, schema, checkpoint, run.runId, { position: kept })
      pending = { checkpoint: required(moved), position: next }
    },
    committed: () => void ({ checkpoint, position } = pending),
    async recover() {
      const now = await read()
      if (isOwner && now.version === pending.checkpoint.version && now.runId === run.runId) {
        ;({ checkpoint, position } = pending)
        return 'stored'
      }
      isOwner = isOwner && now.version === checkpoint.version
      return 'again'
    },
    async close() {
      if (window === null) return
      const done = closing(window, held?.createdAt ?? null, checkpoint, context.settings)
      for (let tries = 0; tries < 10; tries++) {
        if (tries > 0 || !isOwner) checkpoint = await read()
        const mine = checkpoint.runId === run.runId
        const left = mine ? null : checkpoint.position
        const owner = mine ? run.runId : null
        const move = { position: left, ...done }
        if ((await moveAlone(context, checkpoint, owner, move)) !== null) return
      }
    },
  }
}

/** Writes down the window in work. Null: somebody else was first. */
async function begin(
  context: PassContext,
  run: SourceRun,
  target: WalkTarget,
  checkpoint: Checkpoint,
  resumed: Position | null,
): Promise<Checkpoint | null> {
  const position = plan(context, run, target, checkpoint, resumed)
  if (position === null && checkpoint.position === null) return checkpoint
  return moveAlone(context, checkpoint, run.runId, { position })
}

/** Moves a checkpoint in a transaction of its own, whoever has it at the moment. */
function moveAlone(
  { db, lockTimeoutMs }: PassContext,
  ...move: [Checkpoint, string | null, CheckpointMove]
): Promise<Checkpoint | null> {
  const setup = `set local lock_timeout = ${lockTimeoutMs}`
  return outlast(() => db.transaction((tx) => moveCheckpoint(tx, db.schema, ...move), { setup }))
}

/** A window in work goes on, up to what is old enough by now; else a new one begins. */
function plan(
  { settings }: PassContext,
  { how, now }: SourceRun,
  { reachMs }: WalkTarget,
  { through, installedAt }: Checkpoint,
  resumed: Position | null,
): Position | null {
  const planned = planWindow({ through, installedAt, now, deep: how === 'deep', settings })
  if (resumed !== null && (planned === null || resumed.from <= planned.from))
    return planned === null ? resumed : extended(resumed, planned.to, settings.sliceMs)
  const window = planned === null ? null : withinReach(planned, through, reachMs, now).rest
  return window === null ? null : firstPosition(window, settings.sliceMs)
}

/**
 * How far a window was gone through: not so far that the next one would begin behind a record that was passed over.
 * One that lies before any plain window keeps the next pass a deep one.
 */
function closing(
  window: Window,
  heldUp: Date | null,
  checkpoint: Checkpoint,
  settings: PassContext['settings'],
): Omit<CheckpointMove, 'position'> {
  const deep = deepMark(window, checkpoint, settings)
  if (heldUp === null) return { through: window.to, ...deep }
  const atMost = new Date(heldUp.getTime() + settings.overlapMs)
  if (atMost < checkpoint.through) return { through: atMost }
  return { through: atMost < window.to ? atMost : window.to, ...deep }
}

/** The window was gone through, and is not compared yet. */
function endOf(position: Position): Position {
  return { ...position, sliceFrom: position.to, sliceTo: position.to, cursor: null }
}

function deepMark(
  window: Window,
  { installedAt }: Checkpoint,
  settings: PassContext['settings'],
): { readonly deepAt?: Date } {
  return isDeep(window, installedAt, settings) ? { deepAt: window.to } : {}
}

function required(moved: Checkpoint | null): Checkpoint {
  if (moved === null) throw new CheckpointLost('another reconciler moved the checkpoint')
  return moved
}
