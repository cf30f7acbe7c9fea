import { errors } from "@herald/contracts";
import { errorsOf } from "@herald/docs";
import { expect, test } from "vitest";
import { roleOf } from "../../../services/gateway/src/auth/caller.ts";
import { allRoutes } from "../../../services/gateway/src/routes/all-routes.ts";
import { problemTextOf, problemTexts } from "../src/api/problem-texts.ts";

/** All that a session may call, and signing in. */
const reached = allRoutes.filter(
  ({ access, path }) => roleOf(access) !== undefined || path.startsWith("/admin/v1/sessions"),
);
/** What no route declares: an address that is none, and a failure inside of Herald. */
const anywhere = ["route-not-found", "method-not-allowed", "not-acceptable", "internal"];
/** Without an answer the page says that Herald is unreachable. */
const ofClient = ["unexpected-answer"];

test("people get a sentence for each error that a route of the console can answer", () => {
  const slugs = new Set([...reached.flatMap(errorsOf), ...anywhere, ...ofClient]);
  expect(slugs.size).toBeGreaterThan(50);
  expect([...slugs].filter((slug) => !Object.hasOwn(problemTexts, slug))).toEqual([]);
});

test("each of them says what happened and what to do, in people's words", () => {
  for (const [slug, { title, next }] of Object.entries(problemTexts)) {
    expect([slug, title], "no full stop in a title").toEqual([slug, expect.stringMatching(/^[A-Z].*[^.]$/)]);
    expect([slug, next]).toEqual([slug, expect.stringMatching(/^[A-Z].*\.$/)]);
    expect(`${title} ${next}`).not.toMatch(/`|Bearer|project_id|_|\bJSON\b.*body|request body|slug/);
    expect([slug, Object.hasOwn(errors, slug) || ofClient.includes(slug)]).toEqual([slug, true]);
  }
});

test("an error of a later version has a sentence too", () => {
  expect(problemTextOf("brewed-tea")).toEqual({ title: "Herald refused this", next: "Details says why." });
  expect(problemTextOf("toString").title).toBe("Herald refused this");
});
