import { deliveryReasons, errors, type Retry } from "@herald/contracts";
import { escapeHtml, page, prose, table } from "./html.ts";

const again: Record<Retry, string> = {
  never: "Only after a change.",
  later: "Yes, after `Retry-After`.",
  unavailable: "Yes, after `Retry-After`: nothing was lost.",
};

const anchor = (slug: string): string => `<code id="${escapeHtml(slug)}">${escapeHtml(slug)}</code>`;

/** What every error and every delivery reason means: where the `type` of an error answer leads. */
export const renderErrors = (): string =>
  page({
    title: "Herald errors",
    nav: '<strong>Herald</strong><ul><li><a href="/docs">Reference</a></li><li><a href="#errors">Errors</a></li><li><a href="#reasons">Delivery reasons</a></li></ul>',
    main: [
      '<h1>Errors</h1><p id="errors">Every error is <code>application/problem+json</code>. <code>errors</code> lists every problem with its field, <code>type</code> links to the row on this page, and <code>instance</code> is the request id that the log has too.</p>',
      table(
        ["error", "status", "meaning", "retry?"],
        Object.entries(errors).map(([slug, { status, title, retry }]) => [
          anchor(slug),
          String(status),
          prose(title),
          prose(slug === "request-in-progress" ? again.later : again[retry]),
        ]),
      ),
      '<h2 id="reasons">Delivery reasons</h2><p>Why a device did not get a notification: the <code>reason</code> of a delivery, and the keys of <code>failures</code> and <code>skips</code>.</p>',
      table(
        ["reason", "meaning"],
        Object.entries(deliveryReasons).map(([slug, meaning]) => [
          `<code id="reason-${escapeHtml(slug)}">${escapeHtml(slug)}</code>`,
          prose(meaning),
        ]),
      ),
    ].join("\n"),
  });
