import type { LookupAddress } from "node:dns";
import { once } from "node:events";
import { type AddressInfo, createServer, type LookupFunction, type Server, type Socket } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { type ConnectProxy, startConnectProxy } from "@herald/testing";
import { generate } from "selfsigned";
import { afterEach, describe, expect, test } from "vitest";
import { createOutboundProxy, proxyAddressOf } from "./proxy.ts";
import { ProxyError } from "./proxy-tunnel.ts";
import { notPublicText, publicLookup } from "./public-endpoint.ts";

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const stopLater = (proxy: ConnectProxy): ConnectProxy => {
  ends.push(proxy.stop);
  return proxy;
};

/** A TCP server on a free port. */
const tcp = async (onSocket: (socket: Socket) => void): Promise<number> => {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    onSocket(socket);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  ends.push(async () => {
    for (const socket of sockets) socket.destroy();
    await once(server.close(), "close");
  });
  return (server.address() as AddressInfo).port;
};
const echo = () => tcp((socket) => socket.pipe(socket));

const url = new URL("https://push.example.com/v1/x");
const resolving = (...addresses: string[]): LookupFunction =>
  publicLookup((_name, _options, done) =>
    done(
      null,
      addresses.map((address): LookupAddress => ({ address, family: address.includes(":") ? 6 : 4 })),
    ),
  );

const dial = (settings: Partial<Parameters<typeof createOutboundProxy>[0]>, server = url, lookup?: LookupFunction) => {
  const to = createOutboundProxy({ NO_PROXY: "", ...settings })?.dialTo(server, lookup);
  if (to === undefined) throw new Error("goes directly");
  return to();
};

const failureOf = async (dialling: Promise<Socket>): Promise<string> => {
  try {
    (await dialling).destroy();
    return "connected";
  } catch (error) {
    return `${error instanceof ProxyError ? "proxy: " : ""}${(error as Error).message}`;
  }
};

test("without HTTPS_PROXY there is none", () => {
  expect(createOutboundProxy({ NO_PROXY: "" })).toBeUndefined();
  expect(proxyAddressOf({})).toBeUndefined();
});

test("NO_PROXY and this machine are reached directly", () => {
  const proxy = createOutboundProxy({ HTTPS_PROXY: "http://proxy.example:3128/", NO_PROXY: "push.example.com" });
  expect(proxy?.dialTo(url)).toBeUndefined();
  expect(proxy?.dialTo(new URL("https://[::1]:8443/"))).toBeUndefined();
  expect(proxy?.dialTo(new URL("https://api.push.apple.com"))).toBeTypeOf("function");
});

