"""A run's page in a real browser: it fits any width, its curves are there, and pointing at one tells its values."""

import json
import re
import shutil
import subprocess
from html import escape, unescape

import pytest
from runs import record, write_run

from unmask.reports.pages.run.page import run_page
from unmask.reports.read_run import read_run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs chromium")

PROBE = """
const frame = document.querySelector("iframe");
frame.onload = () => {
  const inside = frame.contentDocument, area = inside.querySelector(".area"), box = area.getBoundingClientRect();
  area.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width / 2 }));
  const sizes = [...inside.querySelectorAll("svg.curves")].map((svg) => svg.getBoundingClientRect().width);
  document.title = JSON.stringify({
    room: frame.clientWidth, needs: inside.documentElement.scrollWidth, narrowest: Math.min(...sizes),
    hint: area.querySelector(".hint").innerText, ink: frame.contentWindow.getComputedStyle(inside.body).color,
  });
};
"""


def look(tmp_path, page, width, *flags):
    """What a browser finds when it shows a page in a frame of a width."""
    frame = f'<iframe srcdoc="{escape(page)}" style="width:{width}px;height:900px;border:0"></iframe>'
    (tmp_path / "look.html").write_text(f"<title></title>{frame}<script>{PROBE}</script>", encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", *flags]
    done = subprocess.run(
        [CHROMIUM, *options, "--virtual-time-budget=3000", "--dump-dom", (tmp_path / "look.html").as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return json.loads(unescape(re.search("<title>(.*?)</title>", done.stdout, re.DOTALL)[1]))


@pytest.mark.parametrize("width", [400, 1200])
def test_a_page_fits_and_tells_values(tmp_path, width):
    runs = [read_run(write_run(tmp_path / name, record(200, 20, seed=seed))) for seed, name in enumerate(("a", "b"))]
    found = look(tmp_path, run_page(runs[:1]), width)
    assert found["needs"] <= found["room"]
    assert found["narrowest"] > 250
    assert found["hint"].startswith("100 steps")
    assert re.search(r"validation [23]\.\d", found["hint"])
    several = look(tmp_path, run_page(runs), width)
    assert several["needs"] <= several["room"]
    assert re.search(r"\bb [23]\.\d", several["hint"])


def test_a_page_turns_dark(tmp_path):
    page = run_page([read_run(write_run(tmp_path / "run", record(20, 10)))])
    dark = look(tmp_path, page, 800, "--blink-settings=preferredColorScheme=0")
    assert dark["ink"] != look(tmp_path, page, 800, "--blink-settings=preferredColorScheme=1")["ink"]
