/** TypeScript as modules, with the compiler alone: see typescript.cjs. */
export default {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/*.spec.ts'],
  testTimeout: 30_000,
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '\\.ts$': '<rootDir>/typescript.cjs' },
}
