import json
import shutil
import threading
from pathlib import Path

from examples.bot.stand_in import Bot, serving
from system.folders import folder_hash
from tests.plugins.client import TRUSTED
from tests.plugins.site import Site
from tests.requirements import promise

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/bot"


@promise("plugins:bot")
async def test_two_daemons_use_one_session_of_the_bot_in_turn(tmp_path, temporal, nursery):
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    plugin = tmp_path / "plugins/botfather"
    configuration = json.loads((tmp_path / "toolbox.json").read_text(encoding="utf-8"))
    configuration["providers"]["botfather"]["jobs"] = {
        "unasked": ["send-message", "click-button", "get-replies"],
        "sha256": folder_hash(plugin, ["*.session"]),
        "leave_out": ["*.session"],
    }
    # What is read of it in a jail is tested elsewhere.
    configuration["plugins"] = TRUSTED
    (tmp_path / "toolbox.json").write_text(json.dumps(configuration), encoding="utf-8")
    bot = Bot()
    server = serving(bot)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    class BotSite(Site):
        @property
        def variables(self):
            return super().variables | {"BOT_URL": f"http://127.0.0.1:{server.server_port}"}

    laid = BotSite(tmp_path, temporal, nursery)
    worker = await laid.worker()
    try:
        async with laid.daemon() as first, laid.daemon() as second:
            for number in range(3):
                first.run(f"one-{number}", "botfather", "send-message", {"msg": f"/newbot {number}"})
                second.run(f"other-{number}", "botfather", "click-button", {"button-text": f"Payments {number}"})
            for number in range(3):
                assert (await first.told(f"one-{number}", "success"))["payload"]["sent"] == f"/newbot {number}"
                assert (await second.told(f"other-{number}", "success"))["payload"]["sent"] == f"[Payments {number}]"
            first.run("replies", "botfather", "get-replies", {"limit": "2"})
            assert len((await first.told("replies", "success"))["payload"]["replies"]) == 2
    finally:
        await worker.end()
        server.shutdown()
        server.server_close()
    assert (bot.log_ins, bot.clashes, len(bot.said)) == (1, 0, 6)
    assert [text for text in bot.said if text.startswith("/")] == [f"/newbot {number}" for number in range(3)]
    assert (plugin / "botfather.session").stat().st_mode & 0o077 == 0
