import { connect, type TcpNetConnectOpts } from "node:net";

export type Conversation = {
  /** Complete HTTP/1.1 requests, in order. */
  readonly requests: readonly string[];
  /** How many requests may be sent in total once `answered` of them are answered. */
  readonly allowed: (answered: number) => number;
  /** Called for each answer, in order. */
  readonly onAnswer: (index: number, status: string) => void;
};

/** Interval of the check for due requests. */
const tickMs = 2;

/** Sends requests over one connection and reads only the status of each answer, so the client itself costs little CPU. */
export const converse = (to: TcpNetConnectOpts, { requests, allowed, onAnswer }: Conversation): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect({ ...to, noDelay: true });
    let sent = 0;
    let answered = 0;
    let rest = "";
    const more = () => {
      const until = Math.min(requests.length, allowed(answered));
      if (until > sent) socket.write(requests.slice(sent, until).join(""));
      sent = Math.max(sent, until);
    };
    const ticking = setInterval(more, tickMs);
    const end = (settle: () => void) => {
      clearInterval(ticking);
      socket.destroy();
      settle();
    };
    socket.on("error", (error) => end(() => reject(error))).on("connect", more);
    socket.on("close", () => end(() => reject(new Error(`closed after ${answered} of ${requests.length} answers`))));
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      const text = rest + chunk;
      let last = 0;
      for (const { 1: status = "", index } of text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
        onAnswer(answered++, status);
        last = index + "HTTP/1.1 200 ".length;
      }
      // The end of a chunk may cut a status line in two.
      rest = text.slice(Math.max(last, text.length - "HTTP/1.1 200".length));
      if (answered < requests.length) more();
      else end(resolve);
    });
  });
