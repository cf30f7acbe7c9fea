export { type BusPermissions, type BusUser, type BusUserName, busUsers, consumerUser } from "./bus-users.ts";
export {
  type BusCredential,
  type ConsumerUser,
  type NatsUsersOptions,
  passwordVariables,
  renderConsumerAccount,
  renderNatsAccounts,
} from "./nats-users.ts";
export {
  type BusService,
  busServices,
  consumedStream,
  consumerPrefix,
  ownerOf,
  streamsMeasuredBy,
} from "./service-permissions.ts";
