import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import helmet from "helmet";

/** What helmet puts into every answer of an API. It is the same each time, so it is asked once. */
export const securityHeaders = (): readonly (readonly [name: string, value: string])[] => {
  const headers = new ServerResponse(new IncomingMessage(new Socket()));
  helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
  })(headers.req, headers, (error) => {
    if (error) throw error;
  });
  return Object.entries(headers.getHeaders()).map(([name, value]) => [name, String(value)]);
};
