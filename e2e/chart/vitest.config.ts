import { suite } from "../suite.ts";

/** The Helm chart: its files would wait for the same programs. */
export default suite(import.meta.dirname, "chart", {
  hookTimeout: 3_600_000, // the first run compiles Helm, and with a cluster an API server too
});
