import { expectStatus, request } from "@herald/testing";

/** A process's metrics as Prometheus reads them. */
export const readMetrics = async (url: string): Promise<string> => expectStatus(await request(url, "GET "), 200).text;
