/** Schemes whose host may follow without `//`. */
const special = ["http", "https", "ws", "wss", "ftp", "file"] as const;

/** A place that text of a link leads to, beside the beginning of a special scheme's name: there are few, so all branches can be followed. */
const places = {
  start: "",
  /** A single slash, which another one makes a host. */
  slash: "/",
  otherScheme: "other",
  /** After the colon of a scheme. */
  afterSpecial: "special:",
  afterOther: "other:",
  afterOtherSlash: "other:/",
  host: "//",
  afterHost: "//host/",
} as const;

/** Where the text of a link has come to. */
export type LinkPlace = string;

export const linkStart: LinkPlace = places.start;

/** The place after an output: its slashes are percent-encoded. */
export const afterOutput: LinkPlace = places.afterHost;

const inPath: ReadonlySet<LinkPlace> = new Set([
  places.slash,
  places.afterOther,
  places.afterOtherSlash,
  places.afterHost,
]);

/** Whether an output at this place cannot become a part of the link's host or scheme. */
export const isAfterHost = (place: LinkPlace): boolean => inPath.has(place);

const next = (place: LinkPlace, character: string): LinkPlace => {
  const isSlash = character === "/" || character === "\\";
  switch (place) {
    case places.afterHost:
      return place;
    case places.host:
      return isSlash || character === "?" || character === "#" ? places.afterHost : place;
    case places.slash:
    case places.afterOtherSlash:
      return isSlash ? places.host : places.afterHost;
    case places.afterSpecial:
      return isSlash ? place : places.host;
    case places.afterOther:
      return isSlash ? places.afterOtherSlash : places.afterHost;
  }
  if (place === places.start && isSlash) return places.slash;
  if (place === places.start && character.trim() === "") return place;
  if (character === ":") return special.some((name) => name === place) ? places.afterSpecial : places.afterOther;
  const name = place + character;
  return special.some((one) => one.startsWith(name)) ? name : places.otherScheme;
};

/** Follows text from a place of a link, as URL parsers read it. */
export const followLink = (from: LinkPlace, text: string): LinkPlace => {
  let place = from;
  for (const character of text.toLowerCase()) {
    place = next(place, character);
    if (place === places.afterHost) break;
  }
  return place;
};
