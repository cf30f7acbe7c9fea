import assert from "node:assert/strict";
import { eventually } from "@herald/testing";
import type { Administration, Run } from "./first-push.ts";

const waits = { timeoutMs: 60_000 };

/**
 * Follows the link of the printed command like the console, and creates the first named operator. Checks that the port for apps serves
 * none of this.
 */
export const signFirstOperatorIn = async (command: string, gateway: string, run: Run): Promise<Administration> => {
  const link = (await run("sh", "-c", command)).trim();
  const [, url = "", code = ""] = /^(http:\S+)\/console#code=(hoc_\S+)$/.exec(link) ?? [];
  assert.ok(code, `the command printed something else than a link: ${link}`);

  const page = await fetch(`${url}/console`);
  assert.equal(page.status, 200);
  const [, script = ""] = /<script type="module"[^>]* src="([^"]+)"/.exec(await page.text()) ?? [];
  assert.equal((await fetch(new URL(script, `${url}/console/`))).status, 200, `the console's script ${script}`);

  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const signedIn = await post("/admin/v1/sessions", { code });
  assert.equal(signedIn.status, 201);
  const { data: session } = (await signedIn.json()) as { data: { csrf_token: string } };
  assert.equal((await post("/admin/v1/sessions", { code })).status, 401, "the link works once");

  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  const operator = { name: "First operator", role: "admin" };
  const made = await post("/admin/v1/operators", { operator }, { cookie, "herald-csrf": session.csrf_token });
  const { token } = (await made.json()) as { token: string };
  assert.match(token, /^hop_/);

  const get = async (path: string, base = url) => {
    const response = await fetch(`${base}${path}`, { headers: { authorization: `Bearer ${token}` } });
    return { status: response.status, text: await response.text() };
  };
  await eventually(async () => assert.equal((await get("/admin/v1/operators")).status, 200), waits);
  await eventually(async () => assert.match((await get("/admin/v1/audit")).text, /"action":"createOperator"/), waits);
  assert.match((await get("/admin/v1/audit/verify")).text, /"valid":true/);
  for (const path of ["/admin/v1/operators", "/console"]) assert.equal((await get(path, gateway)).status, 404, path);
  return { url, token };
};
