import type { IncomingMessage, ServerResponse } from "node:http";
import { HeraldError } from "../herald-error.ts";

/** RFC 9112: exactly one Host. With two, a proxy and Herald could see different sites. */
export const requireHost = (
  { rawHeaders, httpVersionMinor }: IncomingMessage,
  _response: ServerResponse,
  next: (error?: unknown) => void,
): void => {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (rawHeaders[index]?.length === 4 && rawHeaders[index]?.toLowerCase() === "host") hosts++;
  if (hosts === 1 || (hosts === 0 && httpVersionMinor === 0)) next();
  else next(new HeraldError("malformed-request", "host: must be sent exactly once"));
};
