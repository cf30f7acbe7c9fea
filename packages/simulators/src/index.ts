export { knownAnswers } from "./script/known-answers.ts";
export { startSimulators } from "./start-simulators.ts";
export type {
  CardState,
  Channel,
  Instance,
  Phone,
  ProviderStats,
  Push,
  PushFilter,
  Rule,
  Simulators,
  SimulatorsOptions,
  WebPushSubscription,
} from "./types.ts";
