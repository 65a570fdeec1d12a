/** What a person decides about findings, for the command line. */
export { assignFinding, dismissFinding, type FindingActBy } from '../reconciliation/finding-acts.ts'
