import { brotliCompressSync, constants, deflateSync, gzipSync } from "node:zlib";

/** A well-formed request, which the shapes below break. */
export type Target = {
  readonly method: string;
  readonly path: string;
  /** Lines of the head, each with its end. */
  readonly credential: string;
  readonly body: string;
};

type Shape = (target: Target) => string | Buffer;

const bytes = (text: string, ...rest: (string | Buffer)[]) =>
  Buffer.concat([Buffer.from(text, "latin1"), ...rest.map((part) => Buffer.from(part as string))]);
const start = ({ method, path }: Target) => `${method} ${path} HTTP/1.1\r\n`;
const always = ({ credential }: Target) => `Host: x\r\n${credential}Connection: close\r\n`;
const json = "Content-Type: application/json\r\n";
const second = "GET /api/v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n";

/** Breaks the head with extra lines. The length of the body is right. */
const lines =
  (extra: string, body = ""): Shape =>
  (target) =>
    bytes(`${start(target)}${always(target)}${json}${extra}\r\n`, body);

const lengthened = (target: Target, headers: string, body: string | Buffer) =>
  bytes(`${start(target)}${always(target)}${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`, body);
const content =
  (body: string | Buffer, headers = json): Shape =>
  (target) =>
    lengthened(target, headers, body);

const onPath =
  (path: (path: string) => string): Shape =>
  (target) =>
    bytes(`${target.method} ${path(target.path)} HTTP/1.1\r\n${always(target)}\r\n`);

const onStart =
  (line: (target: Target) => string): Shape =>
  (target) =>
    bytes(`${line(target)}\r\n${always(target)}\r\n`);

const blank = Buffer.alloc(64 * 1024 * 1024, " ");
const encoded = (encoding: string) => `${json}Content-Encoding: ${encoding}\r\n`;
const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };

const framing: Record<string, Shape> = {
  "length and chunks": lines("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", `0\r\n\r\n${second}`),
  "chunks and length": lines("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", `0\r\n\r\n${second}`),
  "two lengths": lines("Content-Length: 2\r\nContent-Length: 3\r\n", `{}${second}`),
  "a list of lengths": lines("Content-Length: 2, 3\r\n", `{}${second}`),
  "a signed length": lines("Content-Length: +2\r\n", "{}"),
  "a negative length": lines("Content-Length: -1\r\n", "{}"),
  "a hexadecimal length": lines("Content-Length: 0x2\r\n", "{}"),
  "a length with an exponent": lines("Content-Length: 1e1\r\n", "{}"),
  "a length of two words": lines("Content-Length: 2 2\r\n", "{}"),
  "a length beyond all numbers": lines(`Content-Length: ${"9".repeat(30)}\r\n`, "{}"),
  "an empty length": lines("Content-Length: \r\n", "{}"),
  "a length longer than the body": lines("Content-Length: 5000\r\n", "{}"),
  "an unknown transfer coding": lines("Transfer-Encoding: xchunked\r\n", `0\r\n\r\n${second}`),
  "chunked not last": lines("Transfer-Encoding: chunked, identity\r\n", `0\r\n\r\n${second}`),
  "the identity coding": lines("Transfer-Encoding: identity\r\n", `0\r\n\r\n${second}`),
  "two codings": lines("Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n", `0\r\n\r\n${second}`),
  "a space before the colon": lines("Transfer-Encoding : chunked\r\n", `0\r\n\r\n${second}`),
  "a space before the name": lines(" Transfer-Encoding: chunked\r\n", `0\r\n\r\n${second}`),
  "a vertical tab before the value": lines("Transfer-Encoding:\u000bchunked\r\n", `0\r\n\r\n${second}`),
  "a chunk of no number": lines("Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n"),
  "a chunk of a negative number": lines("Transfer-Encoding: chunked\r\n", "-1\r\n{}\r\n0\r\n\r\n"),
  "a chunk beyond all numbers": lines("Transfer-Encoding: chunked\r\n", `${"F".repeat(20)}\r\n{}\r\n0\r\n\r\n`),
  "a chunk with a prefix": lines("Transfer-Encoding: chunked\r\n", "0x2\r\n{}\r\n0\r\n\r\n"),
  "a chunk that is longer than it says": lines("Transfer-Encoding: chunked\r\n", "1\r\n{}\r\n0\r\n\r\n"),
  "a chunk extension without an end": lines("Transfer-Encoding: chunked\r\n", `2;${"a".repeat(40_000)}\r\n{}\r\n`),
  "chunks that break off": lines("Transfer-Encoding: chunked\r\n", "5\r\n{}"),
  "trailers without an end": lines("Transfer-Encoding: chunked\r\n", `0\r\n${"X: y\r\n".repeat(5_000)}`),
};

