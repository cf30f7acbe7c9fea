/** For tests of packages that use this client: a server with hand-written HTTP/2, and answers that no library would send. */
export { createDice, fatal, mangled } from "./mangled-answers.ts";
export type { PeerScript } from "./strict-peer.ts";
export { startStrictServer } from "./strict-server.ts";
