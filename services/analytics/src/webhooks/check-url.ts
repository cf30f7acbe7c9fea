import { checkPublicEndpoint, notPublicText, publicLookup, type Resolve } from "@herald/kit";

/** Resolves to what is wrong with a webhook's URL; undefined when it may be called. */
export type CheckUrl = (url: string) => Promise<string | undefined>;

/** The caller gives up soon after. A name that does not resolve in time is checked when it is called. */
const lookupTimeoutMs = 1_500;

/** Checks URLs when they are stored. Each request resolves and checks the name again. */
export const createCheckUrl = ({ anyHost, resolve }: { anyHost: boolean; resolve?: Resolve | undefined }): CheckUrl => {
  const lookup = publicLookup(resolve);
  return async (text) => {
    if (anyHost) {
      const url = new URL(text);
      if (!/^https?:$/.test(url.protocol)) return "must be an http or https URL";
      return url.username === "" && url.password === "" ? undefined : "may not carry a user";
    }
    const checked = checkPublicEndpoint(text);
    if (!checked.ok) return checked.problem;
    return new Promise((done) => {
      const timer = setTimeout(done, lookupTimeoutMs, undefined);
      lookup(checked.hostname, { all: true }, (error) => {
        clearTimeout(timer);
        done(error?.message === notPublicText ? notPublicText : undefined);
      });
    });
  };
};
