/** What JSX compiles to in the build (vite.config.ts): React's own, as names that a minifier can shorten. */
import * as runtime from 'react/jsx-runtime'

/** A fragment. */
export const Fragment: typeof runtime.Fragment = runtime.Fragment
/** Makes an element. */
export const jsx: typeof runtime.jsx = runtime.jsx
/** The same function, where the children are a list. */
export const jsxs: typeof runtime.jsxs = runtime.jsxs
