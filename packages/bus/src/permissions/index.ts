export {
  type BusService,
  type BusUser,
  type BusUserName,
  busUsers,
  consumedStream,
  consumerPrefix,
  consumerUser,
  durablesOf,
  serviceOf,
  streamsMeasuredBy,
} from "./bus-users.ts";
export { passwordVariables, renderConsumerAccount, renderNatsAccounts } from "./nats-users.ts";
