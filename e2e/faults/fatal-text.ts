import { pathToFileURL } from "node:url";

/** Preloaded by dispatch, it ends the process as `kill -9` does whenever this text is in a push to APNs. */
const fatal = process.env.HERALD_E2E_FATAL;

if (fatal !== undefined) {
  JSON.stringify = new Proxy(JSON.stringify, {
    apply: (target, self, args: Parameters<typeof JSON.stringify>) => {
      const text: string | undefined = Reflect.apply(target, self, args);
      if (text?.includes(fatal) && text.includes('"aps"')) process.kill(process.pid, "SIGKILL");
      return text;
    },
  });
}

/** The environment of a dispatch that dies over this text. */
export const dyingOver = (text: string) => ({
  NODE_OPTIONS: `--import=${pathToFileURL(import.meta.filename).href}`,
  HERALD_E2E_FATAL: text,
});
