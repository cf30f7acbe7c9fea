export { bundle, bundleOf, type ProgramName } from "./bundle.ts";
export { thirdPartyNotices } from "./notices.ts";
export { buildConsole, buildDocs } from "./pages.ts";
export { bundleWebKit } from "./web-kit.ts";
