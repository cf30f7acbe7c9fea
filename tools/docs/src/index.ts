export { errorsOf } from "./api/describe-routes.ts";
export { type ApiDocument, renderErrors, renderEvents, renderReference } from "./api/render-reference.ts";
export { writeDocs } from "./api/write-docs.ts";
