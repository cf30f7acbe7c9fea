export { knownAnswers } from "./script/known-answers.ts";
export { startSimulators } from "./start-simulators.ts";
export type {
  CardState,
  Instance,
  Phone,
  ProviderStats,
  Push,
  PushFilter,
  Rule,
  SimulatedChannel,
  Simulators,
  SimulatorsOptions,
  WebPushSubscription,
} from "./types.ts";
