// Connects `herald.dart` to Firebase Messaging and the phone.

import 'dart:io';

import 'package:firebase_messaging/firebase_messaging.dart';
import 'package:flutter_secure_storage/flutter_secure_storage.dart';
import 'package:flutter_timezone/flutter_timezone.dart';

import 'herald.dart';

class SecureStore implements HeraldStore {
  static const _storage = FlutterSecureStorage();
  @override
  Future<String?> read() => _storage.read(key: 'herald');
  @override
  Future<void> write(String value) => _storage.write(key: 'herald', value: value);
}

/// True: Herald reaches iPhones through FCM, with tokens of FCM. False: Herald sends to APNs itself.
const iosThroughFcm = false;

final herald = Herald(
  gateway: 'https://push.example.com',
  project: 'prj_…',
  platform: Platform.isIOS ? 'ios' : 'android',
  provider: Platform.isIOS && iosThroughFcm ? 'fcm' : null,
  locale: () => Platform.localeName.replaceAll('_', '-').split('.').first,
  timeZone: () async => (await FlutterTimezone.getLocalTimezone()).identifier,
  store: SecureStore(),
);

final _messaging = FirebaseMessaging.instance;

Future<void> _register() async {
  final token = Platform.isIOS && !iosThroughFcm ? await _messaging.getAPNSToken() : await _messaging.getToken();
  if (token != null) await herald.register(token);
}

/// [onOpen] gets the link of a notification that the user opened, also of the one that started the app.
Future<void> startPush({required void Function(String link) onOpen}) async {
  Future<void> open(RemoteMessage message) async {
    final link = message.data['link_to'];
    if (link is String) onOpen(link);
    await herald.open(message.data);
  }

  _messaging.onTokenRefresh.listen((_) => _register());
  FirebaseMessaging.onMessageOpenedApp.listen(open);
  await _messaging.setForegroundNotificationPresentationOptions(alert: true, badge: true, sound: true);
  final first = await _messaging.getInitialMessage();
  if (first != null) await open(first);
  await _register();
}

/// Call it after the user has seen why your app sends notifications.
Future<void> askForPermission() async {
  await _messaging.requestPermission();
  await _register();
}

Future<void> logout() async {
  await herald.logout();
  // FCM drops pushes in transit to the old token. The device keeps its id with the new token.
  if (Platform.isAndroid || iosThroughFcm) await _messaging.deleteToken();
  await _register();
}
