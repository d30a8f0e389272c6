# result: {"url": "http://example.org:9090/", "debug": true, "timeout": 30, "fallback": "none", "written": "[DEFAULT]\ntimeout = 30\n\n[server]\nhost = example.org\nport = 9090\ndebug = yes\nurl = http://%(host)s:%(port)s/\n\n"}
import configparser
import io

TEXT = """
[DEFAULT]
timeout = 30
[server]
host = example.org
port: 8080
debug = yes
url = http://%(host)s:%(port)s/
[empty]
"""
config = configparser.ConfigParser()
config.read_string(TEXT)
config["server"]["port"] = "9090"
config.remove_section("empty")
out = io.StringIO()
config.write(out)
return {
    "url": config["server"]["url"],
    "debug": config.getboolean("server", "debug"),
    "timeout": config.getint("server", "timeout"),
    "fallback": config.get("server", "nothing", fallback="none"),
    "written": out.getvalue(),
}
