@main
class AppDelegate {}
