export type { CardState, Instance } from "./apns/instances.ts";
export type { Push } from "./push-log.ts";
export { knownAnswers } from "./script/known-answers.ts";
export type { Rule } from "./script/rule.ts";
export { type Simulators, type SimulatorsOptions, startSimulators } from "./start-simulators.ts";
export { decryptPush as decryptWebPush } from "./webpush/decrypt.ts";
export type { WebPushSubscription } from "./webpush/subscriptions.ts";
