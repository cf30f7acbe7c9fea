import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { Interrupted } from "./failures.ts";

type Streams = { readonly stdin: NodeJS.ReadStream; readonly stderr: NodeJS.WriteStream };

/** Prompts at the terminal. A secret is not echoed. */
export const createAsk =
  ({ stdin, stderr }: Streams) =>
  async (question: string, secret = false): Promise<string> => {
    const hidden = new Writable({ write: (_, __, done) => done() });
    const lines = createInterface({ input: stdin, output: secret ? hidden : stderr, terminal: true });
    if (secret) stderr.write(question);
    try {
      return await new Promise<string>((resolve, reject) => {
        lines.once("SIGINT", () => reject(new Interrupted("Nothing was done.")));
        lines.once("close", () => reject(new Interrupted("Nothing was done.")));
        lines.question(secret ? "" : question).then(resolve, reject);
      });
    } finally {
      if (secret) stderr.write("\n");
      lines.close();
    }
  };
