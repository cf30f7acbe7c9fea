/** Why a socket failed, in the same words for the same cause: OpenSSL's messages contain memory addresses. */
export function socketErrorText(error: Error & { readonly code?: string }): string {
  if (error.code?.startsWith("ERR_SSL_") || error.message === "") return error.code ?? error.name;
  return error.message;
}
