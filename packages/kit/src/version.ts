/** Herald's version: all packages have the same. */
export const version = "0.1.0";
