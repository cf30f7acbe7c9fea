import 'package:firebase_core/firebase_core.dart';
import 'package:flutter/material.dart';

import 'push.dart';

Future<void> main() async {
  WidgetsFlutterBinding.ensureInitialized();
  await Firebase.initializeApp();
  await startPush(onOpen: (link) => navigator.currentState?.push(MaterialPageRoute<void>(builder: (_) => LinkPage(link))));
  runApp(MaterialApp(title: 'Herald', navigatorKey: navigator, home: const SettingsPage()));
}

final navigator = GlobalKey<NavigatorState>();

/// What a notification links to.
class LinkPage extends StatelessWidget {
  const LinkPage(this.link, {super.key});
  final String link;

  @override
  Widget build(BuildContext context) => Scaffold(appBar: AppBar(title: Text(link)));
}

class SettingsPage extends StatefulWidget {
  const SettingsPage({super.key});

  @override
  State<SettingsPage> createState() => _SettingsPageState();
}

class _SettingsPageState extends State<SettingsPage> {
  final _userToken = TextEditingController();
  // Sends what could not be sent before.
  late final _lifecycle = AppLifecycleListener(onResume: herald.settle);
  bool _news = false;

  @override
  void initState() {
    super.initState();
    _lifecycle;
  }

  @override
  void dispose() {
    _lifecycle.dispose();
    _userToken.dispose();
    super.dispose();
  }

  @override
  Widget build(BuildContext context) => Scaffold(
        appBar: AppBar(title: const Text('Notifications')),
        body: ListView(padding: const EdgeInsets.all(16), children: [
          const FilledButton(onPressed: askForPermission, child: Text('Notify me')),
          SwitchListTile(
            title: const Text('News'),
            value: _news,
            onChanged: (wanted) {
              setState(() => _news = wanted);
              wanted ? herald.topics.add('news') : herald.topics.remove('news');
            },
          ),
          TextField(controller: _userToken, decoration: const InputDecoration(labelText: 'User token, from your backend')),
          OutlinedButton(onPressed: () => herald.login(_userToken.text), child: const Text('Log in')),
          const OutlinedButton(onPressed: logout, child: Text('Log out')),
          // What Herald refused.
          ValueListenableBuilder(valueListenable: herald.problem, builder: (_, problem, __) => Text(problem ?? '')),
        ]),
      );
}
