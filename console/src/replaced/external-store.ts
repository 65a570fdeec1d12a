/** What the router asks a package for, in the place of that package: React has had it since 18. */
export { useSyncExternalStore } from 'react'
