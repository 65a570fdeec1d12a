/** Puts the console into its page. */
import './language.ts'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import './styles/tokens.css'
import './styles/base.css'
import './styles/shell.css'
import './styles/parts.css'
import './styles/lists.css'
import './styles/stories.css'
import './styles/pages.css'

const element = document.getElementById('console')
if (element === null) throw new Error('the page has no place for the console')
createRoot(element).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
