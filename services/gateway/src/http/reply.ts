export const ok = <Body>(body: Body) => ({ status: 200 as const, body });
export const created = <Body>(body: Body) => ({ status: 201 as const, body });
export const accepted = <Body>(body: Body) => ({ status: 202 as const, body });
export const noContent = () => ({ status: 204 as const, body: undefined });
