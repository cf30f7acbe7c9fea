// A device at Herald, for Flutter on iOS and Android. Not compiled here: this repository has no Dart toolchain. A test compares its routes and
// fields with Herald's OpenAPI document.
//
// Every call stores a change and then sends it to Herald. Changes that cannot be sent now are sent by the next call or by `settle()`, which
// you call when the app is resumed.

import 'dart:convert';

import 'package:flutter/foundation.dart';
import 'package:http/http.dart' as http;

/// `flutter_secure_storage` or the like: the credential acts for this device.
abstract interface class HeraldStore {
  Future<String?> read();
  Future<void> write(String value);
}

/// Herald refused the request, and would refuse a retry too.
class Refused implements Exception {
  Refused(this.status, this.errors);
  final int status;
  final List<Object?> errors;
}

class Herald {
  Herald({required this.gateway, required this.project, required this.platform, required this.locale, required this.timeZone, required this.store, this.provider});

  final String gateway;
  final String project;

  /// `ios` or `android`.
  final String platform;
  final String Function() locale;
  final Future<String> Function() timeZone;
  final HeraldStore store;

  /// `fcm` if an iPhone has a push token of FCM. Default: the platform's own provider.
  final String? provider;
  Future<void> _last = Future.value();

  /// User tokens are never stored.
  String? _userToken;

  /// What Herald refused last; null if nothing.
  final ValueNotifier<String?> problem = ValueNotifier(null);

  late final topics = HeraldTopics._(this);

  /// Call it at every start, and when the platform issues a new push token.
  Future<void> register(String pushToken) => _run((state) => state
    ..['pushToken'] = pushToken
    ..['due'] = true);

  /// [userToken]: a JWT from your backend.
  Future<void> login(String userToken) => _run((_) => _userToken = userToken);

  Future<void> logout() {
    _userToken = null;
    return _run((state) => state['loggingOut'] = true);
  }

  /// Reports that the user opened the notification with this data.
  Future<void> open(Map<String, dynamic> data) async {
    final open = [data['notification_id'], data['project_id'], data['token']];
    if (!open.every((part) => part is String)) return;
    await _run((state) {
      _opens(state).add([...open, DateTime.now().millisecondsSinceEpoch]);
      // Herald accepts opens for 30 days.
      if (_opens(state).length > 100) _opens(state).removeAt(0);
    });
  }

  /// The device's id, and the credential that it sends as `Bearer`, for calls of the app's own. Null until Herald has registered it.
  Future<({String device, String credential})?> credential() async {
    await _last;
    final state = jsonDecode(await store.read() ?? '{}') as Map<String, dynamic>;
    final device = state['device'] as String?, credential = state['credential'] as String?;
    return device == null || credential == null ? null : (device: device, credential: credential);
  }

  /// Sends pending changes to Herald.
  Future<void> settle() => _run((_) {});

  /// Runs one call after another, so that no call overwrites the changes of another.
  Future<void> _run(void Function(Map<String, dynamic> state) change) {
    final work = _last.then((_) async {
      final state = jsonDecode(await store.read() ?? '{}') as Map<String, dynamic>;
      change(state);
      await _save(state);
      try {
        await _sync(state);
      } on Refused catch (refused) {
        if (refused.status != 401) return;
        // Herald no longer knows the device, so it registers as a new one.
        state
          ..remove('device')
          ..remove('credential')
          ..['due'] = true;
        await _save(state);
        await _sync(state).catchError((_) {});
      } on Exception {
        // A later call retries.
      }
    });
    _last = work.catchError((_) {});
    return work;
  }