const heads: Record<string, Shape> = {
  "a folded line": lines("X-A: a\r\n b\r\n"),
  "a bare line feed": lines("X-A: a\nX-B: b\r\n"),
  "a bare carriage return": lines("X-A: a\rX-B: b\r\n"),
  "a NUL in a value": lines("X-A: a\0b\r\n"),
  "a control character in a value": lines("X-A: a\u0001b\r\n"),
  "no name": lines(": x\r\n"),
  "no colon": lines("X-A\r\n"),
  "a name with a space": lines("X A: b\r\n"),
  "a name with eight bits": lines("X-\u00e4: b\r\n"),
  "a name with a NUL": lines("X\0A: b\r\n"),
  "a line of 20 kB": lines(`X-A: ${"a".repeat(20_000)}\r\n`),
  "a line of a megabyte": lines(`X-A: ${"a".repeat(1_000_000)}\r\n`),
  "a name of 20 kB": lines(`${"a".repeat(20_000)}: x\r\n`),
  "five thousand lines": lines("X: y\r\n".repeat(5_000)),
  "a credential of 20 kB": lines(`Authorization: Bearer ${"a".repeat(20_000)}\r\n`),
  "two hosts": lines("Host: y\r\n"),
  "an unknown expectation": lines("Expect: the-unexpected\r\nContent-Length: 2\r\n", "{}"),
  "no host": (target) => bytes(`${start(target)}Connection: close\r\n\r\n`),
  "all lines end in line feeds": (target) => bytes(`${start(target)}${always(target)}\r\n`.replaceAll("\r\n", "\n")),
  "all lines end in carriage returns": (target) => bytes(`${start(target)}${always(target)}\r\n`.replaceAll("\n", "")),
};

const starts: Record<string, Shape> = {
  "HTTP/0.9": ({ path }) => `GET ${path}\r\n`,
  "a version that is none": onStart(({ method, path }) => `${method} ${path} HTTP/9.9`),
  "HTTP/2 in words": onStart(({ method, path }) => `${method} ${path} HTTP/2.0`),
  "a version with a tail": onStart(({ method, path }) => `${method} ${path} HTTP/1.1x`),
  "a version in small letters": onStart(({ method, path }) => `${method} ${path} http/1.1`),
  "the preface of HTTP/2": () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
  "a greeting of TLS": () => Buffer.from("16030100a5010000a10303", "hex"),
  "no start line": (target) => `\r\n\r\n\r\n${always(target)}\r\n`,
  "a method of a kilobyte": onStart(({ path }) => `${"A".repeat(1_000)} ${path} HTTP/1.1`),
  "an unknown method": onStart(({ path }) => `FETCH ${path} HTTP/1.1`),
  "a method in small letters": onStart(({ method, path }) => `${method.toLowerCase()} ${path} HTTP/1.1`),
  "a method with a NUL": onStart(({ method, path }) => `${method}\0 ${path} HTTP/1.1`),
  "another method of HTTP": onStart(({ path }) => `PROPFIND ${path} HTTP/1.1`),
  TRACE: onStart(({ path }) => `TRACE ${path} HTTP/1.1`),
  CONNECT: onStart(() => "CONNECT 169.254.169.254:80 HTTP/1.1"),
  "two spaces": onStart(({ method, path }) => `${method}  ${path} HTTP/1.1`),
  "a tab": onStart(({ method, path }) => `${method}\t${path}\tHTTP/1.1`),
  "an overriden method": (target) =>
    bytes(`TRACE ${target.path} HTTP/1.1\r\n${always(target)}X-HTTP-Method-Override: GET\r\n\r\n`),
};

