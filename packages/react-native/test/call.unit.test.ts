import { type RedirectingServer, startRedirectingServer } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { callHerald } from "../src/call.ts";

let server: RedirectingServer;
beforeAll(async () => {
  server = await startRedirectingServer();
});
afterAll(() => server.stop());

test.each(["PUT devices/dev_1/user", "PUT notifications/ntf_1/open"])(
  "a redirect of %s gets neither credential nor body, and the change is kept",
  async (route) => {
    await expect(callHerald(server.url, route, { user_token: "secret" }, "hdc_secret")).rejects.toMatchObject({
      slug: "offline",
      retry: true,
    });
    expect(server.followed).toEqual([]);
  },
);
