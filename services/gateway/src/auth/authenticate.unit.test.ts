import {
  deviceRequests,
  newDeviceCredential,
  newDeviceId,
  newProjectId,
  newProjectToken,
  newTokenId,
  type ProjectId,
  type Scope,
  secretHash,
  type TokenRecord,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { describe, expect, test } from "vitest";
import type { SendRequest } from "../bus-connection.ts";
import type { GatewayConfig } from "../config.ts";
import type { LimitsOfProject } from "../limits-of-project.ts";
import { createAuthenticate } from "./authenticate.ts";
import { type Access, adminOnly, anyClient, noCredential, project, projectOrDevice, projectOrUser } from "./caller.ts";
import { createOperatorDirectory, createTokenDirectory } from "./directories.ts";
import { createRateLimits } from "./rate-limits.ts";
import { createSessionStore } from "./sessions.ts";

const now = new Date("2030-01-31T09:00:00.000Z");
const [projectId, deviceId, tokenId] = [newProjectId(now), newDeviceId(now), newTokenId(now)];
const adminToken = "the-admin-token";
const address = "203.0.113.7";
const failures = 4;

/** An authenticator that knows one project token and one device. Each address may fail `failures` times. */
const open = (scopes: readonly Scope[] = ["send", "read"]) => {
  const token = newProjectToken();
  const credential = newDeviceCredential(projectId, deviceId);
  const record: TokenRecord = { id: tokenId, projectId, scopes: [...scopes] };
  const questions: unknown[] = [];
  const ask = async (
    question: { readonly subject: string },
    data: { readonly credentialHash: string; readonly userToken?: string },
  ) => {
    questions.push({ subject: question.subject, ...data });
    if (data.userToken?.endsWith(".forged")) throw new HeraldError("user-token-invalid", "user_token: is not signed");
    if (data.userToken !== undefined) return { userId: "ann" };
    return { valid: data.credentialHash === secretHash(credential) };
  };
  const plenty = 1_000;
  const limits = createRateLimits(
    {
      HERALD_GATEWAY_LIMIT_FAILURES: failures,
      HERALD_GATEWAY_LIMIT_CLIENTS: plenty,
      HERALD_GATEWAY_LIMIT_PROJECT: 100 * plenty,
      HERALD_GATEWAY_QUOTA_SENDS: plenty,
      HERALD_GATEWAY_LIMIT_NEW_DEVICES: 1_000,
    } as GatewayConfig,
    { forAll: {} as LimitsOfProject["forAll"], part: () => plenty },
  );
  const tokens = createTokenDirectory(
    {
      get: (key) => (key === secretHash(token) ? record : undefined),
      entries: () => new Map().entries(),
      fetch: async (_, permit) => {
        await permit();
        return undefined;
      },
      ready: () => true,
      start: () => {},
      stop: async () => {},
    },
    limits,
    () => now,
  );
  const none = {
    get: () => undefined,
    entries: () => new Map().entries(),
    fetch: async () => undefined,
    ready: () => true,
    start: () => {},
    stop: async () => {},
  };
  const operators = createOperatorDirectory(adminToken, none, limits, (own) => own);
  const bucket = (): never => {
    throw new Error("no test here has a session");
  };
  const sessions = createSessionStore({ replica: none, bucket, limits, now: () => now });
  const projects = { settings: async (id: ProjectId) => ({ id, openRegistration: true }) };
  const sendRequest = ask as unknown as SendRequest;
  const authenticate = createAuthenticate({ operators, sessions, projects, tokens, sendRequest, limits });
  return { authenticate, token, credential, questions };
};

const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

const userTokenOf = (payload: unknown, signature = "signed") =>
  ["e30", Buffer.from(JSON.stringify(payload)).toString("base64url"), signature].join(".");

describe("a user token", () => {
  const access = projectOrUser("read");

  test("is its user, which registry verifies in the project that it names", async () => {
    const { authenticate, token, questions } = open();
    for (const aud of [projectId, [projectId]]) {
      const caller = { kind: "user", projectId, userId: "ann" };
      expect(await authenticate(access, bearer(userTokenOf({ aud })), address)).toEqual(caller);
    }
    expect(questions).toHaveLength(2);
    expect(await authenticate(access, bearer(token), address)).toMatchObject({ kind: "project" });
  });

  test("is refused where users may do nothing, and without a project", async () => {
    const { authenticate, questions } = open();
    const refused = (given: string, where: Access = access) => authenticate(where, bearer(given), address);
    await expect(refused(userTokenOf({ aud: projectId }), projectOrDevice("read"))).rejects.toThrow("is invalid");
    for (const aud of [undefined, "prj_1", { a: 1 }])
      await expect(open().authenticate(access, bearer(userTokenOf({ aud })), address)).rejects.toThrow("is invalid");
    expect(questions).toEqual([]);
  });

  test("that is forged counts as a failure of the address", async () => {
    const { authenticate } = open();
    const forged = bearer(userTokenOf({ aud: projectId }, "forged"));
    for (let n = 0; n < failures; n++)
      await expect(authenticate(access, forged, address)).rejects.toMatchObject({ code: "user-token-invalid" });
    await expect(authenticate(access, forged, address)).rejects.toMatchObject({ code: "rate-limited" });
  });
});

describe("accepts", () => {
  test("a project token as its project with its scopes", async () => {
    const { authenticate, token, questions } = open();
    const caller = { kind: "project", projectId, tokenId, scopes: ["send", "read"] };
    expect(await authenticate(project("send"), bearer(token), address)).toEqual(caller);
    expect(await authenticate(project("send", "read"), bearer(token), address)).toEqual(caller);
    expect(await authenticate(projectOrDevice("read"), bearer(token), address)).toEqual(caller);
    expect(await authenticate(anyClient("read"), bearer(token), address)).toEqual(caller);
    expect(questions).toEqual([]);
  });

  test("a device credential as its device, which registry verifies by its hash", async () => {
    const { authenticate, credential, questions } = open();
    const caller = { kind: "device", projectId, deviceId };
    expect(await authenticate(projectOrDevice("send"), bearer(credential), address)).toEqual(caller);
    expect(questions).toEqual([
      { subject: deviceRequests.authenticate.subject, projectId, deviceId, credentialHash: secretHash(credential) },
    ]);
  });

  test("the admin token on operators' routes, as root", async () => {
    const { authenticate } = open();
    expect(await authenticate(adminOnly, bearer(adminToken), address)).toMatchObject({
      kind: "operator",
      operator: { id: "root", role: "admin" },
    });
    await expect(authenticate(project("send"), bearer(adminToken), address)).rejects.toMatchObject({
      code: "unauthenticated",
    });
  });

  test("a client without a header, or on routes that read no header", async () => {
    const { authenticate, token } = open();
    expect(await authenticate(anyClient("read"), {}, address)).toEqual({ kind: "client" });
    expect(await authenticate(noCredential, {}, address)).toEqual({ kind: "client" });
    expect(await authenticate(noCredential, bearer(token), address)).toEqual({ kind: "client" });
    expect(await authenticate(noCredential, { authorization: "nonsense" }, address)).toEqual({ kind: "client" });
  });

  test.each(["bearer ", "BEARER   "])("%j is accepted as scheme, and so are blanks at the end", async (word) => {
    const { authenticate, token } = open();
    expect(await authenticate(project("send"), { authorization: `${word}${token}  ` }, address)).toMatchObject({
      kind: "project",
    });
  });
});

describe("refuses", () => {
  const unknown = 'Bearer realm="herald", error="invalid_token"';

  test.each([
    ["no header", project("send"), {}, "send `Bearer` and a project token (hpt_…)", 'Bearer realm="herald"'],
    [
      "no header where a device may ask",
      projectOrDevice("send"),
      {},
      "send `Bearer` and a project token (hpt_…) or a device credential (hdc_…)",
      'Bearer realm="herald"',
    ],
    [
      "no header for an operator",
      adminOnly,
      {},
      "send `Bearer` and an operator token (hop_…)",
      'Bearer realm="herald"',
    ],
    [
      "a wrong admin token",
      adminOnly,
      bearer("the-admin-tokem"),
      "the credential is invalid; send `Bearer` and an operator token (hop_…)",
      unknown,
    ],
    [
      "an unknown token",
      project("send"),
      bearer(newProjectToken()),
      "the credential is invalid; send `Bearer` and a project token (hpt_…)",
      unknown,
    ],
    [
      "what is none, beside what a client may do",
      anyClient("send"),
      bearer("hpt_nonsense"),
      "the credential is invalid; send `Bearer` and a project token (hpt_…) or a device credential (hdc_…) or `project_id` and `identifier` in the body, without this header",
      unknown,
    ],
    [
      "a device credential that registry does not know",
      projectOrDevice("send"),
      bearer(newDeviceCredential(projectId, deviceId)),
      "the credential is invalid; send `Bearer` and a project token (hpt_…) or a device credential (hdc_…)",
      unknown,
    ],
  ])("%s", async (_, access, header, message, challenge) => {
    const { authenticate } = open();
    await expect(authenticate(access, header, address)).rejects.toMatchObject({
      code: "unauthenticated",
      message: `authorization: ${message}`,
      headers: { "www-authenticate": challenge },
    });
  });

  test.each([
    ["another scheme", (token: string) => `Basic ${token}`],
    ["a scheme before it", (token: string) => `Basic Bearer ${token}`],
    ["no blank", (token: string) => `Bearer${token}`],
    ["two secrets", (token: string) => `Bearer ${token} ${token}`],
    ["a line break", (token: string) => `Bearer ${token}\n`],
    ["nothing", () => "Bearer "],
  ])("a good token after %s", async (_, header) => {
    const { authenticate, token } = open();
    await expect(authenticate(project("send"), { authorization: header(token) }, address)).rejects.toMatchObject({
      code: "unauthenticated",
    });
  });

  test("a device credential where only a project token is accepted, without a request to registry", async () => {
    const { authenticate, credential, questions } = open();
    await expect(authenticate(project("send"), bearer(credential), address)).rejects.toMatchObject({
      code: "forbidden",
      message: "authorization: a device credential cannot do this; send a project token (hpt_…)",
    });
    expect(questions).toEqual([]);
  });

  test("a project token on a device's route", async () => {
    const { authenticate, token } = open();
    await expect(authenticate({ by: ["device"] }, bearer(token), address)).rejects.toMatchObject({
      code: "forbidden",
      message: "authorization: this credential cannot do this; send a device credential (hdc_…)",
      headers: undefined,
    });
  });

  test("a token that lacks a scope, and names the scopes it needs and has", async () => {
    const { authenticate, token } = open(["read"]);
    await expect(authenticate(project("send", "read", "devices"), bearer(token), address)).rejects.toMatchObject({
      code: "forbidden",
      message: "authorization: the project token lacks the scope `send`, `devices`; it has `read`",
      headers: {
        "www-authenticate": 'Bearer realm="herald", error="insufficient_scope", scope="send read devices"',
      },
    });
  });

  test.each([project("send"), projectOrDevice("send"), anyClient("send")])(
    "a token that only reads, by %j",
    async (access) => {
      const { authenticate, token } = open(["read"]);
      await expect(authenticate(access, bearer(token), address)).rejects.toMatchObject({ code: "forbidden" });
    },
  );

  test("an address that guesses, before it asks registry, and no other address", async () => {
    for (const header of [{}, bearer(newProjectToken()), bearer("nonsense")]) {
      const { authenticate, token, credential, questions } = open();
      for (let guess = 0; guess < failures; guess++) {
        await expect(authenticate(project("send"), header, address)).rejects.toMatchObject({ code: "unauthenticated" });
      }
      await expect(authenticate(project("send"), header, address)).rejects.toMatchObject({ code: "rate-limited" });
      const device = authenticate(projectOrDevice("send"), bearer(credential), address);
      await expect(device).rejects.toMatchObject({ code: "rate-limited" });
      expect(questions).toEqual([]);
      // A token in memory costs nothing to check, so it stays valid for other clients at the same address.
      expect(await authenticate(project("send"), bearer(token), address)).toMatchObject({ kind: "project" });
      const elsewhere = authenticate(projectOrDevice("send"), bearer(credential), "203.0.113.8");
      expect(await elsewhere).toMatchObject({ kind: "device" });
    }
  });

  test("a known caller without counting a failure", async () => {
    const { authenticate, token } = open(["read"]);
    for (let again = 0; again <= failures + 1; again++) {
      await expect(authenticate(project("send"), bearer(token), address)).rejects.toMatchObject({ code: "forbidden" });
    }
  });
});