describe("a tunnel", () => {
  test("asks by name and port, carries bytes both ways, and outlives the signal of its opening", async () => {
    const port = await echo();
    const proxy = stopLater(await startConnectProxy({ portOf: () => port }));
    const closing = new AbortController();
    const socket = await createOutboundProxy({ HTTPS_PROXY: proxy.url, NO_PROXY: "" })?.dialTo(url)?.(closing.signal);
    closing.abort();
    socket?.write("through");
    expect(String((await once(socket as Socket, "data"))[0])).toBe("through");
    expect(proxy.asked).toEqual([{ authority: "push.example.com:443", authorization: undefined }]);
    socket?.destroy();
    await expect.poll(proxy.tunnels).toBe(0);
  });

  test.each([
    ["p%40ss%3Aword", "herald:p@ss:word"],
    ["", "herald:"],
    ["%C3%BC", "herald:ü"],
  ])("logs in with the user and the password %j of the URL, which no one sees", async (password, expected) => {
    const port = await echo();
    const proxy = stopLater(await startConnectProxy({ portOf: () => port }));
    const HttpsProxy = proxy.url.replace("http://", `http://herald:${password}@`);
    (await dial({ HTTPS_PROXY: HttpsProxy })).destroy();
    const basic = `Basic ${Buffer.from(expected).toString("base64")}`;
    expect(proxy.asked).toEqual([{ authority: "push.example.com:443", authorization: basic }]);
    expect(proxyAddressOf({ HTTPS_PROXY: HttpsProxy })).toBe(new URL(proxy.url).host);
  });

  test("goes through a proxy with TLS, too, whose certificate must be trusted", async () => {
    const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
      extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
    });
    const proxy = stopLater(await startConnectProxy({ tls: { cert, key } }));
    expect(await failureOf(dial({ HTTPS_PROXY: proxy.url }))).toBe(
      "proxy: cannot reach the proxy: DEPTH_ZERO_SELF_SIGNED_CERT",
    );
    expect(proxy.asked).toEqual([]);
    const usual = getCACertificates();
    ends.push(async () => setDefaultCACertificates(usual));
    setDefaultCACertificates([...usual, cert]);
    const port = await echo();
    const trusted = stopLater(await startConnectProxy({ tls: { cert, key }, portOf: () => port }));
    const socket = await dial({ HTTPS_PROXY: trusted.url });
    socket.write("through");
    expect(String((await once(socket, "data"))[0])).toBe("through");
    socket.destroy();
  });

  test.each([
    [403, false, "the proxy refuses connections to push.example.com:443 (403)"],
    [404, false, "the proxy refuses connections to push.example.com:443 (404)"],
    [407, false, "the proxy asks for a user and password (407)"],
    [401, true, "the proxy refuses Herald's user and password (401)"],
    [407, true, "the proxy refuses Herald's user and password (407)"],
    [302, false, "the proxy gives no connection to push.example.com:443 (302)"],
    [100, false, "the proxy gives no connection to push.example.com:443 (100)"],
    [502, false, "the proxy gives no connection to push.example.com:443 (502)"],
    [503, false, "the proxy gives no connection to push.example.com:443 (503)"],
    [504, false, "the proxy gives no connection to push.example.com:443 (504)"],
  ])("that is answered with %i (user: %s) says so, and nothing else of the answer", async (status, withUser, words) => {
    const answer = () => `HTTP/1.1 ${status} Internal\r\nContent-Length: 6\r\nX-Inside: 10.1.2.3\r\n\r\nsecret`;
    const proxy = stopLater(await startConnectProxy({ answer }));
    const HttpsProxy = withUser ? proxy.url.replace("//", "//herald:pass@") : proxy.url;
    expect(await failureOf(dial({ HTTPS_PROXY: HttpsProxy }))).toBe(`proxy: ${words}`);
  });

  test.each<[string, string | Buffer, string]>([
    ["speaks something else", "SSH-2.0-OpenSSH_9\r\n", "the proxy does not answer as a proxy"],
    ["speaks TLS", Buffer.from("15030100020228", "hex"), "the proxy does not answer as a proxy"],
    [
      "answers endless headers",
      `HTTP/1.1 200 OK\r\n${"x-a: b\r\n".repeat(20_000)}`,
      "the proxy does not answer as a proxy",
    ],
    ["sends more than its answer", "HTTP/1.1 200 OK\r\n\r\nhello", "the proxy does not answer as a proxy"],
    ["closes", "", "cannot reach the proxy: ECONNRESET"],
  ])("to something that %s fails", async (_, says, words) => {
    const port = await tcp((socket) => socket.once("data", () => socket.end(says)));
    expect(await failureOf(dial({ HTTPS_PROXY: `http://127.0.0.1:${port}/` }))).toBe(`proxy: ${words}`);
  });

  test("to a closed port or an unknown name fails without an address in its words", async () => {
    const port = await tcp(() => {});
    for (const end of ends.splice(0)) await end();
    expect(await failureOf(dial({ HTTPS_PROXY: `http://127.0.0.1:${port}/` }))).toBe(
      "proxy: cannot reach the proxy: ECONNREFUSED",
    );
    expect(await failureOf(dial({ HTTPS_PROXY: "http://proxy.invalid:3128/" }))).toMatch(
      /^proxy: cannot reach the proxy: (ENOTFOUND|EAI_AGAIN)$/,
    );
  });

  test("that is never answered ends, and so does one whose transport is closed", async () => {
    const proxy = stopLater(await startConnectProxy({ answer: () => "" }));
    expect(await failureOf(dial({ HTTPS_PROXY: proxy.url }))).toBe("proxy: the proxy does not answer within 3 s");
    const closing = new AbortController();
    const dialling = createOutboundProxy({ HTTPS_PROXY: proxy.url, NO_PROXY: "" })?.dialTo(url)?.(closing.signal);
    await expect.poll(() => proxy.asked.length).toBe(2);
    closing.abort(new Error("closed"));
    expect(await failureOf(dialling as Promise<Socket>)).toBe("closed");
  });
});

