import { checkPublicEndpoint, NOT_PUBLIC, publicLookup, type Resolve } from "@herald/kit";

/** What is wrong with a webhook's URL, in words; undefined when it may be called. */
export type CheckUrl = (url: string) => Promise<string | undefined>;

/** Whoever waits for the answer gives up soon after. A name that does not resolve yet is checked when it is called. */
const patienceMs = 1_500;

/** Checks URLs when they are put. Each call checks again where the name leads by then. */
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
      const timer = setTimeout(done, patienceMs, undefined);
      lookup(checked.hostname, { all: true }, (error) => {
        clearTimeout(timer);
        done(error?.message === NOT_PUBLIC ? NOT_PUBLIC : undefined);
      });
    });
  };
};
