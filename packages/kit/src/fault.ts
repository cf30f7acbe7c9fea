/** One thing that is wrong with a request: the source of a problem's `errors` and `problems`. */
export type Fault = {
  /** What the message starts with: a dotted path, a parameter or a header. Empty where the whole request is meant. */
  readonly name: string;
  readonly detail: string;
  /** Absent: the slug of the error. */
  readonly code?: string;
  /** Into the body. Absent: `name`. */
  readonly pointer?: string;
};

export const messageOf = ({ name, detail }: Fault): string => (name === "" ? detail : `${name}: ${detail}`);

/** The fault that a message states: `device.token: must be …`. */
export const faultOf = (message: string): Fault => {
  const [, name = "", detail = message] = /^([A-Za-z_][^\s:]*): (.*)$/s.exec(message) ?? [];
  return { name, detail, ...(name === "body" && { pointer: "#" }) };
};

/** An RFC 6901 JSON pointer as a URI fragment. */
export const pointerTo = (path: readonly PropertyKey[]): string =>
  [
    "#",
    ...path.map((part) => encodeURIComponent(String(part).toWellFormed().replaceAll("~", "~0").replaceAll("/", "~1"))),
  ].join("/");
