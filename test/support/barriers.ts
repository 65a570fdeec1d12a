/** What keeps somebody from using a page who cannot see it, has no mouse, or has a narrow screen. */
import axe from 'axe-core'
import type { Page } from 'playwright-core'

/** The serious and critical faults that axe finds in what is shown now: the rule, and the nodes that break it. */
export async function barriersOf(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  return page.evaluate<
    string[]
  >(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html.slice(0, 160)).join(' | ')))`)
}

/** How many pixels of the page lie beside the screen; 0 where nobody has to scroll sideways. */
export async function overhangOf(page: Page): Promise<number> {
  return page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  )
}
