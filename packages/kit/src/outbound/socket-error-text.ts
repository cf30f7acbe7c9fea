/** Why a socket failed, in words that are the same for the same cause: OpenSSL puts addresses of memory into its own. */
export function socketErrorText(error: Error & { readonly code?: string }): string {
  if (error.code?.startsWith("ERR_SSL_") || error.message === "") return error.code ?? error.name;
  return error.message;
}
