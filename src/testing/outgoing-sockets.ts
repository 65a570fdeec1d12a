/**
 * Every connection that this process opens, at the moment that it does: of HTTP clients and of drivers of databases.
 * node:diagnostics_channel tells only of those of `net.connect`, and drivers make their sockets by themselves.
 */
import { Socket } from 'node:net'

/** Told of a socket that is about to connect; one that it destroys connects nowhere. */
export type SocketListener = (socket: Socket) => void

const listeners = new Set<SocketListener>()
let isWatching = false

/** Calls the listener for every connection that is opened from now on; answers what ends it. */
export function watchOutgoingSockets(listener: SocketListener): () => void {
  if (!isWatching) watch()
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Once in a process: without listeners a connection costs one look at an empty set. */
function watch(): void {
  isWatching = true
  const connect = Socket.prototype.connect
  Socket.prototype.connect = function (this: Socket, ...how: unknown[]): Socket {
    for (const listener of listeners) listener(this)
    return this.destroyed ? this : (Reflect.apply(connect, this, how) as Socket)
  } as typeof connect
}
