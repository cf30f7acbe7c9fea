export {
  createService,
  type Service,
  type ServiceConfig,
  type ServiceDefinition,
  type ServiceDeps,
  type ServiceOptions,
} from "./create-service.ts";
export { deleteProject, type EraseRows, eraseUser, startErasurePasses } from "./erase-users.ts";
export { exportPage } from "./export-page.ts";
export { runDatabaseService } from "./run-database-service.ts";
