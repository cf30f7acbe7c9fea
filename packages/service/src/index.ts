export {
  createService,
  type Ground,
  type Service,
  type ServiceConfig,
  type ServiceOptions,
  type ServiceParts,
} from "./create-service.ts";
export { type EraseRows, eraseUser, keepErasing } from "./erase-users.ts";
