import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** WCAG 2.2, levels A and AA. */
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

interface Found {
  violations: { id: string; help: string; nodes: { html: string; failureSummary?: string }[] }[];
}

/** What a page does against the rules of accessibility, a line for each. */
export async function violationsOf(page: Page): Promise<string[]> {
  // Past the page's content security policy, as browsers' own tools are.
  const client = await page.context().newCDPSession(page);
  const evaluate = async (expression: string) => {
    const { result, exceptionDetails } = await client.send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  await evaluate(`if (!globalThis.axe) { ${axe.source} }; true`);
  const found: Found = await evaluate(
    `axe.run(document, { runOnly: ${JSON.stringify(RULES)}, resultTypes: ['violations'] })`,
  );
  await client.detach();
  return found.violations.flatMap(({ id, help, nodes }) =>
    nodes.map(
      ({ html, failureSummary = '' }) =>
        `${id}: ${help}: ${html.slice(0, 160)} ${failureSummary.slice(0, 300)}`,
    ),
  );
}