  Future<void> _sync(Map<String, dynamic> state) async {
    problem.value = null;
    while (_opens(state).isNotEmpty) {
      final [notification, project, token, _] = _opens(state).first as List;
      await _attempt(() => _call('PUT', '/notifications/$notification/open', body: {'project_id': project, 'token': token}));
      _opens(state).removeAt(0);
      await _save(state);
    }
    if (state['loggingOut'] == true) {
      final device = state['device'];
      if (device != null) await _attempt(() => _call('DELETE', '/devices/$device/user', credential: state['credential']));
      state.remove('loggingOut');
      await _save(state);
    }
    final pushToken = state['pushToken'];
    if (pushToken != null && state['due'] == true) {
      final registered = state['registered'];
      final answer = await _call('PUT', '/identification', credential: state['credential'], body: {
        'project_id': project,
        'platform': platform,
        if (provider != null) 'provider': provider,
        'identifier': pushToken,
        // With the credential this keeps the device.
        if (registered != null && registered != pushToken) 'previous_identifier': registered,
        'identifiers': {'current_locale': locale(), 'current_time_zone': await timeZone()},
      });
      state
        ..['device'] = answer['data']['id']
        ..['registered'] = pushToken
        ..['due'] = false;
      if (answer['credential'] != null) {
        state['credential'] = answer['credential'];
        // A new device has no topics yet.
        _topics(state).updateAll((_, topic) => topic == 'remove' ? topic : 'add');
      }
      await _save(state);
    }
    final device = state['device'];
    final credential = state['credential'];
    if (device == null || credential == null) return;
    final userToken = _userToken;
    if (userToken != null) {
      final login = {'device': {'user_token': userToken}};
      await _attempt(() => _call('PATCH', '/devices/$device', credential: credential, body: login));
      if (_userToken == userToken) _userToken = null;
    }
    for (final MapEntry(key: name, value: topic) in Map.of(_topics(state)).entries) {
      final encoded = Uri.encodeComponent(name);
      if (topic == 'add') {
        final taken = await _attempt(() => _call('PUT', '/devices/$device/topics/$encoded', credential: credential));
        taken ? _topics(state)[name] = 'subscribed' : _topics(state).remove(name);
      } else if (topic == 'remove') {
        await _attempt(() => _call('DELETE', '/devices/$device/topics/$encoded', credential: credential));
        _topics(state).remove(name);
      }
      await _save(state);
    }
  }

  /// False if Herald refuses the request.
  Future<bool> _attempt(Future<Object?> Function() work) async {
    try {
      await work();
      return true;
    } on Refused catch (refused) {
      if (refused.status == 401) rethrow;
      problem.value = refused.errors.join('; ');
      return false;
    }
  }

  Future<Map<String, dynamic>> _call(String method, String path, {Object? body, String? credential}) async {
    // A redirect would carry the credential to another host; it is tried again, as without an answer.
    final request = http.Request(method, Uri.parse('$gateway/api/v1$path'))..followRedirects = false;
    if (credential != null) request.headers['authorization'] = 'Bearer $credential';
    if (body != null) {
      request.headers['content-type'] = 'application/json';
      request.body = jsonEncode(body);
    }
    final response = await http.Response.fromStream(await request.send().timeout(const Duration(seconds: 20)));
    final status = response.statusCode;
    if ((status >= 300 && status < 400) || status == 429 || status >= 500) throw http.ClientException('Herald answered $status');
    final answer = response.body.isEmpty ? <String, dynamic>{} : jsonDecode(response.body) as Map<String, dynamic>;
    if (status >= 400) throw Refused(status, answer['errors'] as List<Object?>? ?? []);
    return answer;
  }

  Map<String, dynamic> _topics(Map<String, dynamic> state) => state.putIfAbsent('topics', () => <String, dynamic>{});
  List<dynamic> _opens(Map<String, dynamic> state) => state.putIfAbsent('opens', () => <dynamic>[]);
  Future<void> _save(Map<String, dynamic> state) => store.write(jsonEncode(state));
}

class HeraldTopics {
  HeraldTopics._(this._herald);
  final Herald _herald;

  Future<void> add(String name) => _herald._run((state) => _herald._topics(state)[name] = 'add');

  Future<void> remove(String name) => _herald._run((state) => _herald._topics(state)[name] = 'remove');
}
