export { bundle, bundleOf, type ProgramName } from "./bundle.ts";
export { buildConsole } from "./console.ts";
export { thirdPartyNotices } from "./notices.ts";
export { bundleWebKit } from "./web-kit.ts";
