export {
  createService,
  type Ground,
  type Service,
  type ServiceConfig,
  type ServiceOptions,
  type ServiceParts,
} from "./create-service.ts";
