import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { expect } from "vitest";
import type { ConsolePage } from "./console-page.ts";

/** Elements that make the document wider than the window. Tables with their own scrollbar are allowed. */
export const wider = (page: ConsolePage) =>
  page.evaluate(`(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    return [...document.querySelectorAll("main *")]
      .filter((one) => one.getBoundingClientRect().right > width + 1 && !one.closest(".scroll, .tabs"))
      .map((one) => one.outerHTML.slice(0, 120)).slice(0, 5).concat("the document is " + document.documentElement.scrollWidth);
  })()`);

/**
 * What is smaller than 24 by 24 px to tap or click (WCAG 2.5.8), except links within sentences, fields with a
 * label or a frame around them, and the arrows beside a number, which can be typed.
 */
export const tooSmall = (page: ConsolePage) =>
  page.evaluate(`[...document.querySelectorAll("#root :is(a, button, summary, [role=tab], input, select)")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.closest("p, .break:not(a), label"))
    .filter((one) => !one.matches(".mantine-PillsInputField-field, .mantine-NumberInput-control, .mantine-Pill-remove"))
    .filter((one) => getComputedStyle(one).opacity !== "0" && one.type !== "checkbox")
    .map((one) => [one.getBoundingClientRect(), one.outerHTML.slice(0, 120)])
    .filter(([{ width, height }]) => width > 1 && height > 1 && (width < 23.9 || height < 23.9))
    .map(([{ width, height }, html]) => width + " x " + height + ": " + html)`);

type Violation = {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly html: string }[];
};

/** Findings of axe-core that are serious or critical. */
const seriousProblems = async (page: ConsolePage, options: object): Promise<string[]> => {
  const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  await page.evaluate(axe); // the content security policy blocks script elements, but not the debugger
  const { violations } = (await page.evaluate(
    `axe.run(document, ${JSON.stringify({ ...options, resultTypes: ["violations"] })})`,
  )) as {
    violations: readonly Violation[];
  };
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
};

const transitions = "document.getAnimations().filter((one) => one instanceof CSSTransition).length";

/** What axe-core finds serious on a page. Also with dark colours, which change nothing but contrasts. */
export const problemsInBothSchemes = async (page: ConsolePage): Promise<string[]> => {
  const found = await seriousProblems(page, {});
  const scheme = page.locator("html[data-mantine-color-scheme]");
  await page.emulateMedia({ colorScheme: "dark" });
  await expect.poll(() => scheme.getAttribute("data-mantine-color-scheme")).toBe("dark");
  // Colours on their way from one scheme to the other have any contrast.
  await expect.poll(() => page.evaluate(transitions)).toBe(0);
  const dark = await seriousProblems(page, { runOnly: ["color-contrast"] });
  await page.emulateMedia({ colorScheme: "light" });
  await expect.poll(() => scheme.getAttribute("data-mantine-color-scheme")).toBe("light");
  await expect.poll(() => page.evaluate(transitions)).toBe(0);
  return [...found, ...dark.map((problem) => `dark: ${problem}`)];
};

/** What is too wide, too small or serious for axe-core, at 360 and 1280 px, light and dark. */
export const problemsAtBothWidths = async (page: ConsolePage): Promise<unknown> => {
  const found: unknown[] = [];
  for (const width of [360, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    // Polled, because a page that is read again meanwhile, or that is still laid out for the other width, settles a moment later.
    for (const look of [wider, tooSmall]) await expect.poll(() => look(page), { message: `${width} px` }).toEqual([]);
    found.push(...(await problemsInBothSchemes(page)));
  }
  return found;
};
