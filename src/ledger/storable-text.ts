/** Texts as PostgreSQL can keep them: what is in a provider's body may not fail the decision about it. */
export { storable } from '../postgres/storable-text.ts'
