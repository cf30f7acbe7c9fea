import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { extname } from "node:path";
import type { Request, Response } from "express";

/** Endings of the compressed copies of a file, by the coding in HTTP; the smallest first. Browsers take Brotli over TLS and from localhost. */
const copies = { br: ".br", gzip: ".gz" } as const;

type BuiltFile = { readonly folder: string; readonly name: string; readonly headers: OutgoingHttpHeaders };

/**
 * Sends a file that `npm run build` wrote into the folder: its compressed copy where the client takes it. Returns false if there is none of
 * this name.
 */
export const sendBuilt = async (
  request: IncomingMessage,
  response: ServerResponse,
  { folder, name, headers }: BuiltFile,
): Promise<boolean> => {
  // Built files have no state that a precondition could name.
  delete request.headers["if-match"];
  delete request.headers["if-unmodified-since"];
  (response as Response).type(extname(name)).vary("accept-encoding");
  const send = (file: string, encoding: OutgoingHttpHeaders) => {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    // Without the date: where it is older, or the same for all versions, a browser would keep the page of another version.
    const options = { root: folder, lastModified: false, acceptRanges: false, headers: { ...headers, ...encoding } };
    (response as Response).sendFile(file, options, (error?: NodeJS.ErrnoException) => {
      if (error === undefined || error.code === "ECONNABORTED") resolve(true);
      else if (error.code === "ENOENT") resolve(false);
      else reject(error);
    });
    return promise;
  };
  for (const [coding, ending] of Object.entries(copies))
    if (
      (request as Request).acceptsEncodings(coding) === coding &&
      (await send(`${name}${ending}`, { "content-encoding": coding }))
    )
      return true;
  return send(name, {});
};
