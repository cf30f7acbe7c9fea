import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeAtExit, startProcess } from "@herald/provision";

/** A Firefox as people have it, by WebDriver BiDi, which it speaks itself. */

export type Firefox = {
  open(url: string): Promise<void>;
  /** The value of an expression in the page. */
  value(expression: string): Promise<unknown>;
  /** Clicks as a person does. */
  click(id: string): Promise<void>;
  stop(): Promise<void>;
};
type Answer = { id: number; error?: string; message?: string; result: Record<string, never> };

const startTimeoutMs = 120_000;

/** @param prefs of about:config */
export const startFirefox = async (
  { executable, env }: { executable: string; env: Readonly<Record<string, string>> },
  prefs: Readonly<Record<string, string | number | boolean>>,
): Promise<Firefox> => {
  const profile = await mkdtemp(join(tmpdir(), "herald-firefox-"));
  removeAtExit(profile);
  const all = {
    "browser.shell.checkDefaultBrowser": false,
    "datareporting.policy.dataSubmissionEnabled": false,
    ...prefs,
  };
  const lines = Object.entries(all).map((pref) => `user_pref(${pref.map((one) => JSON.stringify(one)).join(", ")});`);
  await writeFile(join(profile, "user.js"), lines.join("\n"));
  const listens = Promise.withResolvers<string>();
  const browser = await startProcess({
    ...{ name: "Firefox", command: executable, stopSignal: "SIGTERM", stopTimeoutMs: 10_000 },
    args: ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank"],
    env: { ...process.env, ...env, HOME: profile, MOZ_CRASHREPORTER_DISABLE: "1" },
    output: {
      onLine: (line) => {
        const [, url] = /WebDriver BiDi listening on (ws:\S+)/.exec(line) ?? [];
        if (url) listens.resolve(url);
      },
    },
  });
  const late = setTimeout(() => listens.reject(new Error("Firefox does not listen")), startTimeoutMs);
  void browser.ended.then((how) => listens.reject(new Error(how)));
  const socket = new WebSocket(`${await listens.promise.finally(() => clearTimeout(late))}/session`);
  await once(socket, "open");
  const waiting = new Map<number, (answer: Answer) => void>();
  socket.onmessage = ({ data }) => {
    const answer: Answer = JSON.parse(data);
    waiting.get(answer.id)?.(answer);
  };
  const call = async (method: string, params: object) => {
    const id = waiting.size + 1;
    const answered = new Promise<Answer>((resolve) => waiting.set(id, resolve));
    socket.send(JSON.stringify({ id, method, params }));
    const { error, message, result } = await answered;
    if (error) throw new Error(`${method}: ${error}: ${message}`);
    // biome-ignore lint/suspicious/noExplicitAny: each method has another one
    return result as any;
  };
  await call("session.new", { capabilities: {} });
  const { contexts } = await call("browsingContext.getTree", {});
  const { context } = contexts[0];
  const evaluate = async (expression: string, serialized = false) => {
    const { result, exceptionDetails } = await call("script.evaluate", {
      ...{ expression, target: { context }, awaitPromise: true, userActivation: true },
    });
    if (exceptionDetails) throw new Error(exceptionDetails.text);
    return serialized ? result : result.value;
  };
  return {
    open: (url) => call("browsingContext.navigate", { context, url, wait: "complete" }),
    value: evaluate,
    click: async (id) => {
      const element = await evaluate(`document.getElementById(${JSON.stringify(id)})`, true);
      const origin = { type: "element", element: { sharedId: element.sharedId } };
      await call("input.performActions", {
        context,
        actions: [
          {
            ...{ type: "pointer", id: "mouse" },
            actions: [
              { type: "pointerMove", x: 0, y: 0, origin },
              { type: "pointerDown", button: 0 },
              { type: "pointerUp", button: 0 },
            ],
          },
        ],
      });
    },
    stop: async () => {
      socket.close();
      await browser.stop();
      await rm(profile, { recursive: true, force: true });
    },
  };
};
