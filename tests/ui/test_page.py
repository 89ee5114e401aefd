"""The page in a real browser: from the demo to the download, and everybody's ways around it."""

import csv
import os
import re
import shutil
import signal
import sys

import pytest
from ui_session import LONGEST, is_running, session, until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def _row(i):
    is_secret, scale = i * 7 % 10 > 4, ("low", "medium", "high")
    shown = scale[is_secret + (i % 5 == 0)], 20 + i % 37, "ab"[i // 600], "uv"[i % 3 == 0]
    shown = *shown, "pq"[is_secret ^ (i % 3 == 0)]
    return ",".join(map(str, [["no", "yes"][is_secret], *shown]))


ROWS = "\n".join(["secret,answer,age,published,outcome,hint", *map(_row, range(1200))]) + "\n"

ROLES = {"secret": "protect", "age": "randomise", "hint": "publish as it is"}

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs Debian's chromium")


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=QUIET, timeout=1000 * LONGEST
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def served():
    with session() as found:
        yield found


@pytest.fixture(scope="module")
def page(browser, served):
    """Return the one tab of the session; its policy is off, so that axe can be run in it."""
    context = browser.new_context(viewport=DESK, bypass_csp=True, accept_downloads=True)
    context.set_default_timeout(1000 * LONGEST)
    page = context.new_page()
    page.problems = []
    page.on("dialog", lambda asked: asked.accept())
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("request", lambda request: page.problems.append(request.url)
            if not request.url.startswith((served.origin, "blob:")) else None)  # fmt: skip
    page.goto(served.address)
    page.wait_for_selector("#demo")
    yield page
    assert page.problems == []


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "rows.csv"
    path.write_text(ROWS)
    return path


@pytest.fixture
def demo(page):
    """Open the demo; its first design is there when this returns."""
    page.set_viewport_size(DESK)
    unfold(page)
    page.click("#demo")
    folded(page, "patients.csv")
    designed(page, "10 points")
    return page


def unfold(page):
    """Show where a table is opened."""
    if page.locator("#open").get_attribute("open") is None:
        page.click("#open > summary")


def folded(page, name):
    """Wait until a new table is there: that folds the place where it was opened."""
    page.wait_for_selector("#open:not([open])")
    page.wait_for_function(
        "(text) => document.querySelector('#opened').textContent === text", arg=name
    )


def designed(page, points=None):
    """Wait until the figures of the present choices are there."""
    page.wait_for_selector("#epsilon:not(:empty)")
    page.wait_for_selector("#near", state="hidden")
    if points is not None:
        page.wait_for_function("(text) => document.title.startsWith(text)", arg=points)


def opened(page, path):
    unfold(page)
    page.fill("#path", str(path))
    page.click("#by-path button")
    folded(page, path.name)
    page.wait_for_selector("#columns select")
    return page


def role(page, name, what):
    page.get_by_label(f"What happens to {name}", exact=True).select_option(label=what)


def test_the_address_keeps_no_token(page, served):
    assert page.url == f"{served.origin}/"


def test_from_the_demo_to_the_download(demo, tmp_path):
    said = demo.inner_text("#sentence")
    assert re.fullmatch(
        r"Whoever sees a released row can move a guess about sex from 46.8% to between "
        r"\d\d\.\d% and \d\d\.\d%, at most\.",
        said,
    )
    assert "Moderate protection" in demo.inner_text("#verdict")
    assert "sex 1" not in demo.inner_text("body")
    assert demo.locator("#rows tbody tr").count() == 20
    assert demo.locator("#pairs .pair").count() == 2
    demo.fill("#for-what", "a study")
    demo.click("#draw")
    contents = []
    for _ in range(2):
        with demo.expect_download() as waiting:
            demo.click("[data-file='released.csv']")
        waiting.value.save_as(tmp_path / "released.csv")
        contents.append((tmp_path / "released.csv").read_bytes())
    assert contents[0] == contents[1]
    demo.reload()
    demo.wait_for_selector("#for-what[readonly]")
    assert demo.input_value("#for-what") == "a study"
    rows = list(csv.reader(contents[0].decode().splitlines()))
    assert (rows[0], len(rows)) == (["blood_pressure", "bmi"], 443)
    with demo.expect_download() as waiting:
        demo.click("[data-file='report.html']")
    report = waiting.value.path().read_text()
    assert "a study" in report
    assert not re.search(r"null|undefined|NaN", demo.inner_text("#files"))
    assert "skprivacy sanitize" in demo.locator("#command").text_content()


def test_a_known_stop_shows_at_once_and_by_the_keyboard(demo):
    demo.wait_for_function("document.querySelectorAll('#curve circle').length === 9")
    demo.wait_for_selector("#busy", state="hidden")
    demo.focus("#slider")
    for points in ("7", "5"):
        demo.keyboard.press("ArrowLeft")
        demo.wait_for_function("(text) => document.title.startsWith(text)", arg=f"{points} points")
    assert demo.get_attribute("#slider", "aria-valuetext") == "5 points"
    demo.locator("#curve circle").last.focus()
    demo.keyboard.press("Enter")
    designed(demo, "30 points")
    assert "weak" in demo.inner_text("#verdict").lower()


def test_reloading_restores_everything(demo):
    role(demo, "bmi", "leave out")
    demo.click("text=More settings")
    demo.fill("#exact", "12.5")
    demo.press("#exact", "Enter")
    designed(demo, "12.5 points")
    before = demo.inner_text("#sentence")
    demo.reload()
    designed(demo, "12.5 points")
    assert demo.inner_text("#sentence") == before
    assert demo.get_by_label("What happens to bmi", exact=True).input_value() == "drop"
    assert demo.get_by_label("What happens to sex", exact=True).input_value() == "protect"


def test_a_dropped_file_and_the_order_of_a_scale(page, table):
    unfold(page)
    data = page.evaluate_handle(
        """(text) => { const data = new DataTransfer();
        data.items.add(new File([text], "dropped.csv")); return data; }""",
        table.read_text(),
    )
    page.dispatch_event("#drop", "drop", {"dataTransfer": data})
    folded(page, "dropped.csv")
    role(page, "secret", "protect")
    role(page, "answer", "randomise")
    designed(page)
    assert "distortion" not in page.locator("#command").text_content()
    page.click("text=Are these texts a scale?")
    page.check("text=They are a scale, from first to last")
    page.wait_for_function("document.querySelector('#command').textContent.includes('--ordered')")
    assert "--ordered=answer=low,medium,high" in page.locator("#command").text_content()
    page.get_by_role("button", name="Earlier: high").click()
    page.wait_for_function("document.querySelector('#command').textContent.includes('low,high')")


def test_a_path_a_target_and_a_published_column(page, table):
    opened(page, table)
    role(page, "secret", "protect")
    page.wait_for_selector("#hint:has-text('Say which columns to randomise.')")
    role(page, "answer", "randomise")
    page.check("text=For predicting a column")
    page.select_option("#target", "outcome")
    designed(page)
    page.wait_for_function("document.querySelector('#command').textContent.includes('outcome')")
    assert "--target=outcome" in page.locator("#command").text_content()
    page.check("text=As much information as possible")
    role(page, "published", "publish as it is")
    page.wait_for_function("document.querySelector('#command').textContent.includes('--beside')")
    designed(page)
    assert "--utility=mutual_information" in page.locator("#command").text_content()
    assert page.locator("#rows thead th").all_inner_texts() == ["answer", "published"]


def test_another_delimiter_and_a_target_that_is_released(page, table, tmp_path):
    path = tmp_path / "semicolons.csv"
    path.write_text(table.read_text().replace(",", ";"))
    unfold(page)
    page.fill("#path", str(path))
    page.click("#by-path button")
    page.click("#separates")
    folded(page, path.name)
    for name, what in {"secret": "protect", "answer": "randomise", "outcome": "randomise"}.items():
        role(page, name, what)
    page.check("text=For predicting a column")
    page.select_option("#target", "outcome")
    assert page.inner_text("#target-note").startswith("It is released")
    designed(page)
    page.wait_for_function("document.querySelector('#command').textContent.includes('target=')")
    assert "--release-target" in page.locator("#command").text_content()
    assert page.locator("#rows thead th").all_inner_texts() == ["answer", "outcome"]
    role(page, "outcome", "leave out")
    assert page.inner_text("#target-note").startswith("It is left out")


def test_a_path_that_is_none_is_told(page):
    unfold(page)
    page.fill("#path", "/no/such.csv")
    page.click("#by-path button")
    page.wait_for_selector("#error:not([hidden])")
    assert "No such file" in page.inner_text("#error")


def test_a_verdict_of_none(demo):
    demo.click("text=More settings")
    demo.fill("#exact", "45")
    demo.press("#exact", "Enter")
    designed(demo, "45 points")
    assert "✗ FAIL: No protection" in demo.inner_text("#verdict")


def test_cancelling(page, tmp_path):
    path = tmp_path / "many.csv"
    rows = ((i, i * i * i % 7 > 2) for i in range(4000))
    lines = [f"{'fm'[s]},a{i * i % 15 + (i % 9 == 0) * s},b{i * 7 % 16}" for i, s in rows]
    path.write_text("\n".join(["s,a,b", *lines]))
    opened(page, path)
    role(page, "s", "protect")
    page.click("text=More settings") if not page.is_visible("#bins") else None
    for name in "ab":
        role(page, name, "randomise")
    page.wait_for_selector("#many:not([hidden])")
    assert "combinations of values" in page.inner_text("#many")
    page.wait_for_selector("#busy:not(.aside) #cancel:visible")
    page.click("#cancel")
    page.wait_for_selector("#busy", state="hidden")
    assert page.inner_text("#problem") == "Stopped."
    page.click("#go-on")
    page.wait_for_selector("#busy:not(.aside) #cancel:visible")
    page.fill("#pooled", "3")
    page.press("#pooled", "Enter")
    designed(page)


def check_for_everybody(page, scheme, size):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(size)
    found = axe.run(page).response["violations"]
    page.emulate_media(color_scheme="light")
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert not serious, [
        (each["id"], [node["html"] for node in each["nodes"]]) for each in serious
    ]
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_everybody_can_use_it(scheme, size, demo):
    check_for_everybody(demo, scheme, size)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_a_preview_and_errors(scheme, page, table):
    page.set_viewport_size(DESK)
    opened(page, table)
    for name, what in ROLES.items():
        role(page, name, what)
    page.wait_for_selector("#problem:not([hidden])")
    assert "A limit of 10 points is not possible" in page.inner_text("#problem")
    page.wait_for_selector("#near:has-text('the figures are those of 20 points')")
    page.click("#open > summary")
    page.fill("#path", "/no/such.csv")
    page.click("#by-path button")
    page.wait_for_selector("#error:not([hidden])")
    check_for_everybody(page, scheme, PHONE)


def test_every_control_can_be_reached_by_the_keyboard(demo):
    demo.focus("#slider")
    demo.keyboard.press("ArrowRight")  # these choices are not released yet
    designed(demo, "15 points")
    focused = set()
    demo.evaluate("document.activeElement.blur()")
    for _ in range(60):
        demo.keyboard.press("Tab")
        focused.add(demo.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"role-1", "slider", "population", "for-what", "draw"} <= focused


def test_a_server_that_ends_is_told_and_the_policy_is_kept(browser):
    with session() as found:
        page, said = browser.new_page(), []  # which enforces the policy
        page.set_default_timeout(1000 * LONGEST)
        page.on("console", lambda message: said.append(message.text))
        page.goto(found.address)
        page.click("#demo")
        page.click("text=More settings")
        designed(page)
        assert not said
        for pid in (killed := found.children()):
            os.kill(pid, signal.SIGKILL)
        page.wait_for_selector("#error:has-text('The process that computes has ended')")
        until(lambda: not any(map(is_running, killed)))
        page.fill("#exact", "6")
        page.press("#exact", "Enter")
        designed(page, "6 points")
    page.wait_for_selector("#gone:not([hidden])")
    assert "has ended" in page.inner_text("#gone")
    page.close()


def test_another_tab_is_told_where_to_go(page, served):
    other = page.context.new_page()
    other.goto(f"{served.origin}/")
    other.wait_for_selector("#gone:not([hidden])")
    assert "Open the address that the command printed" in other.inner_text("#gone")
    other.close()


def test_two_tabs_of_a_session_show_the_same(demo, served):
    other = demo.context.new_page()  # as a tab that was duplicated, with the secret of the first
    other.goto(f"{served.origin}/")
    secret = demo.evaluate("sessionStorage.getItem('secret')")
    other.evaluate("(secret) => sessionStorage.setItem('secret', secret)", secret)
    other.reload()
    designed(other, "10 points")
    other.focus("#slider")
    other.keyboard.press("ArrowLeft")
    for tab in (other, demo):
        designed(tab, "7 points")
        assert tab.inner_text("#points") == "7 points"
    assert demo.inner_text("#sentence") == other.inner_text("#sentence")
    other.close()
