export {
  activityPriority,
  activityPush,
  broadcastDue,
  changeActivity,
  endActivity,
  firstSendId,
  firstSends,
  joinKeptMs,
  joinKey,
  joinSend,
  keptMsOf,
  laterJoin,
  newActivityRecord,
  newestSend,
  newestSendId,
  unsentChannels,
  type Written,
} from "./activities.ts";
export { deviceValues, placeholderValues } from "./device-values.ts";
export {
  askedIdentifier,
  identifierMeanings,
  isComparedByMeaning,
  localeOf,
  readIdentifiers,
  timeZoneOf,
} from "./identifiers.ts";
export { instantOf, localTime, wallTime } from "./local-time.ts";
export { mergePatch } from "./merge-patch.ts";
export { delayedUntil, quietEnd, quietUntil, sharedQuietEnd, unionUntil } from "./quiet-time.ts";
export {
  allHaveFewDevices,
  hasFewDevices,
  isPersonal,
  isSmallSend,
  laneOf,
  maxSmallAudience,
  personKeysOf,
  topicsOf,
  userKeysOf,
  usersOf,
} from "./reach.ts";
export { scheduleOf, scheduleProblems } from "./schedule.ts";
export { askedRulesOf, rulesOfSend, type SendRules } from "./send-rules.ts";
export { countedTags, fromTags, kindTag, labelFilterTag, pushTypeTag, toTags } from "./tags.ts";
export { maxWavesMs, noZone, planWaves, type ZoneWave } from "./waves.ts";
