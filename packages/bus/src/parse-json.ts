const utf8 = new TextDecoder("utf-8", { fatal: true });

/** What a stranger's bytes say. Throws where they are not JSON, or not UTF-8: a letter that is guessed would be stored as if it had been sent. */
export const parseJson = (body: Uint8Array): unknown => JSON.parse(utf8.decode(body));

/** The same, or undefined, which no JSON is, where they are not. */
export const readJson = (body: Uint8Array | string): unknown => {
  try {
    return typeof body === "string" ? JSON.parse(body) : parseJson(body);
  } catch {
    return undefined;
  }
};
