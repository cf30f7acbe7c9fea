import { once } from "node:events";
import type { ListenOptions, Server } from "node:net";

type Port = ListenOptions & {
  readonly port: number;
  readonly host: string;
  /** The environment variable that sets the port. */
  readonly variable: string;
};

/** Starts to listen. If the port cannot be had, rejects with an error that names it, the reason and its variable. */
export const listen = async (server: Server, { variable, ...at }: Port): Promise<void> => {
  server.listen(at);
  try {
    await once(server, "listening");
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const reason = { EADDRINUSE: "is taken by another program", EACCES: "needs more rights" }[code ?? ""];
    if (reason === undefined) throw cause;
    throw new Error(`port ${at.port} of ${at.host} ${reason}: set ${variable} to another one (${message})`, { cause });
  }
};
