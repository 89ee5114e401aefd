"""Pictures of the page, taken in a real browser by the build of the documentation.

``python docs/ui_pictures.py docs/ui_readme.png`` takes the one of the README.
"""

import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@contextmanager
def demo_page():
    """Yield the page in a browser, with the demo open and its curve complete."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "skprivacy", "ui", "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip()
        with sync_playwright() as playwright:
            # The root user of a container has no sandbox.
            arguments = ["--no-sandbox", "--disable-gpu"]
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
            page = browser.new_page(viewport=DESK)
            page.set_default_timeout(120_000)
            page.goto(address)
            page.click("#demo")
            page.wait_for_selector("#curve circle:nth-of-type(9)")
            page.wait_for_selector("#busy", state="hidden")
            yield page
            browser.close()
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def take(path, size=DESK, top="header"):
    """Take a picture of the demo; top : what is at its top."""
    with demo_page() as page:
        picture(page, path, size, top)


def picture(page, path, size, top):
    """Take a picture of a window of some size."""
    page.set_viewport_size(size)
    page.wait_for_timeout(400)  # the pictures on the page are drawn anew for a new width
    page.evaluate(f"document.querySelector({top!r}).scrollIntoView()")
    page.screenshot(path=str(path))


def take_for_pages(app):
    """Take the pictures of the page about the page."""
    folder = Path(app.srcdir) / "auto_ui"
    folder.mkdir(exist_ok=True)
    with demo_page() as page:
        picture(page, folder / "desk.png", DESK, "header")
        picture(page, folder / "phone.png", PHONE, "#protection")


if __name__ == "__main__":
    (target,) = sys.argv[1:]
    assert re.search(r"\.png$", target), "a .png file is needed"
    take(target)
