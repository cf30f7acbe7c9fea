import { deliveryReasons, errors } from "@herald/contracts";
import { escapeHtml, page, prose, table } from "./html.ts";

const again: Record<string, string> = {
  never: "Only after a change.",
  later: "Yes, after `Retry-After`.",
  away: "Yes, after `Retry-After`: nothing was lost.",
};

const anchor = (slug: string): string => `<code id="${escapeHtml(slug)}">${escapeHtml(slug)}</code>`;

/** What every error and every delivery reason means: where the `type` of an error answer leads. */
export const renderErrors = (): string =>
  page({
    title: "Herald errors",
    nav: '<strong>Herald</strong><ul><li><a href="/docs">Reference</a></li><li><a href="#errors">Errors</a></li><li><a href="#reasons">Delivery reasons</a></li></ul>',
    main: [
      '<h1>Errors</h1><p id="errors">Every error answer is <code>application/problem+json</code>: <code>errors</code> says what is wrong, field by field and all at once; <code>type</code> leads to the row here; <code>instance</code> is the request id, which the log has too.</p>',
      table(
        ["error", "status", "meaning", "worth trying again?"],
        Object.entries(errors).map(([slug, { status, title, retry }]) => [
          anchor(slug),
          String(status),
          prose(title),
          prose(status === 409 && slug === "request-in-progress" ? (again.later ?? "") : (again[retry] ?? "")),
        ]),
      ),
      '<h2 id="reasons">Delivery reasons</h2><p>Why a device did not get a notification: the <code>reason</code> of a delivery, and the keys of <code>failures</code>.</p>',
      table(
        ["reason", "meaning"],
        Object.entries(deliveryReasons).map(([slug, meaning]) => [
          `<code id="reason-${escapeHtml(slug)}">${escapeHtml(slug)}</code>`,
          prose(meaning),
        ]),
      ),
    ].join("\n"),
  });
