/** For tests of what is built on this client: a server that speaks HTTP/2 by hand, and answers that no library would give. */
export { createDice, fatal, mangled } from "./mangled-answers.ts";
export type { PeerScript } from "./strict-peer.ts";
export { startStrictServer } from "./strict-server.ts";
