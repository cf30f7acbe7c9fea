import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, test } from "vitest";
import { type Browser, startBrowser } from "../browser/browser.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { startTwoPorts, type TwoPorts } from "../hostile/second-port.ts";
import { type Keycloak, startKeycloak } from "./keycloak.ts";
import { keycloak, orSkipped } from "./programs.ts";

/** The page on sign-in, with a real Keycloak and a real Chromium. */

const clientSecret = randomBytes(24).toString("base64url");
const people = {
  maria: { first: "Maria", last: "Lopez", groups: ["support"] },
  ada: { first: "Ada", last: "Admin", groups: ["herald-admins"] },
  sam: { first: "Sam", last: "Shop", groups: ["shop-team", "support"] },
  kim: { first: "Kim", last: "Cook", groups: ["kitchen"] },
  zoe: { first: "Zoë", last: "Ünal 你好", groups: ["support"] },
};
const home = await orSkipped("sign-in at Keycloak was not tested", keycloak);

describe.runIf(home)("sign-in at Keycloak", () => {
  let provider: Keycloak;
  let system: System;
  let gateway: TwoPorts;
  let origin: string;
  let browser: Browser;
  let page: Awaited<ReturnType<Browser["visit"]>>;
  beforeAll(async () => {
    provider = await startKeycloak(home as string, clientSecret, people);
    system = await startSystem({ console: true });
    const project = await system.project("Shop");
    const groups = join(system.folder, "groups.yaml");
    const guide = await readFile(join(import.meta.dirname, "../../docs/how-to/sign-in-with-your-company.md"), "utf8");
    const [, block = ""] = /```yaml\n(herald-admins:[\s\S]*?)```/.exec(guide) ?? [];
    await writeFile(groups, block.replace(/prj_\w+/, project.id));
    gateway = await startTwoPorts(system, (operators) => ({
      HERALD_GATEWAY_OIDC_ISSUER: provider.issuer,
      HERALD_GATEWAY_OIDC_CLIENT_ID: "herald",
      HERALD_GATEWAY_OIDC_CLIENT_SECRET: clientSecret,
      HERALD_GATEWAY_OIDC_URL: operators,
      HERALD_GATEWAY_OIDC_GROUPS_FILE: groups,
    }));
    origin = gateway.operators;
    await provider.redirectTo(origin);
    browser = await startBrowser(system);
    page = await browser.visit(`${origin}/console/`);
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
    await system?.stop();
    await provider?.stop();
  });
  logOnFailure(() => system);

  const account = (name: string) => page.getByRole("button", { name: `Account: ${name}` }).waitFor();
  const toKeycloak = async () => {
    await page.goto(`${origin}/console/`);
    await page.getByRole("link", { name: "Sign in with your company" }).click();
  };
  const typeIn = async (username: string, password = "secret") => {
    if (await page.locator("#username").isVisible()) await page.locator("#username").fill(username);
    await page.locator("#password").fill(password);
    await page.locator("#kc-login").click();
  };
  /** As another person, on this person's own device. */
  const signIn = async (username: string) => {
    await page.context().clearCookies();
    await toKeycloak();
    await page.locator("#username").waitFor();
    await typeIn(username);
  };
  /** Keycloak's session is still there, so it asks for no password. */
  const signInAgain = () => page.goto(`${origin}/admin/v1/sign-in/oidc?return_to=/console/`);

  test("roles follow from groups, also of several, and a name may be in any script", async () => {
    await signIn("maria");
    await account("Maria Lopez viewer");
    await signIn("ada");
    await account("Ada Admin admin");
    await signIn("zoe");
    await account("Zoë Ünal 你好 viewer");
    await signIn("sam");
    await account("Sam Shop viewer");
  });

  test("who is in no group is told so, and a wrong password is Keycloak's matter", async () => {
    await signIn("kim");
    await page.getByText("You may not use Herald yet").waitFor();
    await page.context().clearCookies();
    await toKeycloak();
    await typeIn("maria", "wrong");
    await page.getByText("Invalid username or password").waitFor();
    await typeIn("maria");
    await account("Maria Lopez viewer");
  });

  test.for(["RS256", "PS256", "ES256", "ES384", "RS512", "EdDSA"])(
    "a token signed by %s with a key that was made a moment ago signs in",
    async (algorithm) => {
      const realm = await provider.call("GET", "");
      const kind = algorithm.startsWith("ES")
        ? "ecdsa-generated"
        : algorithm === "EdDSA"
          ? "eddsa-generated"
          : "rsa-generated";
      const curve = { ES256: "P-256", ES384: "P-384" }[algorithm];
      await provider.call("POST", "/components", {
        ...{
          name: `new ${algorithm}`,
          providerId: kind,
          providerType: "org.keycloak.keys.KeyProvider",
          parentId: realm.id,
        },
        config: {
          priority: ["200"],
          ...(kind === "rsa-generated" && { algorithm: [algorithm] }),
          ...(curve && { ecdsaEllipticCurveKey: [curve] }),
        },
      });
      await provider.changeClient({ attributes: { "id.token.signed.response.alg": algorithm } });
      await signIn("maria");
      await account("Maria Lopez viewer");
    },
  );

  test("a new group counts at the next sign-in, which asks for no password", async () => {
    await signIn("maria");
    await account("Maria Lopez viewer");
    const [user] = await provider.call("GET", "/users?username=maria");
    const [group] = await provider.call("GET", "/groups?search=herald-admins");
    await provider.call("PUT", `/users/${user.id}/groups/${group.id}`);
    await signInAgain();
    await account("Maria Lopez admin");
    await provider.call("DELETE", `/users/${user.id}/groups/${group.id}`);
    await signInAgain();
    await account("Maria Lopez viewer");
  });

  test("someone in 120 groups signs in", async () => {
    const [user] = await provider.call("GET", "/users?username=sam");
    for (let number = 0; number < 120; number += 1) {
      await provider.call("POST", "/groups", { name: `a-rather-long-name-of-a-group-${number}` });
      const [group] = await provider.call("GET", `/groups?search=a-rather-long-name-of-a-group-${number}&exact=true`);
      await provider.call("PUT", `/users/${user.id}/groups/${group.id}`);
    }
    await signIn("sam");
    await account("Sam Shop");
  });

  test("signing out leads to Keycloak, which asks once, and back to the console", async () => {
    await signIn("maria");
    await account("Maria Lopez viewer");
    await page.getByRole("button", { name: /^Account/ }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.locator("#kc-logout").click();
    await page.waitForURL(`${origin}/console/**`);
    await toKeycloak();
    await page.locator("#username").waitFor();
  });

  test("a wrong client secret is named, and corrected at Keycloak", async () => {
    await provider.changeClient({ secret: "another-secret-than-herald-has" });
    await signIn("maria");
    await page.getByText("identity provider refuses Herald").waitFor();
    await provider.changeClient({ secret: clientSecret });
    await signIn("maria");
    await account("Maria Lopez viewer");
  });
});