describe("a name that a stranger chose", () => {
  test("is resolved and checked here, and the proxy is asked for the address: IPv4 first", async () => {
    const port = await echo();
    const proxy = stopLater(await startConnectProxy({ portOf: () => port }));
    const HttpsProxy = proxy.url;
    (await dial({ HTTPS_PROXY: HttpsProxy }, url, resolving("2606:4700::1", "8.8.8.8"))).destroy();
    (await dial({ HTTPS_PROXY: HttpsProxy }, url, resolving("2606:4700::1"))).destroy();
    expect(proxy.asked.map(({ authority }) => authority)).toEqual(["8.8.8.8:443", "[2606:4700::1]:443"]);
  });

  test("is never asked for if it has an address that is not public, and its second answer changes nothing", async () => {
    const proxy = stopLater(await startConnectProxy({ answer: () => "HTTP/1.1 403 No\r\n\r\n" }));
    const HttpsProxy = proxy.url;
    for (const address of ["127.0.0.1", "10.0.0.1", "169.254.169.254", "fd00::1"])
      expect(await failureOf(dial({ HTTPS_PROXY: HttpsProxy }, url, resolving("8.8.8.8", address)))).toBe(
        notPublicText,
      );
    expect(proxy.asked).toEqual([]);
    const answers = ["8.8.8.8", "127.0.0.1"];
    const rebinding: LookupFunction = (name, options, done) => resolving(answers.shift() ?? "")(name, options, done);
    await failureOf(dial({ HTTPS_PROXY: HttpsProxy }, url, rebinding));
    expect(proxy.asked.map(({ authority }) => authority)).toEqual(["8.8.8.8:443"]);
  });

  test("that only the proxy could resolve fails with the variable that lets it", async () => {
    const proxy = stopLater(await startConnectProxy());
    const unknown = publicLookup((_name, _options, done) =>
      done(Object.assign(new Error("getaddrinfo ENOTFOUND push.example.com"), { code: "ENOTFOUND" }), []),
    );
    expect(await failureOf(dial({ HTTPS_PROXY: proxy.url }, url, unknown))).toBe(
      "getaddrinfo ENOTFOUND push.example.com (Herald resolves this name itself, unless HERALD_PROXY_RESOLVES is set)",
    );
    expect(proxy.asked).toEqual([]);
  });

  test("is left to the proxy with HERALD_PROXY_RESOLVES, but for names of inner networks", async () => {
    const port = await echo();
    const proxy = stopLater(await startConnectProxy({ portOf: () => port }));
    const left = { HTTPS_PROXY: proxy.url, HERALD_PROXY_RESOLVES: true };
    const never: LookupFunction = () => expect.unreachable("was resolved here");
    (await dial(left, url, never)).destroy();
    for (const name of ["metadata.google.internal", "printer.local", "router.home.arpa", "db.corp", "a.lan"])
      expect(await failureOf(dial(left, new URL(`https://${name}/`), never))).toBe(notPublicText);
    expect(proxy.asked.map(({ authority }) => authority)).toEqual(["push.example.com:443"]);
  });
});
