export { type Bucket, type Entry, type NewEntry, openBucket, shareOfRoom } from "./bucket.ts";
export { type Bus, busReady, closeBus, connectBus, serviceAccess } from "./connect.ts";
export { type Consuming, consume } from "./consume.ts";
export { type DeadLetterList, getDeadLetter, listDeadLetters } from "./dead-letters/list-dead-letters.ts";
export { type ReplayCandidate, replayDeadLetter } from "./dead-letters/replay-dead-letter.ts";
export {
  type DeadMessage,
  defineBatchHandler,
  defineDeadLetterHandler,
  defineHandler,
  type Handler,
  type MessageDelivery,
} from "./define-handler.ts";
export { BootstrapConfig, ensureStreams } from "./ensure-streams.ts";
export {
  type EventPosition,
  eventBounds,
  firstEventSince,
  nextSequence,
  readEvents,
  type StoredEvent,
  subscribeToEvents,
} from "./events.ts";
export { handleRequest, type RequestListener } from "./handle-request.ts";
export { limitEventsPerProject } from "./limit-events.ts";
export { currentOrigin, fromOrigin, isRecorded, type Origin } from "./message-format.ts";
export { preparePublish, publish, schedule } from "./publish.ts";
export {
  groupedPublish,
  groupedPublishEvents,
  type PublishedEvent,
  publishEvent,
  publishEvents,
} from "./publish-grouped.ts";
export {
  countMessages,
  hasMessages,
  isUnsettled,
  lastMessage,
  oldestMessageTime,
} from "./read-stream.ts";
export {
  type Measuring,
  measureQueues,
  type Positions,
  reportStatus,
  type StatusReportOptions,
} from "./report-status.ts";
export { sendGroupedRequest, sendRequest } from "./send-request.ts";
export { createUnanswered, suspectFromDelivery } from "./suspects.ts";
export { createTelemetry } from "./telemetry.ts";
