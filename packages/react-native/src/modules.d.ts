/** The signatures that the kit uses of its peers, so that this repository need not install React Native. */
declare const __DEV__: boolean;
declare module "@react-native-async-storage/async-storage" {
  const storage: { getItem(key: string): Promise<string | null>; setItem(key: string, value: string): Promise<void> };
  export default storage;
}
declare module "expo" {
  export const requireNativeModule: <Module>(name: string) => Module;
}
declare module "expo-notifications" {
  export type NotificationResponse = {
    readonly actionIdentifier: string;
    readonly notification: {
      readonly request: { readonly trigger: unknown; readonly content: { readonly data?: unknown } };
    };
  };
  type PushToken = { readonly data: string };
  export const getDevicePushTokenAsync: () => Promise<PushToken>;
  export const addPushTokenListener: (listener: (token: PushToken) => void) => unknown;
  export const addNotificationResponseReceivedListener: (listener: (response: NotificationResponse) => void) => unknown;
  export const getLastNotificationResponse: () => NotificationResponse | null;
}
declare module "expo-secure-store" {
  export const AFTER_FIRST_UNLOCK_THIS_DEVICE_ONLY: number;
  export const getItemAsync: (key: string) => Promise<string | null>;
  export const setItemAsync: (key: string, value: string, options: { keychainAccessible: number }) => Promise<void>;
}
declare module "react-native" {
  export const Platform: { readonly OS: string };
  export const AppState: { addEventListener(event: "change", listener: (state: string) => void): unknown };
}
