import { it } from 'vitest'
import { createReconcileProof } from '../support/reconcile-proof.ts'
import { proveWorld } from '../support/reconcile-proving.ts'
it('plays', async () => {
  const proof = await createReconcileProof()
  const chances = JSON.parse(process.env.CHANCES ?? '{}')
  try {
    for (let at = Number(process.env.FROM ?? 1); at <= Number(process.env.TO ?? 5); at++) {
      const t = performance.now()
      const { wrong, sown, world } = await proveWorld(proof, `t${at}`, 20, chances).catch((error) => ({ wrong: [error.stack], sown: [], world: null }))
      console.log(at, Math.round(performance.now() - t), sown.join(','), world?.racing.length, wrong.length, '\n' + wrong.slice(0, 12).join('\n'))
    }
  } finally { await proof.close() }
}, 600_000)