const paths: Record<string, Shape> = {
  "another site": onPath((path) => `http://169.254.169.254${path}/x`),
  "no slash": onPath((path) => path.slice(1)),
  "a star": onPath(() => "*"),
  "a NUL in the path": onPath((path) => `${path}/a\0b`),
  "an encoded NUL": onPath((path) => `${path}/%00`),
  "a lonely percent": onPath((path) => `${path}/%`),
  "an escape that is none": onPath((path) => `${path}/%zz`),
  "an escape that is no UTF-8": onPath((path) => `${path}/%ff%fe`),
  "an escape that breaks off": onPath((path) => `${path}/%E0%A4%A`),
  "an overlong slash": onPath((path) => `${path}/..%c0%af..%c0%afetc`),
  "an encoded way up": onPath((path) => `${path}/..%2f..%2f..%2fetc%2fpasswd`),
  "a way up": onPath((path) => `${path}/../../../../etc/passwd`),
  "two slashes": onPath((path) => `/${path}`),
  backslashes: onPath((path) => path.replaceAll("/", "\\")),
  "eight bits": onPath((path) => `${path}/\u00e4\u00ff`),
  "a space": onPath((path) => `${path}/a b`),
  "a fragment": onPath((path) => `${path}/#x`),
  "15 kB": onPath((path) => `${path}/${"a".repeat(15_000)}`),
  "200 kB": onPath((path) => `${path}/${"a".repeat(200_000)}`),
  "a thousand segments": onPath((path) => path + "/a".repeat(1_000)),
  "a thousand parameters": onPath((path) => `${path}?${"a=b&".repeat(1_000)}`),
  "a parameter of 15 kB": onPath((path) => `${path}?a=${"b".repeat(15_000)}`),
  "a parameter that is no UTF-8": onPath((path) => `${path}?per_pages=%ff%00`),
  "a parameter named for the prototype": onPath((path) => `${path}?__proto__[admin]=1&constructor=1`),
};

const bodies: Record<string, Shape> = {
  "bad UTF-8": content(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])),
  "UTF-16": content(Buffer.from('{"a":1}', "utf16le")),
  "no JSON": content("{'a':1}"),
  "half of it": (target) => lengthened(target, json, target.body.slice(0, -3)),
  "a hundred thousand brackets": content("[".repeat(100_000)),
  "a hundred thousand closed brackets": content("[".repeat(50_000) + "]".repeat(50_000)),
  "ten thousand objects deep": content(`${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`),
  __proto__: content('{"__proto__":{"admin":true}}'),
  "__proto__ further down": content('{"notification":{"ios":{"__proto__":{"admin":true}}}}'),
  constructor: content('{"constructor":{"prototype":{"admin":true}}}'),
  "a number beyond all numbers": content('{"a":1e999}'),
  "a number of 500 kB": content(`{"a":${"9".repeat(500_000)}}`),
  "a key of 500 kB": content(`{"${"a".repeat(500_000)}":1}`),
  "a hundred thousand keys": content(`{${Array.from({ length: 60_000 }, (_, at) => `"k${at}":1`).join(",")}}`),
  null: content("null"),
  "a text": content('"text"'),
  "a list": content("[]"),
  "a megabyte more than fits": content(`{"a":"${"x".repeat(2_000_000)}"}`),
  "a megabyte in chunks": lines("Transfer-Encoding: chunked\r\n", `1E8480\r\n${"x".repeat(2_000_000)}\r\n0\r\n\r\n`),
  "text/plain": (target) => lengthened(target, "Content-Type: text/plain\r\n", target.body),
  XML: content("<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>", "Content-Type: application/xml\r\n"),
  "a form": content("notification[title]=x", "Content-Type: application/x-www-form-urlencoded\r\n"),
  "a form in parts": content("--x\r\n\r\n{}\r\n--x--", "Content-Type: multipart/form-data; boundary=x\r\n"),
  "no type": (target) => lengthened(target, "", target.body),
  "another charset": (target) => lengthened(target, "Content-Type: application/json; charset=utf-16\r\n", target.body),
  "gzip that is none": content("not gzip at all", encoded("gzip")),
  "gzip that breaks off": content(gzipSync("{}".repeat(1_000)).subarray(0, 20), encoded("gzip")),
  "gzip twice": content(gzipSync(gzipSync("{}")), encoded("gzip, gzip")),
  "an unknown coding": content("{}", encoded("cow")),
  "a gzip bomb": content(gzipSync(blank), encoded("gzip")),
  "a deflate bomb": content(deflateSync(blank), encoded("deflate")),
  "a brotli bomb": content(brotliCompressSync(blank, brotli), encoded("br")),
};

/** Malformed or senseless requests. */
export const shapes: Readonly<Record<string, Shape>> = { ...framing, ...heads, ...starts, ...paths, ...bodies };

/** A well-formed request without a credential: however its bytes are changed, it must be refused. */
export const wellFormed = ({ method, path, body }: Target): Buffer =>
  lengthened({ method, path, body, credential: "" }, json, body);
