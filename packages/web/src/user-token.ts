/** The claims of a JWT; undefined if the text is not a JWT. Herald verifies the token, the kit does not. */
export const claimsOf = (userToken: string): { readonly sub: string; readonly iat: number } | undefined => {
  try {
    const { sub, iat } = JSON.parse(atob((userToken.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/")));
    return typeof sub === "string" && typeof iat === "number" ? { sub, iat } : undefined;
  } catch {
    return undefined;
  }
};
